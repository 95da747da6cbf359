"""`anyorder algorithms`: the names that `algorithm=` takes."""

from __future__ import annotations

import inspect
import json

import click

from anyorder.cli.common import echo
from anyorder.strategies.registry import REGISTRY


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def algorithms(as_json: bool) -> None:
    """List the algorithms by the names that --algorithm takes."""
    said = {name: _first_sentence(kind) for name, kind in REGISTRY.items()}
    if as_json:
        echo(json.dumps([{"name": name, "description": text} for name, text in said.items()]))
        return
    width = max(map(len, said))
    for name, text in said.items():
        echo(f"{name:<{width}}  {text}")


def _first_sentence(kind: type) -> str:
    paragraph = (inspect.getdoc(kind) or "").partition("\n\n")[0]
    return " ".join(paragraph.split()).partition(". ")[0].rstrip(".:")
