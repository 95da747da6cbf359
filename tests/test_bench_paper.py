"""The paper as a whole: its folder of runs, claims, figures, page, list and panel of ranks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from anyorder.bench import claims, curves, paper_figures, paper_page, rank_panel, reproduce
from anyorder.bench.claims import CLAIMS, FAILS, HOLDS, OPEN, Claim, above
from anyorder.bench.items import ITEMS, Item
from anyorder.bench.paper_list import entries
from anyorder.bench.reproduce_all import STORE, Folder, Part, everything, join, shrunk
from anyorder.bench.results import Cell, Results
from anyorder.cli import main

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "results" / "reproduction"


def cell(values: Any, instances: Any = None, seeds: Any = None) -> Cell:
    """Runs that end at these values, on instances 0, 1, ... if none are given."""
    ends = np.asarray(values, float)
    places = np.arange(len(ends)) if instances is None else np.asarray(instances)
    numbers = np.zeros(len(ends), int) if seeds is None else np.asarray(seeds)
    steps = np.stack([ends - 2, ends - 1, ends], axis=1)
    return Cell(np.array([100, 1_000, 10_000]), steps, places, numbers, np.ones(len(ends)))


def folder(path: Path, item: str, cells: dict[tuple[str, str], Cell]) -> Folder:
    rows, labels = (tuple(dict.fromkeys(key[k] for key in cells)) for k in (0, 1))
    curves.write(Results(item, labels, rows, cells), path / f"{item}.csv.gz")
    return Folder(path)


# --- a folder of runs -----------------------------------------------------------------------------


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two items that share an algorithm, and no others."""
    kept = dict(ITEMS)
    one = Item("one", ("NK 64 1",), {"a": "random", "b": "rls"}, budget=40,
               mark=40)  # fmt: skip
    ITEMS.clear()
    ITEMS.update({"one": one, "two": replace(one, methods={"c": "random"})})
    yield
    ITEMS.clear()
    ITEMS.update(kept)


@pytest.mark.usefixtures("tiny")
def test_runs_are_done_once_and_shared_by_all_items(tmp_path: Path) -> None:
    there, said = Folder(tmp_path), []
    parts = [Part("one", None, None, 2, 2), Part("two", None, None, 2, 2)]
    assert there.do(parts, engine="cpu", progress=said.append) == "done"
    assert [text.rpartition(",")[0] for text in said] == ["one: all: 8 runs"]
    assert there.collect() == 8
    assert {path.name for path in tmp_path.iterdir()} >= {"one.csv.gz", STORE}
    (tmp_path / STORE).unlink()  # a copy without it goes on where it was
    again = Folder(tmp_path)
    a, c = again.results("one").cells["NK 64 1", "a"], again.results("two").cells["NK 64 1", "c"]
    np.testing.assert_array_equal(a.curves, c.curves)
    assert not again.missing([spec for part in parts for spec in part.specs()])
    assert len(again.missing(Part("one", None, None, 2, 3).specs())) == 2 * 2
    assert again.collect() == 0


@pytest.mark.usefixtures("tiny")
def test_nothing_is_started_after_the_time(tmp_path: Path) -> None:
    assert Folder(tmp_path).do([Part("one", None, None, 1, 1)], until=0.0) == "late"
    assert not (tmp_path / STORE).exists()


def test_runs_in_two_files_count_once() -> None:
    both = join(cell([1.0, 2.0], [0, 1]), cell([2.0, 3.0], [1, 2]))
    assert both.instances.tolist() == [0, 1, 2]
    assert both.at(10_000).tolist() == [1.0, 2.0, 3.0]
    other = replace(cell([1.0]), grid=np.array([1, 2, 3]))
    with pytest.raises(ValueError, match="different grids"):
        join(cell([1.0]), other)


def test_no_claim_is_decided_by_rows_that_are_not_there(tmp_path: Path) -> None:
    with shrunk():
        there = folder(tmp_path, "table-10000", {("NK 64 1", "authors"): cell([1.0, 2.0])})
        found = paper_page.verdicts(there)
    early = next(v for c, v in zip(CLAIMS, found, strict=True) if c.text.startswith("behind"))
    assert early == (claims.OPEN, "no runs of authors on n = 128 and 256")


