"""Charts as data: Plotly accepts them, they show what is there, and nothing in them is markup."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dashboards import HOSTILE, odd_studies

import anyorder as ao
from anyorder import charts
from anyorder.archive.history import History
from anyorder.charts import base, runs, variables
from anyorder.charts.shares import shares_of_variance
from anyorder.dashboard.following import Following
from anyorder.dashboard.parts import FIGURES
from anyorder.plotting.runs import COLOURS


def optimise(f: Any, space: ao.Space, budget: int = 60, **options: Any) -> ao.Result:
    options = {"algorithm": "random", "seed": 0, "on_failure": "worst", **options}
    return ao.maximize(f, space, budget, progress=False, **options)


def history_of(values: Any, space: ao.Space | None = None) -> History:
    """A history with these values, of points in order."""
    listed = iter([float(value) for value in values])
    space = space or ao.Space({"k": ao.Integer(0, 10**6)})
    return optimise(lambda p: next(listed), space, len(values), cache=False).history


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Following]:
    found = odd_studies(tmp_path_factory.mktemp("studies"))
    followed = {name: Following(path) for name, path in found.items()}
    for study in followed.values():
        study.read()
    return followed


def figures(study: Following) -> dict[str, Any]:
    """All figures of a study."""
    assert study.contents is not None
    history = study.contents.history
    made = {kind: charts.figure_of(history, kind) for kind in charts.KINDS}
    made |= {name: make(study, study.contents) for name, make in FIGURES.items()}
    made["time"] = runs.over_time({"run": (history, study.contents.ended)})
    for k in range(len(history.space.variables)):
        made[f"over {k}"] = variables.values_over_time(history, k)
        made[f"against {k}"] = variables.values_against_result(history, k)
    return made


def texts_in(value: Any) -> list[str]:
    """All texts that Plotly shows."""
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value
    return [text for one in inside for text in texts_in(one)] if hasattr(inside, "__iter__") else []


def test_every_figure_is_accepted_by_plotly(studies: dict[str, Following]) -> None:
    io = pytest.importorskip("plotly.io")
    for study in studies.values():
        for made in figures(study).values():
            text = json.dumps(made, allow_nan=False)
            io.from_json(text, skip_invalid=False)


def test_nothing_in_a_figure_is_markup(studies: dict[str, Following]) -> None:
    for made in figures(studies["hostile"]).values():
        for text in texts_in(made):
            assert "<" not in text
            assert "$" not in text
            assert not re.search(r"&(?!lt;|gt;|amp;|#36;)", text)
            assert text.isprintable()
            assert len(text) < 2_000


@pytest.mark.parametrize("text", HOSTILE)
def test_escaped_text_is_short_and_printable(text: str) -> None:
    escaped = base.escape(text)
    assert escaped.isprintable()
    assert not set("<>$") & set(escaped)
    assert len(escaped) <= 6 * base.LONGEST


def test_charts_do_not_import_plotly() -> None:
    code = "import sys, anyorder, anyorder.charts, anyorder.dashboard.pages; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"plotly", "matplotlib", "scipy", "starlette", "uvicorn", "pandas"}


# --- right before pretty -------------------------------------------------------------------------


def test_an_outlier_does_not_flatten_a_figure() -> None:
    values = np.random.default_rng(0).normal(size=300)
    values[[0, 150, 200]] = [-1e9, -1e12, -2e12]  # before the first tenth has ended, and after
    made = charts.figure_of(history_of(values))
    low, high = made["layout"]["yaxis"]["range"]
    assert -20 < low < high < 20
    (mark,) = [trace for trace in made["data"] if trace["name"] == "beyond the axis"]
    assert mark["marker"]["symbol"] == "triangle-down-open"
    assert set(mark["y"]) == {low}
    said = [float(text.removeprefix("beyond the axis: ")) for text in mark["hovertext"]]
    assert {-1e9, -1e12, -2e12} <= set(said)
    assert said == [float(f"{value:.6g}") for value in values if value < low]


def test_limits_are_percentiles_of_what_is_after_the_first_tenth() -> None:
    values = np.concatenate([np.full(100, -1_000.0), np.linspace(0, 1, 900)])
    low, high = charts.figure_of(history_of(values))["layout"]["yaxis"]["range"]
    assert -0.5 < low <= 0.05
    assert 1.0 <= high < 1.5


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((1, 1_000), ["1", "10", "100", "1,000"]),
        ((1, 20_000), ["1", "10", "100", "1,000", "10,000"]),
        ((1, 50), ["1", "2", "5", "10", "20", "50"]),
    ],
)
def test_logarithmic_ticks_are_plain_numbers(
    ends: tuple[float, float], expected: list[str]
) -> None:
    assert base.log_axis("evaluations", *ends)["ticktext"] == expected


def test_influence_of_an_untrained_policy_is_a_sentence() -> None:
    space = ao.Space.binary(6)
    policy = ao.policy.Policy(engine="reference")
    made = ao.maximize(lambda x: float(x.sum()), space, 5, algorithm=policy, seed=0, progress=False)
    found = charts.figure_of(made.history, "influence", strategy=lambda: made.optimizer.strategy)
    assert base.is_note(found)
    assert "has not learned anything yet" in found["layout"]["annotations"][0]["text"]


def test_colours_are_those_of_the_matplotlib_figures_and_differ_in_greyscale() -> None:
    assert base.LINES[:6] == COLOURS[:6]

    def grey(colour: str) -> float:
        red, green, blue = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
        return 0.299 * red + 0.587 * green + 0.114 * blue

    shades = [grey(colour) for _, colour in base.SHADES]
    assert shades == sorted(shades, reverse=True)
    assert min(-np.diff(shades)) > 0.15


def test_nothing_is_sent_anywhere() -> None:
    off = ("showSendToCloud", "displaylogo", "showLink", "showEditInChartStudio")
    assert not any(base.CONFIG[name] for name in off)


# --- what is drawn -------------------------------------------------------------------------------


def test_thinned_curves_keep_first_last_lowest_and_highest_of_each_column() -> None:
    rng = np.random.default_rng(0)
    x, y = np.arange(50_000.0), rng.normal(size=50_000).cumsum()
    kept = base.thin(x, y, 100)
    assert len(kept) <= 400
    assert {0, 49_999, int(y.argmin()), int(y.argmax())} <= set(kept.tolist())
    column = np.minimum(x / x[-1] * 100, 99).astype(int)
    for k in range(100):
        own = np.flatnonzero(column == k)
        wanted = {own[0], own[-1], own[y[own].argmin()], own[y[own].argmax()]}
        assert wanted == set(kept[column[kept] == k].tolist())


def test_values_over_time_show_absent_ones_and_items_of_lists(
    studies: dict[str, Following],
) -> None:
    assert studies["mixed"].contents is not None
    history = studies["mixed"].contents.history
    names = ["algo", "depth", "tree", "sub", "order"]
    over = {name: variables.values_over_time(history, k) for k, name in enumerate(names)}
    against = {name: variables.values_against_result(history, k) for k, name in enumerate(names)}

    def rows(made: Any, axis: str = "yaxis") -> list[str]:
        return list(made["layout"][axis]["ticktext"])

    assert rows(over["tree"]) == ["1", "2", "3", "absent"]
    assert rows(against["tree"], "xaxis") == ["1", "2", "3", "absent"]
    assert rows(over["sub"]) == ["x", "y", "z"]
    assert "with x" in rows(against["sub"], "xaxis")
    assert rows(over["order"]) == rows(against["order"]) == ["p", "q", "r"]
    assert np.asarray(against["order"]["data"][0]["z"]).shape == (3, 3)
    cells = np.array(over["algo"]["data"][0]["z"])
    np.testing.assert_allclose(cells.sum(axis=0), 1, atol=0.01)


def test_bars_that_overlap_are_in_lanes_of_their_own() -> None:
    nan = math.nan
    data = runs.Evaluations(
        np.arange(4), np.array([0.0, 0.5, 1.0, 3.0]), np.array([1.0, 2.0, 2.5, nan]),
        np.array([0, 1, 0, -1]), np.array([5.0, nan, 6.0, nan]), 10.0,
    )  # fmt: skip
    made = {trace["name"]: trace for trace in runs.workers(data)["data"]}
    assert made["ok"]["y"] == [0, 0]
    assert made["failed"]["y"] == [1]
    assert made["running"]["base"] == [3]
    assert made["running"]["x"] == [7]  # until now


# --- shares of the variance ----------------------------------------------------------------------


def test_shares_are_of_the_variance_between_values() -> None:
    space = ao.Space({"big": ao.Binary(), "small": ao.Binary(), "none": ao.Binary()})
    result = optimise(lambda p: 3.0 * p["big"] + p["small"], space, 2_000, cache=False)
    big, small, none = shares_of_variance(result.history)
    assert big == pytest.approx(0.9, abs=0.04)
    assert small == pytest.approx(0.1, abs=0.04)
    assert none < 0.01


def test_shares_of_a_large_run_are_those_of_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    space = ao.Space({"big": ao.Binary(), "small": ao.Binary()})
    result = optimise(lambda p: 3.0 * p["big"] + p["small"], space, 1_000, cache=False)
    whole = shares_of_variance(result.history)
    monkeypatch.setattr("anyorder.charts.shares._CELLS", 1_000)
    part = shares_of_variance(result.history)
    assert not np.array_equal(part, whole)
    np.testing.assert_allclose(part, whole, atol=0.08)


def test_shares_of_a_conditional_variable_are_among_the_points_that_have_it() -> None:
    space = ao.Space(
        {"on": ao.Binary(), "size": ao.Integer(0, 3, when={"on": 1}), "other": ao.Binary()}
    )
    result = optimise(lambda p: 100.0 * (1 - p["on"]) + p.get("size", 0), space, 400, cache=False)
    on, size, other = shares_of_variance(result.history)
    assert on > 0.9
    assert size > 0.99  # nothing else differs among them
    assert other < 0.02


def _additive(p: dict[str, Any]) -> float:
    return 8.0 * p["a"] + 4.0 * p["b"] + 2.0 * p["c"] + 0.5 * p["d"] + 0.1 * p["e"]


def _valley(p: dict[str, Any]) -> float:
    return -((p["a"] - 3) ** 2) - 0.4 * (p["b"] - 1) ** 2 - 0.15 * (p["c"] - 5) ** 2


def _product(p: dict[str, Any]) -> float:
    return float((p["a"] + 1) * (4 if p["k"] == "y" else 1) + 0.6 * p["b"])


def _steps(p: dict[str, Any]) -> float:
    return 10.0 * (p["k"] == "z") + 5.0 * (p["a"] > 4) + 2.0 * (p["b"] > 1) + 0.2 * p["c"]


def _waves(p: dict[str, Any]) -> float:
    return 3 * math.sin(p["a"]) + 1.5 * math.cos(p["b"]) + 0.5 * math.sin(p["c"]) + 0.05 * p["d"]


@pytest.mark.slow
@pytest.mark.parametrize("f", [_additive, _valley, _product, _steps, _waves])
def test_the_first_three_are_those_of_optuna(f: Any) -> None:
    """In fANOVA's order. PED-ANOVA asks what the best tenth has in common, and orders otherwise.

    A category of three cannot distinguish it as sharply as an integer of eight, whatever it
    explains: in `_product` and `_steps` the first two of PED-ANOVA are the other way round.
    """
    optuna = pytest.importorskip("optuna")
    pytest.importorskip("sklearn")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    integers = {name: ao.Integer(0, 7) for name in "abcde"}
    result = optimise(f, ao.Space({**integers, "k": ao.Categorical(["x", "y", "z"])}), 1_000)
    spread = {name: optuna.distributions.IntDistribution(0, 7) for name in integers}
    spread["k"] = optuna.distributions.CategoricalDistribution(("x", "y", "z"))
    study = optuna.create_study(direction="maximize")
    history = result.history
    study.add_trials(
        [
            optuna.trial.create_trial(params=point, distributions=spread, value=value)
            for point, value in zip(history.points, history.values.tolist(), strict=True)
        ]
    )
    shares = dict(zip(spread, shares_of_variance(history).tolist(), strict=True))
    ours = sorted(shares, key=lambda name: -shares[name])[:3]

    def first_three(evaluator: Any) -> list[str]:
        found = optuna.importance.get_param_importances(study, evaluator=evaluator)
        return [*found][:3]

    assert ours == first_three(optuna.importance.FanovaImportanceEvaluator(seed=0))
    theirs = first_three(optuna.importance.PedAnovaImportanceEvaluator())
    if f in (_product, _steps):
        theirs[:2] = theirs[1::-1]
    assert ours == theirs


# --- files and notebooks --------------------------------------------------------------------------


def test_a_notebook_shows_the_same_description(tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    result = optimise(lambda p: float(p["k"]), ao.Space({"k": ao.Integer(0, 99)}))
    for kind in charts.KINDS:
        found = result.figure(kind).to_dict()
        label = f"{result.algorithm}, seed {result.seed}"
        made = charts.figure_of(
            result.history, kind, strategy=lambda: result.optimizer.strategy, label=label
        )
        assert len(found["data"]) == len(made["data"])
        assert found["layout"]["xaxis"].get("title") == made["layout"]["xaxis"].get("title")


def test_without_plotly_a_notebook_shows_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyorder.result.find_spec", lambda name: None)
    result = optimise(lambda p: float(p["k"]), ao.Space({"k": ao.Integer(0, 99)}))
    assert hasattr(result.figure(), "savefig")


def test_an_unknown_kind_is_refused() -> None:
    result = optimise(lambda p: float(p["k"]), ao.Space({"k": ao.Integer(0, 99)}))
    with pytest.raises(ValueError, match="kind is 'pie', expected one of front, convergence"):
        charts.figure_of(result.history, "pie")
