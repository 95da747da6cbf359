"""The claims of the paper that can be measured, and what the runs in a folder say about each.

A claim is decided by a difference of means in units of its standard error: it holds from +2 on,
does not hold from -2 down, and cannot be decided in between. The means are taken over the same
instances, and the standard error is that between runs. Where a claim is about scores of algorithms
that were not run, the printed scores are used, and the verdict says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anyorder.bench import reproduce
from anyorder.bench.items import DROPS
from anyorder.bench.reproduce_all import Folder
from anyorder.bench.results import Cell, Floats

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be decided"
_ENOUGH = 2.0  # standard errors
_PRINTED = {"best_other": "the best other algorithm", "sigma_sigma": "(s,s)"}


class Verdict(NamedTuple):
    """The verdict on a claim, and the number that decides it, as text."""

    verdict: str
    number: str


class Missing(Exception):
    """The error that a cell which a claim is about has no runs."""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: where it is made, its text, and the item whose runs decide it."""

    where: str
    text: str
    item: str
    rule: Callable[[Runs], Verdict]

    def decide(self, folder: Folder) -> Verdict:
        """Return the verdict of the runs in a folder."""
        try:
            return self.rule(Runs(folder, self.item))
        except Missing as what:
            return Verdict(OPEN, f"no runs of {what}")


class Runs:
    """The runs of an item, for comparisons."""

    def __init__(self, folder: Folder, item: str) -> None:
        self.item = reproduce.find(item)
        self._folder, self._results = folder, folder.results(item)
        self._name = item

    def of(self, item: str) -> Runs:
        """Return the runs of another item."""
        return Runs(self._folder, item)

    def cell(self, row: str, label: str) -> Cell:
        """Return the runs of a label on a row."""
        found = self._results.cells.get((row, label))
        if found is None:
            raise Missing(f"{label} on {row}")
        return found

    def has(self, row: str, label: str) -> bool:
        """Return whether a label has runs on a row."""
        return (row, label) in self._results.cells

    def scores(self, row: str, label: str, mark: int | None = None) -> Floats:
        """Return the best values of all runs of a label, at the end or after `mark` evaluations."""
        return self.cell(row, label).at(mark or self.item.mark)

    def mean(self, row: str, label: str, mark: int | None = None) -> float:
        """Return the mean of `scores`."""
        return float(self.scores(row, label, mark).mean())

    def gap(self, row: str, one: str, other: str, mark: int | None = None) -> tuple[float, float]:
        """Return the difference of two means, and its size in standard errors."""
        return _gap(self.cell(row, one), self.cell(row, other), mark or self.item.mark)

    def printed(self, table: str, row: str, method: str) -> float:
        """Return the printed score of a method."""
        return reproduce.printed(table)[row, method]


def _gap(one: Cell, other: Cell, mark: int) -> tuple[float, float]:
    shared = np.intersect1d(one.instances, other.instances)
    a, b = (cell.at(mark)[np.isin(cell.instances, shared)] for cell in (one, other))
    if len(a) < 2 or len(b) < 2:
        raise Missing("two runs of each on the same instances")
    # means over instances are compared, so that instances with more runs do not count more
    parts = []
    for cell, values in ((one, a), (other, b)):
        instances = cell.instances[np.isin(cell.instances, shared)]
        groups = [values[instances == k] for k in shared]
        mean = float(np.mean([group.mean() for group in groups]))
        inner = [float(((group - group.mean()) ** 2).sum()) for group in groups]
        freedom = len(values) - len(groups)
        sd = math.sqrt(sum(inner) / freedom) if freedom else float(values.std(ddof=1))
        parts.append((mean, sd / math.sqrt(len(values))))
    difference = parts[0][0] - parts[1][0]
    error = math.hypot(parts[0][1], parts[1][1])
    return difference, difference / error if error else math.copysign(math.inf, difference)


def _decide(z: float) -> str:
    return HOLDS if z >= _ENOUGH else FAILS if z <= -_ENOUGH else OPEN


def _combine(verdicts: Sequence[str]) -> str:
    if FAILS in verdicts:
        return FAILS
    return OPEN if OPEN in verdicts else HOLDS


