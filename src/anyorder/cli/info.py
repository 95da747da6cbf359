"""`anyorder info`: the version and the engines."""

from __future__ import annotations

import json
import platform
from importlib import metadata
from typing import Any

import click

from anyorder._internal.checks import cores
from anyorder._version import __version__
from anyorder.cli.common import echo
from anyorder.policy import choose_engine
from anyorder.space import Space
from anyorder.strategies.policy.engines import ENGINES, why_not

_N = 128  # variables of the problem for which "auto" is reported: the default of the problems


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def info(as_json: bool) -> None:
    """Show the version, the engines that can run here, and the one that "auto" takes."""
    reasons = {name: why_not(name) for name in ENGINES}
    engine, reason = choose_engine(Space.binary(_N))
    facts = _facts()
    if as_json:
        auto = {"n": _N, "runs": 1, "takes": engine, "reason": reason}
        engines = {name: {"runs": why is None, "why_not": why} for name, why in reasons.items()}
        echo(json.dumps({**facts, "engines": engines, "auto": auto}))
        return
    for name, value in facts.items():
        echo(f"{name:<12}{value}")
    echo("engines")
    for name, why in reasons.items():
        state = "runs here" if why is None else f"cannot run here: {why}"
        echo(f"  {name:<12}{state}; {ENGINES[name]}")
    echo(f"  {'auto':<12}takes {engine} for one run of {_N} bits: {reason}")


def _facts() -> dict[str, Any]:
    facts: dict[str, Any] = {
        "anyorder": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": cores(),
    }
    for package in ("numpy", "numba", "matplotlib", "torch", "triton"):
        try:
            facts[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            facts[package] = "not installed"
    return facts
