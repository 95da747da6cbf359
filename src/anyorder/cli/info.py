"""`anyorder info`: the version and the engines."""

from __future__ import annotations

import json
import platform
from importlib import metadata
from typing import Any

import click

from anyorder._checks import cores
from anyorder._version import __version__
from anyorder.cli.common import echo
from anyorder.space import Space
from anyorder.strategies.policy.config import Config
from anyorder.strategies.policy.engines import ENGINES, choose, model_of, why_not

_N = 128  # variables for which "auto" is reported: the problems' default


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def info(as_json: bool) -> None:
    """Version, which engines can run here, and which one "auto" takes."""
    reasons = {name: why_not(name) for name in ENGINES}
    space = Space.binary(_N)
    engine, reason = choose(model_of(space, Config())[0])
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