def _format(x: float) -> str:
    return f"{x:.4f}" if abs(x) < 10 else f"{x:.1f}"


def above(
    row: str, one: str, others: Sequence[str], mark: int | None = None
) -> Callable[[Runs], Verdict]:
    """Return the rule that a label has a higher mean than each of some others."""

    def rule(runs: Runs) -> Verdict:
        mine, said, verdicts = runs.mean(row, one, mark), [], []
        for other in others:
            _, z = runs.gap(row, one, other, mark)
            verdicts.append(_decide(z))
            said.append(f"{other} {_format(runs.mean(row, other, mark))} ({z:+.1f})")
        return Verdict(_combine(verdicts), f"{row}: {one} {_format(mine)}, {', '.join(said)}")

    return rule


def both(*rules: Callable[[Runs], Verdict]) -> Callable[[Runs], Verdict]:
    """Return the rule that each of several rules holds."""

    def rule(runs: Runs) -> Verdict:
        found = [one(runs) for one in rules]
        return Verdict(_combine([v.verdict for v in found]), "; ".join(v.number for v in found))

    return rule


def beats_printed(
    rows: Callable[[str], bool], label: str, table: str, method: str, need: float = 0.5
) -> Callable[[Runs], Verdict]:
    """Return the rule that a label beats a printed score on more than a share of the rows."""

    def rule(runs: Runs) -> Verdict:
        chosen = [row for row in runs.item.rows if rows(row) and runs.has(row, label)]
        if not chosen:
            raise Missing(label)
        wins = [
            runs.mean(row, label) > runs.printed(table, row, method)
            for row in chosen
            if (row, method) in reproduce.printed(table)
        ]
        share = sum(wins) / len(wins)
        return Verdict(
            HOLDS if share >= need and share > 0 else FAILS,
            f"{label} is above the printed score of {_PRINTED[method]} on {sum(wins)} of "
            f"{len(wins)} rows",
        )

    return rule


def wins_rows(
    rows: Callable[[str], bool], one: str, others: Sequence[str], need: float = 1.0
) -> Callable[[Runs], Verdict]:
    """Return the rule that a label has the highest mean on more than a share of the rows."""

    def rule(runs: Runs) -> Verdict:
        chosen = [row for row in runs.item.rows if rows(row) and runs.has(row, one)
                  and all(runs.has(row, x) for x in others)]  # fmt: skip
        if not chosen:
            raise Missing(", ".join([one, *others]))
        wins = sum(all(runs.mean(row, one) > runs.mean(row, x) for x in others) for row in chosen)
        return Verdict(
            HOLDS if wins >= need * len(chosen) else FAILS,
            f"{one} has a higher mean than {', '.join(others)} on {wins} of {len(chosen)} rows",
        )

    return rule


def evaluations_to(runs: Runs, row: str, label: str, share: float) -> int:
    """Return the number of evaluations after which the mean curve has this share of its gain."""
    cell = runs.cell(row, label)
    curve = cell.curves.mean(axis=0)
    goal = curve[0] + share * (curve[-1] - curve[0])
    return int(cell.grid[np.flatnonzero(curve >= goal)[0]])


_QUBO, _NK, _NK256, _QUBO256 = "QUBO 128 5", "NK 128 4", "NK 256 4", "QUBO 256 5"


def _size(*sizes: int) -> Callable[[str], bool]:
    return lambda row: any(f" {n} " in row for n in sizes)


def _stagnates(runs: Runs) -> Verdict:
    at = [evaluations_to(runs, f"QUBO 128 {k}", "authors", 0.99) for k in range(6)]
    return Verdict(
        HOLDS if max(at) <= 4_000 else FAILS, f"99 % of the gain by {min(at):,} to {max(at):,}"
    )


def _s_shape(runs: Runs) -> Verdict:
    at = [evaluations_to(runs, f"NK3 128 {k}", "authors", 0.5) for k in (1, 2, 4, 8)]
    return Verdict(
        HOLDS if at == sorted(at) else FAILS,
        "half of the gain by " + ", ".join(f"{x:,}" for x in at) + " for K 1, 2, 4, 8",
    )