def test_items_without_their_table_are_left_out(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("ANYORDER_NASBENCH101", raising=False)
    said: list[str] = []
    there = Folder(tmp_path)
    assert there.do([Part("nasbench", None, ("PBIL",), 1, 1)], progress=said.append) == "done"
    assert len(said) == 1
    assert said[0].startswith("nasbench is left out: NAS-Bench-101 requires its table")


def test_small_items_are_those_of_64_variables() -> None:
    before = dict(ITEMS)
    with shrunk():
        assert ITEMS["figure-rho"].rows == ("QUBO 64 5", "NK 64 4")
        assert {item.budget for item in ITEMS.values()} == {1_000}
        assert {part.item for part in everything(1, 1)} == {
            name for name, item in ITEMS.items() if not item.runs_of
        }
    assert before == ITEMS


# --- claims ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("difference", "expected"), [(1.0, HOLDS), (0.0, OPEN), (-1.0, FAILS)])
def test_two_standard_errors_decide(tmp_path: Path, difference: float, expected: str) -> None:
    noise = np.random.default_rng(0).normal(size=40) * 0.5
    noise -= noise.mean()
    seeds, instances = np.arange(40), np.arange(40) % 10
    there = folder(tmp_path, "figure-graph", {
        ("NK 256 4", "graph known"): cell(noise + difference, instances, seeds),
        ("NK 256 4", "graph unknown"): cell(noise[::-1], instances, seeds),
    })  # fmt: skip
    rule = above("NK 256 4", "graph known", ["graph unknown"])
    verdict = Claim("", "", "figure-graph", rule).decide(there)
    assert verdict.verdict == expected, verdict.number


def test_means_are_compared_on_the_same_instances(tmp_path: Path) -> None:
    there = folder(tmp_path, "figure-graph", {
        ("NK 256 4", "graph known"): cell([1.0, 1.1, 9.0, 9.0], [0, 0, 1, 1], [0, 1, 0, 1]),
        ("NK 256 4", "graph unknown"): cell([2.0, 2.1], [0, 0], [0, 1]),
    })  # fmt: skip
    gap, z = claims.Runs(there, "figure-graph").gap("NK 256 4", "graph known", "graph unknown")
    assert gap == pytest.approx(-1.0)
    assert z < -2


def test_without_runs_no_claim_is_decided(tmp_path: Path) -> None:
    for claim in CLAIMS:
        verdict = claim.decide(Folder(tmp_path))
        assert verdict.verdict == OPEN
        assert verdict.number.startswith("no runs of")


# --- figures that need no runs --------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.0, 0.25, 0.5, 0.75])
def test_available_inputs(p: float) -> None:
    n = 30
    alone, ordered = paper_figures.binomial(n, p), paper_figures.with_orders(n, p)
    assert alone.sum() == pytest.approx(1.0)
    assert ordered.sum() == pytest.approx(1.0)
    # an input is masked with the probability p, or 0.5 + 0.5 p with an order
    assert alone @ np.arange(n) == pytest.approx((n - 1) * (1 - p))
    assert ordered @ np.arange(n) == pytest.approx((n - 1) * (0.5 - 0.5 * p))
    if p == 0:
        np.testing.assert_allclose(ordered, 1 / n)  # contexts of all sizes are equally likely
    else:  # the paper's closed form
        for k in (0, 3, n - 1):
            beta = sum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(n - k, n + 1))
            assert ordered[k] == pytest.approx((1 - beta) / (1 - p) / n)


def test_masks_have_these_numbers_of_inputs() -> None:
    """As the policy draws them: the chi-square of 4,000 contexts."""
    from anyorder.strategies.policy.orders import before

    n, rng = 8, np.random.default_rng(0)
    found = np.zeros(n)
    for _ in range(4_000):
        seen = before(rng.integers(0, 2**32, n, dtype=np.uint32), 3) & (rng.random(n) >= 0.5)
        found[seen.sum()] += 1
    expected = 4_000 * paper_figures.with_orders(n, 0.5)
    assert ((found - expected) ** 2 / expected).sum() < 24.3  # 7 degrees of freedom, 0.1 %


def test_figures_without_runs_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name, draw in paper_figures.FREE.items():
        assert draw(tmp_path / f"{name}.png").stat().st_size > 10_000


