"""A description of a run in words: `facts()["in_words"]`, which `anyorder show` prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST_NAMED = 3  # operators whose shares a description of a run contains


def describe(facts: Mapping[str, Any]) -> str:
    """Return a few sentences that describe the facts of a portfolio."""
    parts = [_climbs(facts), _operators(facts), _links(facts), _models(facts)]
    return " ".join(part for part in parts if part)


def _climbs(facts: Mapping[str, Any]) -> str:
    optima = facts["local_optima"]
    if not optima:
        return "No local optimum was reached yet."
    free = round(100 * facts["free_moves"])
    many = "One local optimum was" if optima == 1 else f"{optima} local optima were"
    return f"{many} reached; {free} % of all steps were certain to improve, and cost nothing."


def _operators(facts: Mapping[str, Any]) -> str:
    if not facts["local_optima"]:
        return ""
    shares = {name: share for name, share in facts["shares"].items() if share > 0}
    names = sorted(shares, key=lambda name: -shares[name])[:MOST_NAMED]
    found = facts["best_found_by"] or "data"
    text = f"The best point was found by {found}."
    if names:
        told = ", ".join(f"{name} {100 * shares[name]:.0f} %" for name in names)
        text += f" The largest shares of the evaluations are now those of {told}."
    return text


def _links(facts: Mapping[str, Any]) -> str:
    links, apart = facts["links"], facts["not_linked"]
    if not links + apart:
        return ""
    pairs = "One pair of variables is" if links == 1 else f"{links} pairs of variables are"
    return f"{pairs} known to interact, and {apart} not to."


def _models(facts: Mapping[str, Any]) -> str:
    error = facts["global_model_error"]
    if facts["global_model_trusted"]:
        text = f"The global model is trusted: it misses {100 * error:.0f} % of the squared gains."
    else:
        text = "The global model is not trusted."
    if facts["transform"] != "none":
        text += f" Both models work on the scale {facts['transform']}."
    if facts["noise"] > 0:
        text += f" Values of one point differ by {facts['noise']:.3g}."
    return text