def _unfinished(runs: Runs) -> Verdict:
    at = evaluations_to(runs, "NK3 128 8", "authors", 0.99)
    return Verdict(HOLDS if at > 9_000 else FAILS, f"99 % of the gain by {at:,}")


def _dropout_best(row: str) -> Callable[[Runs], Verdict]:
    def rule(runs: Runs) -> Verdict:
        plain, rest = "(s,s) pG 0 pT 0", []
        for label in runs.item.methods:
            if label != plain and runs.has(row, label):
                rest.append((runs.gap(row, plain, label)[1], label))
        if not rest:
            raise Missing(f"dropout on {row}")
        z, least = min(rest)
        over = sum(x < 0 for x, _ in rest)
        # among so many comparisons one of three standard errors is expected by chance
        verdict = FAILS if z < -3 else HOLDS if over == 0 and z > _ENOUGH else OPEN
        return Verdict(
            verdict,
            f"{row}: {_format(runs.mean(row, plain))}; {over} of {len(rest)} variants have a "
            f"higher mean, by at most {-z:.1f} standard errors ({least}, "
            f"{_format(runs.mean(row, least))}, {len(runs.scores(row, least))} runs)",
        )

    return rule


def _best_of(runs: Runs, row: str, kind: str) -> str:
    labels = [f"{kind} pG {g:g} pT {t:g}" for g in DROPS for t in DROPS]
    there = [label for label in labels if runs.has(row, label)]
    if not there:
        raise Missing(f"{kind} on {row}")
    return max(there, key=lambda label: runs.mean(row, label))


def _dropout_helps_fixed(runs: Runs) -> Verdict:
    best, none = _best_of(runs, _NK256, "(d,d)"), "(d,d) pG 0 pT 0"
    return above(_NK256, best, [none])(runs)


def _no_masks(runs: Runs) -> Verdict:
    found = []
    for row in (_NK256, _QUBO256):
        plain = "(s,s) pG 0 pT 0"
        found += [above(row, plain, [_best_of(runs, row, k)])(runs) for k in ("(d,p)", "(s,p)")]
    return Verdict(_combine([v.verdict for v in found]), "; ".join(v.number for v in found))


def _no_masks_as_masks(runs: Runs) -> Verdict:
    said, verdicts = [], []
    for free, bound in (("(d,p)", "(d,s)"), ("(s,p)", "(s,d)")):
        one, other = (_best_of(runs, _NK256, kind) for kind in (free, bound))
        _, z = runs.gap(_NK256, other, one)
        verdicts.append(HOLDS if z > -_ENOUGH else FAILS)
        said.append(f"{one} {_format(runs.mean(_NK256, one))}, {other} "
                    f"{_format(runs.mean(_NK256, other))}")  # fmt: skip
    return Verdict(_combine(verdicts), "; ".join(said))


def _depth(end: str) -> Callable[[Runs], Verdict]:
    return above("NK3 128 8", f"4 hidden layers{end}", [f"1 hidden layer{end}"])


def _similar(runs: Runs) -> Verdict:
    labels = [f"{k} hidden layer{'s' * (k > 1)}, tables" for k in (1, 2, 4)]
    found = [(runs.mean(_QUBO, label), label) for label in labels]
    (low, least), (high, most) = min(found), max(found)
    _, z = runs.gap(_QUBO, most, least)
    return Verdict(FAILS if z > 3 else HOLDS, f"{_format(low)} to {_format(high)} ({z:.1f})")


def _minutes(runs: Runs) -> Verdict:
    took = [runs.cell(_QUBO, f"E {e}").seconds for e in (1, 100)]
    one, many = (float(x.mean()) * 100 for x in took)
    return Verdict(
        HOLDS if many > one else FAILS, f"100 runs: {one:.1f} s with E 1, {many:.1f} s with E 100"
    )


def _critic_twice(runs: Runs) -> Verdict:
    row, more = "NK 128 4", runs.of("table-10000")
    ratio = float(np.median(runs.cell(row, "critic").seconds))
    ratio /= float(np.median(more.cell(row, "authors").seconds))
    return Verdict(HOLDS if 1.4 < ratio < 3 else FAILS, f"{ratio:.1f} times as long on {row}")


