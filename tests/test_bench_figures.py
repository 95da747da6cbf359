"""Figures of campaigns: their data, their styles, and that they are drawn."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from conftest import refused
from test_bench_stats import cell, results

from anyorder.bench import figures
from anyorder.bench.results import Results

pytest.importorskip("matplotlib")
from matplotlib.text import Text

RNG = np.random.default_rng(4)
GRID = np.array([1, 3, 10, 30, 100])


def campaign(algorithms: list[str], distributions: list[str], runs: int = 4) -> Results:
    def one(level: float) -> np.ndarray:
        return np.maximum.accumulate(level + RNG.normal(size=(runs, len(GRID))), axis=1)

    cells = {
        (d, a): cell(GRID.tolist(), one(k).tolist())
        for d in distributions
        for k, a in enumerate(algorithms)
    }
    return results(cells, "made up")


SOME = campaign(["policy", "PBIL", "cost $ and $", "a_b"], ["one", "two"])
DRAWN = {
    "convergence": figures.convergence,
    "ecdf": figures.ecdf,
    "rank_map": figures.rank_map,
    "critical_difference": figures.critical_difference,
}


def test_styles_are_all_different():
    labels = ["policy", "policy:paper", "policy:paper-code", *(f"other {k}" for k in range(20))]
    styles = figures.style(labels)
    assert list(styles) == labels
    assert len({(s.colour, s.line, s.marker) for s in styles.values()}) == len(labels)
    # in print without colours, and for the eyes without them
    assert len({(s.line, s.marker) for s in styles.values() if not s.ours}) == 20
    ours = [s for s in styles.values() if s.ours]
    others = [s for s in styles.values() if not s.ours]
    assert len(ours) == 3
    assert min(s.width for s in ours) > max(s.width for s in others)
    assert min(s.order for s in ours) > max(s.order for s in others)
    assert not {s.colour for s in ours} & {s.colour for s in others}


def test_ours_look_the_same_everywhere():
    alone = figures.style(["policy:paper-code"])["policy:paper-code"]
    assert figures.style(["x", "policy", "policy:paper-code"])["policy:paper-code"] == alone
    assert (
        figures.style(["policy:default"])["policy:default"]
        == figures.style(["policy:rate=2", "policy"])["policy"]
    )


def test_ours_are_told_by_the_results():
    labels = ["ours, beta 2", "authors", "PBIL"]
    styles = figures.style(labels, {"ours, beta 2", "authors"})
    assert [s.ours for s in styles.values()] == [True, True, False]
    assert styles["authors"] == figures.style(["policy:paper-code"])["policy:paper-code"]
    some = replace(campaign(labels, ["one"]), ours=frozenset(labels[:2]))
    figure = figures.rank_map(some)
    weights = {t.get_text(): t.get_fontweight() for t in figure.axes[0].get_xticklabels()}
    assert weights == {"ours, beta 2": "bold", "authors": "bold", "PBIL": "normal"}
    colours = [line.get_color() for line in figures.convergence(some).axes[0].lines]
    assert colours == [styles[label].colour for label in labels]


def test_all_ours_are_told_apart():
    labels = ["policy", "policy:default", *(f"lambda {k}" for k in range(5))]
    styles = figures.style(labels, labels)
    assert all(s.ours for s in styles.values())
    assert len({(s.colour, s.marker) for s in styles.values()}) == len(labels)
    assert len({s.colour for s in styles.values()}) >= 6
    mixed = figures.style([*labels, "PBIL"], labels)
    assert len({(s.line, s.marker) for s in mixed.values() if s.ours}) == len(labels)


def test_long_labels_and_titles_fit():
    long = "nevergrad:" + "very" * 20 + " long"
    some = replace(campaign(["policy", long], ["one", "NK " * 30]), name="many words " * 9)
    for name, draw in DRAWN.items():
        figure = draw(some)
        figure.draw_without_rendering()
        size = figure.get_window_extent()
        said = [text.get_text() for text in figure.findobj(Text) if text.get_text()]
        assert "nevergrad:veryveryve…ryveryveryvery long" in " ".join(said)
        assert long not in " ".join(said)
        for text in figure.findobj(Text):
            box = text.get_window_extent()
            if text.get_text() and "mathdefault" not in text.get_text():  # ticks out of view
                assert size.x0 <= box.x0 < box.x1 <= size.x1, (name, text)
        for axes in figure.axes:
            assert axes.get_window_extent().width > 0.25 * size.width, name


def test_band_by_hand():
    found = figures.band([1, 2], [[1, 5], [3, 5]], "error")
    assert found.mean.tolist() == [2, 5]
    assert found.low.tolist() == [1, 5]
    assert found.high.tolist() == [3, 5]
    alone = figures.band([1, 2], [[1, 5]])
    assert np.isnan([alone.low, alone.high]).all()
    boot = figures.band([1, 2], [[1, 5], [3, 5], [8, 5]])
    assert boot.low[0] < 4 < boot.high[0]
    with refused(ValueError, "(2,)", "(runs, 2)"):
        figures.band([1, 2], [1, 5])
    with refused(ValueError, "'sd'", "bootstrap"):
        figures.band([1, 2], [[1, 5]], "sd")


def test_ranks_are_in_order():
    found = figures.ranks(SOME)
    assert (np.diff(found.means) >= 0).all()
    assert sorted(found.algorithms) == sorted(SOME.algorithms)
    np.testing.assert_allclose(found.ranks.mean(axis=0), found.means)


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_and_written(name, tmp_path):
    starts = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}
    for suffix, start in starts.items():
        path = tmp_path / f"{name}.{suffix}"
        assert DRAWN[name](SOME, path, dark=suffix == "pdf") is None
        assert path.read_bytes().startswith(start)


def test_convergence_panels():
    three = campaign(["policy", "x"], list("abcd"))
    del three.cells["b", "x"]  # type: ignore[attr-defined]
    figure = figures.convergence(three, log=True, interval="error")
    assert [axes.get_title(loc="left") for axes in figure.axes] == list("abcd")
    assert [len(axes.lines) for axes in figure.axes] == [2, 1, 2, 2]
    first = figure.axes[0].lines[0]
    np.testing.assert_allclose(first.get_ydata(), three.cells["a", "policy"].curves.mean(axis=0))
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["policy", "x"]
    with refused(ValueError, "made up has no finished runs"):
        figures.convergence(Results("made up", ("a",), ("d",), {}))


def test_curves_of_one_run_and_without_values():
    nan = np.nan
    cells = {("d", "a"): cell([1, 2], [[nan, nan]]), ("d", "b"): cell([1, 2], [[-np.inf, 1]])}
    drawn = {name: DRAWN[name](results(cells)) for name in ("convergence", "ecdf", "rank_map")}
    for figure in drawn.values():
        figure.draw_without_rendering()
    curves = [line.get_ydata() for line in drawn["convergence"].axes[0].lines]
    assert len(curves) == 1  # the other one has no values


def test_critical_difference_names_all():
    figure = figures.critical_difference(SOME)
    said = " ".join(text.get_text() for text in figure.axes[0].texts)
    for label in ("policy", "PBIL", r"cost \$ and \$", "critical difference"):
        assert label in said
    assert "Friedman" in figure.axes[0].get_title(loc="left")


def test_distance(tmp_path):
    runs = RNG.integers(0, 9, (3, len(GRID)))
    curves = {"policy": (GRID, runs), "UMDA": (GRID[:2], runs[:, :2])}
    figure = figures.distance(curves, title="NK")
    assert [len(line.get_xdata()) for line in figure.axes[0].lines] == [5, 2]
    assert "Hamming" in figure.axes[0].get_ylabel()
    figures.distance(curves, tmp_path / "d.svg", dark=True)
    assert (tmp_path / "d.svg").exists()


def test_same_styles_for_a_part():
    styles = figures.style(SOME.algorithms)
    figure = figures.ecdf(SOME.only(["a_b"]), styles=styles)
    assert figure.axes[0].lines[0].get_color() == styles["a_b"].colour


@pytest.mark.parametrize("name", DRAWN)
def test_without_matplotlib(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with refused(ImportError, "pip install 'anyorder[plot]'"):
        DRAWN[name](SOME)
