"""`anyorder problems`, and problems from the options of other commands."""

from __future__ import annotations

import json
from typing import Any

import click

from anyorder import problems as catalogue
from anyorder.cli.common import echo


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def problems(as_json: bool) -> None:
    """List the built-in problems with their parameters and defaults."""
    entries = [(name, catalogue.entry(name)) for name in catalogue.names()]
    if as_json:
        rows = [
            {"name": name, "description": entry.description, "parameters": entry.parameters}
            for name, entry in entries
        ]
        echo(json.dumps(rows))
        return
    width = max(len(name) for name, _ in entries)
    for name, entry in entries:
        settings = ",".join(f"{key}={value}" for key, value in entry.parameters.items())
        echo(f"{name:<{width}}  {entry.description}")
        echo(f"{'':<{width}}  {name}:{settings}")


def problem(name: str, given: dict[str, Any]) -> catalogue.Problem:
    """Return a problem by its full name, or by its kind with parameters."""
    if ":" in name:
        if given:
            options = ", ".join(f"--{'instance' if key == 'seed' else key}" for key in given)
            raise ValueError(f"{options} given beside the full name {name!r}: use one or the other")
        return catalogue.get(name)
    if "seed" in given and "seed" not in catalogue.entry(name).parameters:
        raise ValueError(f"{name} has no --instance: there is only one of each size")
    return catalogue.make(name, **given)