def _alpha(runs: Runs) -> Verdict:
    said, verdicts = [], []
    for row, claimed in ((_QUBO, "alpha 0.001"), (_NK, "alpha 10")):
        others = [label for label in runs.item.methods if label != claimed]
        best = max((runs.mean(row, label), label) for label in others)
        _, z = runs.gap(row, claimed, best[1])
        verdicts.append(FAILS if z <= -_ENOUGH else HOLDS)
        said.append(
            f"{row}: {claimed} {_format(runs.mean(row, claimed))}, best other {best[1]} "
            f"{_format(best[0])} ({z:+.1f})"
        )
    return Verdict(_combine(verdicts), "; ".join(said))


def _gibbs_plateau(runs: Runs) -> Verdict:
    found = [above(row, "(s,s)", [f"G {g}" for g in (1, 2, 5, 10, 20)])(runs) for row in
             (_QUBO, _NK)]  # fmt: skip
    rise = runs.gap(_QUBO, "G 10", "G 1")[1], runs.gap(_QUBO, "G 20", "G 10")[1]
    more = HOLDS if rise[0] > _ENOUGH and rise[1] < _ENOUGH else FAILS
    number = f"{_QUBO}: G 10 above G 1 by {rise[0]:.1f}, G 20 above G 10 by {rise[1]:.1f}; "
    return Verdict(_combine([more, *(v.verdict for v in found)]), number + found[0].number)


def _lambda_qubo(runs: Runs) -> Verdict:
    labels = list(runs.item.methods)
    means = {label: runs.mean(_QUBO, label) for label in labels}
    low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    _, z = runs.gap(_QUBO, high, low)
    return Verdict(
        FAILS if z > 3 else HOLDS,
        f"{low} {_format(means[low])} to {high} {_format(means[high])}, "
        f"{means[high] / means[low] - 1:.1%} more ({z:+.1f})",
    )


def _beta_range(runs: Runs) -> Verdict:
    said, verdicts = [], []
    for row in (_QUBO, _NK256):
        good = max(("beta 1", "beta 5"), key=lambda label: runs.mean(row, label))
        rest = [label for label in runs.item.methods if label not in ("beta 1", "beta 5")]
        best = max(rest, key=lambda label: runs.mean(row, label))
        _, z = runs.gap(row, good, best)
        verdicts.append(FAILS if z <= -_ENOUGH else HOLDS)
        said.append(f"{row}: {good} {_format(runs.mean(row, good))}, best other {best} "
                    f"{_format(runs.mean(row, best))} ({z:+.1f})")  # fmt: skip
    return Verdict(_combine(verdicts), "; ".join(said))


def _early(runs: Runs) -> Verdict:
    rows = [row for row in runs.item.rows if _size(128, 256)(row)]
    if not rows:
        raise Missing("authors on n = 128 and 256")
    table = "global_1000"
    behind = sum(
        runs.mean(row, "authors", 1_000) < runs.printed(table, row, "best_other") for row in rows
    )
    return Verdict(
        HOLDS if behind > len(rows) / 2 else FAILS,
        f"authors is below the printed best other on {behind} of {len(rows)} rows at 1,000",
    )


def _pbil_best(runs: Runs) -> Verdict:
    return wins_rows(
        lambda row: not row.startswith("NK3"), "PBIL", ["MIMIC", "BOA, as published"], 0.5
    )(runs)


def _large(runs: Runs) -> Verdict:
    row, others = "NK 1024 8", ("PBIL", "(1+1) EA", "hill climbing")
    mine = runs.mean(row, "shared")
    there = {label: runs.mean(row, label) for label in others if runs.has(row, label)}
    if not there:
        raise Missing("rivals")
    over = [label for label, mean in there.items() if mean > mine]
    said = ", ".join(f"{label} {_format(mean)}" for label, mean in there.items())
    return Verdict(FAILS if over else HOLDS, f"shared {_format(mine)}, {said}")


def _fast_printed(runs: Runs) -> Verdict:
    return beats_printed(_size(64, 128), "fast", "fast_1000", "best_other", 0.5)(runs)