def test_dropout_has_a_panel_for_each_kind_of_order(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    labels = list(ITEMS["figure-dropout"].methods)
    assert len(labels) == 6 * 16
    there = folder(tmp_path, "figure-dropout",
                   {("NK 256 4", label): cell([1.0, 2.0]) for label in labels[::7]})  # fmt: skip
    (path,) = paper_figures.draw("figure-dropout", there, tmp_path)
    assert path.name == "figure-dropout-NK-256-4.png"


# --- the page, the list, the command ------------------------------------------------------------


def test_a_page_in_one_file(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    there = folder(tmp_path, "figure-graph", {
        ("NK 256 4", label): cell(np.linspace(0, 1, 20), np.arange(20) % 10, np.arange(20))
        for label in ("graph known", "graph unknown")
    })  # fmt: skip
    paper_page.write(there, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text("utf-8")
    for claim in CLAIMS:
        assert claim.item in text
    assert "src='data:image/png;base64," in text
    assert "http" not in text
    assert "anyorder reproduce figure-graph" in text


def test_a_page_with_ranks(tmp_path: Path) -> None:
    there = folder(tmp_path, "figure-graph", {("NK 256 4", "graph known"): cell([1.0, 2.0])})
    lines = ["NK 64 1,auto,0,0,1,ok,0.75", "NK 64 1,<b>,0,0,1,ok,0.5", "NK 64 1,slow,0,0,9,late,"]
    text = "\n".join([",".join(rank_panel.HEAD), *lines, ""])
    (tmp_path / paper_page.RANKS).write_text(text, "utf-8")
    pytest.importorskip("matplotlib")
    paper_page.write(there, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "<td><b>auto</b></td><td class=n>1 of 2</td><td class=n>0.75</td>" in page
    assert "<td>&lt;b&gt;</td><td class=n>2 of 2</td>" in page
    assert "<td>slow</td>" not in page


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        (["holds"] * 2 + ["does not hold"], "2 hold, 1 does not hold, and 0 cannot be decided"),
        (["holds"] + ["cannot be decided"] * 2, "1 holds, 0 do not hold, and 2 cannot be decided"),
    ],
)
def test_the_tally_is_a_sentence(verdicts: list[str], said: str) -> None:
    found = [claims.Verdict(verdict, "") for verdict in verdicts]
    assert paper_page.tally(found) == f"Of 3 claims, {said}."


def test_the_list_names_files_that_there_are(tmp_path: Path) -> None:
    there = Folder(tmp_path)
    found = entries(there, paper_page.verdicts(there))
    assert {entry.kind for entry in found} == {"system", "equation", "table", "figure", "claim"}
    for entry in found:
        for name in filter(None, entry.code.split(", ")):
            base = ROOT if name.startswith("benchmarks/") else ROOT / "src" / "anyorder"
            assert (base / name).exists(), name
        assert not entry.test or (ROOT / entry.test).is_file(), entry.test
        assert entry.data in (*ITEMS, "")


def test_warnings() -> None:
    rows = {("QUBO 64 0", "BOA"): cell([1.0, 2.0])}
    few, note = reproduce.warnings("table-1000", Results("", ("BOA",), ("QUBO 64 0",), rows))
    assert "2 of the paper's 10 instances and 2 of its 100 runs" in few
    assert "BOA, as published" in note
    whole = {("NK 64 1", "authors"): cell(np.ones(10))}
    assert not reproduce.warnings("table-1000", Results("", ("authors",), ("NK 64 1",), whole))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("page", "--output", "nowhere"), "there is no such folder"),
        (("page", "table-1000"), "'table-1000' after 'page'"),
        (("ranks", "--rows", "NK 65 1"), "unknown row 'NK 65 1'"),
    ],
)
def test_what_the_command_refuses(arguments: tuple[str, ...], said: str) -> None:
    got = CliRunner().invoke(main, ["reproduce", *arguments])
    assert got.exit_code == 2
    assert said in got.output


def test_a_panel_is_continued_and_ranked(tmp_path: Path) -> None:
    panel = {"random": "random", "rls": "rls", "bad": "boa"}
    path, rows = tmp_path / "ranks.csv", ("NK 64 1",)
    first = list(rank_panel.jobs(panel, rows, 1, 300, path))
    assert [job.label for job in first] == list(panel)
    rank_panel.do(first[:2], path, 1, 60.0)
    assert [job.label for job in rank_panel.jobs(panel, rows, 1, 300, path)] == ["bad"]
    with path.open("a") as file:
        file.write("NK 64 1,bad,0,0,60,late,\n")
    assert [(place.algorithm, place.rank, place.of) for place in rank_panel.ranks(path)] == [
        ("rls", 1, 2), ("random", 2, 2),
    ]  # fmt: skip
