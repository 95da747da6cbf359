"""Other libraries on the paper's 42 distributions, compared with `auto`: campaigns and a table.

    python benchmarks/peers.py campaign cmaes:CatCMAwM 1000 64 128 256 > cmaes.toml
    anyorder bench run cmaes.toml --output cmaes.db        (extra `peers`)
    anyorder bench export cmaes.db results/peers/cmaes-1000.csv.gz
    python benchmarks/peers.py table

There is one run on each instance, with the settings that a library recommends. The table compares
with the mean of `auto` on the same instances (results/default.csv.gz), by a t-test of the
differences.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict

import numpy as np
from common import RESULTS
from default import SUITES, read
from scipy.stats import ttest_1samp

from anyorder.bench import curves

FOLDER = RESULTS / "peers"
FAMILIES = {"qubo": "QUBO", "nk": "NK", "nkd": "NK3"}


def title(problem: str) -> str:
    """The name of a distribution in campaigns: "NK3 64 2" for "nkd:n=64,k=2"."""
    family, _, parameters = problem.partition(":")
    return " ".join([FAMILIES[family], *(part.partition("=")[2] for part in parameters.split(","))])


def campaign(algorithm: str, budget: int, sizes: list[int], instances: int) -> None:
    """Print the campaign of one algorithm."""
    print(f'name = "{algorithm}"\nbudget = {budget}\ngrid = 100\ninstances = {instances}\nruns = 1')
    print(f'\n[[algorithm]]\nname = "{algorithm}"')
    for problem in SUITES["rows"]:
        if int(title(problem).split()[1]) in sizes:
            print(f'\n[[problem]]\nname = "{title(problem)}"\nproblem = "{problem}"')


def ours() -> dict[tuple[str, int], dict[int, float]]:
    """The mean of `auto` on each instance, by distribution and evaluations."""
    found: dict[tuple[str, int], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    rows = set(SUITES["rows"])
    for row in read():
        if row["strategy"] == "auto" and row["problem"] in rows:
            key = title(row["problem"]), int(row["evaluations"])
            found[key][int(row["instance"])].append(float(row["best"]))
    return {key: {k: float(np.mean(v)) for k, v in of.items()} for key, of in found.items()}


def outcome(gaps: np.ndarray) -> int:
    """1 or -1 if the mean of the differences is significantly above or below 0, else 0."""
    if len(gaps) < 2:
        return 0
    if np.ptp(gaps) == 0:
        return int(np.sign(gaps.mean()))
    p = ttest_1samp(gaps, 0).pvalue
    return int(math.copysign(1, gaps.mean())) if p < 0.05 else 0


def table() -> None:
    """For each library: on how many rows `auto` is above and below, and by how much."""
    reference, lines = ours(), dict[tuple[str, int], tuple[int, str]]()
    print("| | evaluations | rows | instances | `auto` above | below | median difference |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for path in sorted(FOLDER.glob("*.csv.gz")):
        results = curves.read(path)
        for algorithm in results.algorithms:
            cells = {row: results.cells[row, algorithm] for row in results.distributions}
            for mark in (1_000, 10_000):
                signs, shares, counts = [], [], []
                for row, cell in cells.items():
                    if mark > cell.grid[-1]:
                        continue
                    mine, values = reference[row, mark], cell.at(mark)
                    pairs = [
                        (mine[int(k)], value)
                        for k, value in zip(cell.instances, values, strict=True)
                        if int(k) in mine
                    ]
                    if not pairs:
                        continue
                    theirs = np.array([value for _, value in pairs])
                    gaps = np.array([own - value for own, value in pairs])
                    signs.append(outcome(gaps))
                    shares.append(gaps.mean() / abs(theirs.mean()))
                    counts.append(len(gaps))
                if not signs:
                    continue
                text = (
                    f"| {algorithm} | {mark:,} | {len(signs)} | {min(counts)} | "
                    f"{signs.count(1)} | {signs.count(-1)} | {100 * np.median(shares):+.1f} % |"
                )
                known = lines.get((algorithm, mark), (0, ""))
                lines[algorithm, mark] = max(known, (len(signs), text))  # of the larger campaign
    print("\n".join(text for _, (_, text) in sorted(lines.items())))


def main() -> None:
    """Print a campaign or the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="action", required=True)
    one = commands.add_parser("campaign")
    one.add_argument("algorithm")
    one.add_argument("budget", type=int)
    one.add_argument("sizes", type=int, nargs="+")
    one.add_argument("--instances", type=int, default=10)
    commands.add_parser("table")
    given = parser.parse_args()
    if given.action == "campaign":
        campaign(given.algorithm, given.budget, given.sizes, given.instances)
    else:
        table()


if __name__ == "__main__":
    main()