CLAIMS = (
    Claim("4.1, figure 1a", "(s,s) ends above the four other ways to choose orders",
          "figure-orders",
          above(_NK256, "(s,s)", ["(d,d)", "(d,s)", "(s,d)", "learned"])),
    Claim("4.1, figure 1", "(d,s), with a fixed order of generation, rises earlier",
          "figure-orders",
          above(_NK256, "(d,s)", ["(s,s)"], 5_000)),
    Claim("4.1, figure 1", "training under random orders matters most: (s,d) is far below",
          "figure-orders", above(_NK256, "(s,s)", ["(s,d)"])),
    Claim("4.1, figure 1", "a learned order gets good scores and stays below (s,s)",
          "figure-orders", both(above(_NK256, "learned", ["(d,d)"]),
                                above(_NK256, "(s,s)", ["learned"]))),
    Claim("4.2, table 4", "often the best of all on n = 128 and 256 after 10,000", "table-10000",
          beats_printed(_size(128, 256), "authors", "global_10000", "best_other")),
    Claim("M, table 4", "above PBIL on n = 128 and 256 after 10,000", "table-10000",
          wins_rows(lambda row: _size(128, 256)(row) and not row.startswith("NK3"), "authors",
                    ["PBIL"])),
    Claim("M, table 4", "above MIMIC and BOA on n = 128 and 256 after 10,000", "table-10000",
          wins_rows(_size(128, 256), "authors", ["MIMIC", "BOA, as published"])),
    Claim("M, table 4", "PBIL is the best of the three older EDAs", "table-10000", _pbil_best),
    Claim("M, table 4", "not the best on n = 64 after 10,000", "table-10000",
          beats_printed(_size(64), "best other", "global_10000", "sigma_sigma")),
    Claim("M", "the best of all on n = 64 after 1,000", "table-1000",
          beats_printed(lambda row: " 64 " in row and not row.startswith("NK3"), "authors",
                        "global_1000", "best_other", 1.0)),
    Claim("4.2", "behind others on n = 128 and 256 after 1,000", "table-1000", _early),
    Claim("M, figure 6", "QUBO, n = 128: the best scores after 3,000 to 4,000 evaluations",
          "figure-qubo", _stagnates),
    Claim("M, figure 7", "NK3, n = 128: an S-shaped rise, later for higher K", "figure-nk3",
          _s_shape),
    Claim("M, figure 7", "NK3, n = 128, K 8: no convergence within 10,000", "figure-nk3",
          _unfinished),
    Claim("M, figure 7", "NK3, n = 128, K 2 and 4: above all others after 10,000", "table-10000",
          beats_printed(lambda row: row in ("NK3 128 2", "NK3 128 4"), "authors", "global_10000",
                        "best_other", 1.0)),
    Claim("N.1, figure 8a", "dropout helps (d,d)", "figure-dropout", _dropout_helps_fixed),
    Claim("N.1, figure 8", "no dropout variant is better than (s,s) without it, NK 256 4",
          "figure-dropout", _dropout_best(_NK256)),
    Claim("N.1, figure 9", "no dropout variant is better than (s,s) without it, QUBO 256 5",
          "figure-dropout", _dropout_best(_QUBO256)),
    Claim("N.2, figures 10, 11", "(d,p) and (s,p) are at best like (d,s) and (s,d)",
          "figure-dropout", _no_masks_as_masks),
    Claim("N.2, figures 10, 11", "(d,p) and (s,p) stay below (s,s)", "figure-dropout", _no_masks),
    Claim("N.3, figure 12", "a known graph is faster at first", "figure-graph",
          both(*(above(row, "graph known", ["graph unknown"], 1_000)
                 for row in (_QUBO, _NK256)))),
    Claim("N.3, figure 12", "without the graph the search ends above", "figure-graph",
          both(*(above(row, "graph unknown", ["graph known"]) for row in (_QUBO, _NK256)))),
    Claim("N.4, figure 13", "smaller populations converge faster", "figure-lambda",
          both(*(above(row, "lambda 10", ["lambda 20", "lambda 50"], 1_000)
                 for row in (_QUBO, _NK)))),
    Claim("N.4, figure 13", "lambda 20 or 50 is better on NK 128 4", "figure-lambda",
          both(above(_NK, "lambda 20", ["lambda 10"]), above(_NK, "lambda 50", ["lambda 10"]))),
    Claim("N.4, figure 13", "lambda hardly matters on QUBO", "figure-lambda", _lambda_qubo),
    Claim("N.5, figure 14", "low beta is faster", "figure-beta",
          both(*(above(row, "beta 0.1", ["beta 5"], 2_000) for row in (_QUBO, _NK256)))),
    Claim("N.5, figure 14", "low beta converges too early", "figure-beta",
          both(*(above(row, "beta 1", ["beta 0"]) for row in (_QUBO, _NK256)))),
    Claim("N.5, figure 14", "beta 100 hinders convergence", "figure-beta",
          both(*(above(row, "beta 1", ["beta 100"]) for row in (_QUBO, _NK256)))),
    Claim("N.5, figure 14", "beta from 1 to 5 is best", "figure-beta", _beta_range),
    Claim("N.6, figure 15", "a univariate model converges fastest", "figure-mechanism",
          both(*(above(row, "univariate, tables",
                       [x for x in ("linear, tables", "1 hidden layer, tables")], 2_000)
                 for row in (_QUBO, "NK3 128 8")))),
    Claim("N.6, figure 15", "linear networks are below univariate ones", "figure-mechanism",
          both(*(above(row, "univariate, tables", ["linear, tables"])
                 for row in (_QUBO, "NK3 128 8")))),
    Claim("N.6, figure 15a", "1, 2 and 4 hidden layers are alike on QUBO 128 5",
          "figure-mechanism", _similar),
    Claim("N.6, figure 15b", "NK3 128 8: deeper is better, by the reading of the text",
          "figure-mechanism", _depth("")),
    Claim("N.6, figure 15b", "NK3 128 8: deeper is better, by the reading of the tables",
          "figure-mechanism", _depth(", tables")),
    Claim("N.7, figure 16", "more epochs end higher", "figure-epochs",
          both(*(above(row, "E 100", ["E 1", "E 5", "E 10"]) for row in (_QUBO, _NK)))),
    Claim("N.7", "more epochs take longer", "figure-epochs", _minutes),
    Claim("O, figure 17", "NAS-Bench-101: the best after 1,000 and after 10,000", "nasbench",
          both(*(above("NAS-Bench-101", "authors", ["PBIL", "(1+1) EA", "hill climbing"], mark)
                 for mark in (1_000, 10_000)))),
    Claim("P, figure 18", "rho near 1 is faster at first", "figure-rho",
          both(*(above(row, "rho 0.999", ["rho 0.9"], 1_000) for row in (_QUBO, _NK)))),
    Claim("P, figure 18", "a smaller rho ends higher", "figure-rho",
          both(*(above(row, "rho 0.9", ["rho 0.999"]) for row in (_QUBO, _NK)))),
    Claim("P, table 6", "fast is often the best on n = 64 and 128 after 1,000", "table-fast",
          _fast_printed),
    Claim("Q, table 7", "ranks are better than a critic in most settings", "table-critic",
          wins_rows(lambda row: True, "ranks", ["critic"], 0.5)),
    Claim("Q", "a critic takes nearly twice the time", "table-critic", _critic_twice),
    Claim("Q", "alpha 10 is best for NK, and 0.001 for QUBO", "figure-alpha", _alpha),
    Claim("R, table 8", "separate networks are slightly better on these sizes", "table-shared",
          wins_rows(lambda row: True, "separate", ["shared"], 0.5)),
    Claim("R, figure 19", "n = 1,024: separate networks perform poorly", "figure-large",
          above("NK 1024 8", "shared", ["separate"])),
    Claim("R, figure 19", "n = 1,024: shared parameters are among the best", "figure-large",
          _large),
    Claim("S, figure 20", "Gibbs: more sweeps help less and less, all stay below (s,s)",
          "figure-gibbs", _gibbs_plateau),
    Claim("G", "the ratio is better than ln pi", "figure-objective",
          both(*(above(row, "ratio", ["ln pi"]) for row in (_QUBO, _NK)))),
)  # fmt: skip
