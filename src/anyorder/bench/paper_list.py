"""The list of what the paper contains: where each item is in the code, its test, data and state."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from importlib import resources
from typing import NamedTuple

from anyorder.bench.claims import CLAIMS, Verdict
from anyorder.bench.paper_page import counts
from anyorder.bench.reproduce_all import Folder

THERE, REDUCED, MISSING = "there", "reduced", "missing"


class Entry(NamedTuple):
    """An item of the paper; `state` is one of the constants above."""

    kind: str
    where: str
    item: str
    code: str
    test: str
    data: str
    state: str
    said: str  # what is missing, or the verdict on a claim


def entries(folder: Folder, found: Sequence[Verdict]) -> list[Entry]:
    """Return all items: systems, equations, tables, figures, and claims with their verdicts."""
    file = resources.files(__package__) / "paper" / "list.csv"
    listed = []
    for line in csv.DictReader(file.read_text("utf-8").splitlines(), delimiter=";"):
        state, said, data = THERE, "", line["data"]
        if data == MISSING:
            state, data = MISSING, ""
        elif data:
            full, cells, runs = counts(folder, data)
            if runs:
                state, said = REDUCED, f"{full} of {cells} cells have 100 runs, {runs:,} missing"
        if line["short"] and state == THERE:
            state, said = REDUCED, line["short"]
        fields = (line["kind"], line["where"], line["item"], line["code"], line["test"])
        listed.append(Entry(*fields, data, state, said))
    for claim, verdict in zip(CLAIMS, found, strict=True):
        no_runs = verdict.number.startswith("no runs")
        listed.append(
            Entry("claim", claim.where, claim.text, "bench/claims.py", "tests/test_bench_paper.py",
                  claim.item, MISSING if no_runs else THERE,
                  verdict.number if no_runs else verdict.verdict)
        )  # fmt: skip
    return listed
