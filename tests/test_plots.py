"""Pictures and tables of a run: their data, what they say, and that odd runs have them as well."""

from __future__ import annotations

import dataclasses
import pickle
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anyorder as ao
from anyorder.archive import Archive
from anyorder.archive.history import History
from anyorder.plotting.heatmaps import Influence as Moves
from anyorder.plotting.heatmaps import agreement, draw_influence, influence
from anyorder.plotting.runs import KINDS, _canvas, curve, diversity, overview, restarts
from anyorder.run.study.replay import load_strategy
from anyorder.strategies.policy.engines.reference import ReferenceEngine
from anyorder.strategies.policy.orders import order_keys
from anyorder.strategies.policy.rng import ORDER_G
from anyorder.strategies.policy.search import PolicySearch

FAST = ao.policy.Config(epochs=3, hidden=(4,))
NAMED = ao.Space({"flag": ao.Binary(), "value": ao.Categorical(["a", "b"]), "k": ao.Integer(2, 5)})


def history(
    space: ao.Space, values: Any, codes: Any = None, maximized: bool = True, **changes: Any
) -> History:
    """A made-up history, ten entries a generation."""
    values = np.asarray(values, np.float64)
    count = len(values)
    if codes is None:
        rng = np.random.default_rng(0)
        codes = rng.integers(0, space.cardinalities, (count, len(space)))
    codes = np.asarray(codes, np.int32).reshape(count, len(space))
    generations = changes.get("generations", np.arange(count) // 10)
    cached = changes.get("cached", np.zeros(count, np.bool_))
    archive = Archive(space, "maximize" if maximized else "minimize")
    for k, key in enumerate(archive.packing.pack(codes)):
        status = int(np.isnan(values[k]))
        archive.add(
            key, values[k], status, known=bool(cached[k]), generation=int(generations[k])
        )  # fmt: skip
    archive.restarts += changes.get("restarts", ())
    return History(archive)


def result(f: Any, space: ao.Space, budget: int, **options: Any) -> ao.Result:
    return ao.maximize(
        f, space, budget, **{"seed": 0, "algorithm": ao.policy.Policy(FAST), **options}
    )


def policy_of(run: ao.Result) -> PolicySearch:
    strategy = run.optimizer.strategy
    assert isinstance(strategy, PolicySearch)
    return strategy


def texts(figure: Any) -> set[str]:
    return {
        text
        for axes in figure.axes
        for text in (axes.get_xlabel(), axes.get_ylabel(), axes.get_title(loc="left"))
        if text
    }


# --- data ---------------------------------------------------------------------------------------


def test_diversity_is_what_the_optimizer_says() -> None:
    told = []

    def f(x: Any) -> float:
        return float("nan") if x[0] and x[1] else float(x.sum())

    run = ao.minimize(
        f,
        ao.Space.categorical(6, 3),
        300,
        seed=0,
        algorithm=ao.policy.Policy(FAST),
        on_failure="worst",
        callback=lambda o: told.append(o.strategy.diversity),
    )
    data = diversity(run.history)
    assert list(data.generations[: len(told)]) == list(range(len(told)))
    np.testing.assert_allclose(data.shares[: len(told)], told)


def test_agreement_counts_the_values_of_the_best_point() -> None:
    codes = [[0, 2], [1, 2], [0, 0], [1, 1]]
    space, values = ao.Space.categorical(2, 3), [3, np.nan, 7, 5]
    generations = np.array([0, 0, 2, 2])
    data = agreement(history(space, values, codes, generations=generations))
    assert data is not None
    np.testing.assert_array_equal(data.shares, [[0.5, np.nan, 0.5], [0, np.nan, 0.5]])
    low = agreement(history(space, values, codes, maximized=False, generations=generations))
    assert low is not None
    np.testing.assert_array_equal(low.shares, [[0.5, np.nan, 0.5], [1, np.nan, 0]])
    assert agreement(history(ao.Space.binary(3), [np.nan] * 4)) is None
    assert agreement(history(ao.Space.binary(3), [])) is None


def test_agreement_takes_windows_of_long_runs() -> None:
    data = agreement(history(ao.Space.binary(4), np.arange(2_570.0)))
    assert data is not None
    assert (data.shares.shape, data.first, data.end) == ((4, 100), 0, 257)
    assert np.isfinite(data.shares).all()


def test_what_was_known_already_is_no_evaluation() -> None:
    cached = np.arange(30) >= 20
    made = history(ao.Space.binary(3), np.arange(30.0), cached=cached, restarts=(10, 25))
    line = curve(made)
    assert list(line.paid[[0, 9, 19, 29]]) == [1, 10, 20, 20]
    assert line.restarts == (10, 20)
    assert restarts(made) == [1, 3]


# --- influence ----------------------------------------------------------------------------------


def test_influence_finds_planted_pairs() -> None:
    optimizer = ao.Optimizer(ao.Space.binary(12), seed=0, algorithm="policy:paper")
    for _ in range(20):
        points = optimizer.ask()
        optimizer.tell(points, (points[:, 0::2] != points[:, 1::2]).sum(axis=1))
    drawn = optimizer.state_dict()
    moves = optimizer.influence(20)
    np.testing.assert_array_equal(drawn["header"], optimizer.state_dict()["header"])
    index = np.arange(12)
    others = np.ones((12, 12), bool)
    others[index, index] = others[index, index ^ 1] = False
    assert moves.shape == (12, 12)
    assert (moves[index, index] == 0).all()
    assert moves[index, index ^ 1].mean() > 4 * moves[others].mean()
    assert (moves.argmax(axis=1) == (index ^ 1)).sum() >= 10


@pytest.mark.usefixtures("quick_reference")
@pytest.mark.parametrize(
    "settings", [{}, {"generation_order": "fixed"}, {"order_per": "population"}]
)
def test_influence_is_the_direct_computation(settings: dict[str, Any]) -> None:
    space = ao.Space([ao.Binary(), ao.Categorical(range(3)), ao.Categorical([7]), ao.Integer(0, 3)])
    graph = np.ones((4, 4), bool)
    graph[0, 3] = False
    states = {}
    for name in ("reference", "cpu"):
        config = ao.policy.Config(hidden=(6,), learning_rate=0.05, **settings)
        optimizer = ao.Optimizer(
            space, 3, algorithm=ao.policy.Policy(config, graph=graph, engine=name)
        )
        for _ in range(4):
            points = optimizer.ask(known="give")
            optimizer.tell(points, points @ [1, -2, 0, 1] + points[:, 0] * points[:, 1])
        states[name] = optimizer
    moves = states["reference"].influence(6)
    assert moves[0, 3] == 0
    assert not moves[2].any()
    assert not moves[:, 2].any()
    assert (moves[1, 0], moves[3, 1]) > (0.01, 0.01)
    np.testing.assert_allclose(states["cpu"].influence(6), moves, atol=1e-3)

    optimizer = states["reference"]
    policy = optimizer.strategy
    assert isinstance(policy, PolicySearch)
    engine, layout = policy._engine, policy._model
    assert isinstance(engine, ReferenceEngine)
    fixed = bool(settings.get("generation_order"))
    points = optimizer.ask(6, known="give")  # those of the next generation
    codes = space.encode(points)
    for i, j in np.argwhere(np.array([[1, 1, 0, 1]]).T * [1, 1, 0, 1]):
        changes = []
        for row, code in enumerate(codes):
            keys = order_keys(layout, 3, ORDER_G, 4, row).astype(float)
            keys[j] = keys[j] if fixed else -1
            other = code.copy()
            other[j] = (code[j] + 1 + row % (layout.cards[j] - 1)) % layout.cards[j]
            before, after = (
                engine._exchange(
                    engine._logits(policy._policy.theta[0], x[None], (keys < keys[i])[None], i),
                    i,
                )
                for x in (code, other)
            )
            changes.append(np.abs(after - before).sum() / 2)
        assert moves[i, j] == pytest.approx(np.mean(changes), abs=1e-12)
        assert not fixed or i > j or moves[i, j] == 0


def test_influence_without_inputs_or_choices() -> None:
    flat = ao.Optimizer(
        ao.Space.binary(3),
        0,
        algorithm=ao.policy.Policy(ao.policy.Config(network="univariate", hidden=())),
    )
    assert not flat.influence().any()
    assert (
        not ao.Optimizer(ao.Space.categorical(3, 1), 0, algorithm=ao.policy.Policy(FAST))
        .influence()
        .any()
    )
    with pytest.raises(ValueError, match="points is 0"):
        flat.influence(0)


# --- pictures -----------------------------------------------------------------------------------

LABELS = {
    "convergence": {"evaluations", "value (dots: each evaluation, line: best so far)"},
    "diversity": {"generation", "share of values unlike the generation's best"},
    "probabilities": {"generation", "variable", "candidates with the best point's value"},
    "influence": {"variable that changes", "variable that moves",
                  "mean change of its probabilities"},
}  # fmt: skip


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "front"])
@pytest.mark.parametrize("space", [NAMED, ao.Space.binary(1), ao.Space.categorical(30, 3)])
def test_each_kind_is_a_png_with_its_labels(space: ao.Space, kind: str, tmp_path: Path) -> None:
    def f(x: Any) -> float:
        first = next(iter(x.values())) if space.named else x[0]
        return float("nan") if first else 1.0

    run = result(f, space, 40, on_failure="worst")
    if space.named:
        assert run.plot(tmp_path / "a.png", kind) is None
        assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    figure = run.plot(kind=kind)
    expected = set().union(*LABELS.values(), LABELS) if kind == "all" else LABELS[kind]
    assert texts(figure) == expected


ODD = [[], [1.0], [np.nan] * 12, [-np.inf] * 12, np.arange(40.0)]


@pytest.mark.parametrize(("n", "values"), [*((20, values) for values in ODD), (1, ODD[-1]),
                                           (1_000, ODD[-1])])  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_odd_histories_have_pictures(n: int, values: Any, tmp_path: Path) -> None:
    space = ao.Space({f"variable_with_a_rather_long_name_{k}": ao.Binary() for k in range(n)})
    made = history(space, values, maximized=False, restarts=(20,) if len(values) > 20 else ())
    overview(made, lambda: None, "all", tmp_path / "odd.png")
    assert (tmp_path / "odd.png").stat().st_size > 10_000


@pytest.mark.parametrize(("n", "named"), [(3, True), (30, True), (300, False)])
def test_names_are_written_where_they_fit(n: int, named: bool) -> None:
    space = ao.Space({f"v{k}": ao.Binary() for k in range(n)})
    figure, axes = _canvas("influence")
    draw_influence(figure, axes, Moves(np.eye(n), "title", "label"), space)
    figure.canvas.draw()
    shown = [label.get_text() for label in axes.get_yticklabels()]
    assert (shown == list(space.names or ())) == named
    assert len(shown) <= 60


def test_influence_needs_a_policy_and_kinds_are_checked(tmp_path: Path) -> None:
    made = history(ao.Space.binary(2), [1.0, 2.0])
    texts = [t.get_text() for t in overview(made, lambda: None, "influence").axes[0].texts]
    assert any("was not kept" in text for text in texts), texts
    run = result(lambda x: 1.0, ao.Space.binary(3), 20)
    with pytest.raises(ValueError, match="kind is 'heat', expected one of convergence, div"):
        run.plot(kind="heat")


def test_links_of_the_default_are_drawn(tmp_path: Path) -> None:
    """Of two planted pairs; both from the result and from its study."""

    def f(x: Any) -> float:
        return float(3 * (x[0] == x[3]) + 2 * (x[2] != x[5]) + 0.1 * x.sum())

    study = tmp_path / "a.db"
    run = ao.maximize(f, ao.Space.binary(8), 1_000, seed=0, study=study)
    moves = run.optimizer.influence()
    assert {tuple(pair) for pair in np.argwhere(moves > 1e-9)} == {(0, 3), (3, 0), (2, 5), (5, 2)}
    np.testing.assert_allclose(moves[[0, 2], [3, 5]], [6.0, 4.0], rtol=1e-4)
    run.plot(tmp_path / "a.png", kind="influence")
    kept = load_strategy(str(study))
    assert kept is not None
    np.testing.assert_array_equal(kept.influence(), moves)
    with pytest.raises(ValueError, match="'ils' does not learn which variables interact"):
        ao.Optimizer(ao.Space.binary(3), algorithm="ils").influence()


def test_a_study_keeps_the_policy(tmp_path: Path) -> None:
    run = ao.maximize(
        lambda x: float(x.sum()),
        ao.Space.binary(5),
        60,
        seed=0,
        algorithm=ao.policy.Policy(FAST),
        study=tmp_path / "a.db",
        cache=False,
    )
    kept = load_strategy(str(tmp_path / "a.db"))
    assert kept is not None
    drawn = influence(kept, ao.Space.binary(5))
    assert drawn is not None
    assert (drawn.title, drawn.label) == ("learned by policy", PolicySearch.influence_unit)
    np.testing.assert_array_equal(kept.influence(), policy_of(run).influence())


def test_results_stay_picklable() -> None:
    run = result(lambda x: float(x.sum()), ao.Space.binary(5), 60)
    again = pickle.loads(pickle.dumps(run))
    assert again.best_value == run.best_value
    np.testing.assert_array_equal(policy_of(again).influence(), policy_of(run).influence())
    np.testing.assert_array_equal(again.history.values, run.history.values)
    assert pickle.loads(pickle.dumps(again)).optimizer.told == run.optimizer.told
    odd = ao.Space({"x": ao.Categorical([Fraction(1, 2), Fraction(1, 3)])})  # JSON has no fractions
    run = result(lambda p: float(p["x"]), odd, 2)
    assert pickle.loads(pickle.dumps(run)).best == run.best


# --- tables -------------------------------------------------------------------------------------


def test_to_pandas_has_a_row_for_each_entry() -> None:
    def f(point: dict[str, Any]) -> float:
        if point["k"] == 3:
            raise RuntimeError("three")
        return float(point["k"])

    run = result(f, NAMED, 16, on_failure="worst")
    table = run.to_pandas()
    record = ["value", "generation", "status", "cached", "seconds", "error"]
    assert list(table.columns) == ["flag", "value_", "k", *record]
    assert len(table) == len(run.history) > 16  # some of the 16 points came again
    points = table[["flag", "value_", "k"]].rename(columns={"value_": "value"})
    assert points.to_dict("records") == run.history.points
    np.testing.assert_array_equal(table["value"], run.history.values)
    assert set(table["status"]) == {"ok", "failed"}
    assert (table["status"] == "failed").equals(table["k"] == 3)
    assert table["error"][(table["k"] == 3) & ~table["cached"]].str.contains("three").all()
    assert table["cached"].sum() == len(table) - 16


def test_tables_of_nameless_and_empty_runs() -> None:
    run = result(lambda x: float(x.sum()), ao.Space.categorical(3, 4), 30)
    table = run.to_pandas()
    assert list(table.columns[:4]) == ["x0", "x1", "x2", "value"]
    np.testing.assert_array_equal(table[["x0", "x1", "x2"]], run.history.points)
    assert with_history(run, history(NAMED, [])).to_pandas().shape == (0, 9)
    clash = ao.Space({"value": ao.Binary(), "value_": ao.Binary(), "error": ao.Binary()})
    made = history(clash, [1.0, 2.0], [[0, 1, 0], [0, 1, 1]])
    table = with_history(run, made).to_pandas()
    assert list(table.columns[:3]) == ["value__", "value_", "error_"]
    assert list(table["error_"]) == [False, True]


def with_history(run: ao.Result, made: History) -> ao.Result:
    changed = dataclasses.replace(run)
    changed.__dict__["history"] = made
    return changed


def test_without_pandas_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    run = result(lambda x: 1.0, ao.Space.binary(2), 20, cache=False)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'anyorder\[pandas\]'"):
        run.to_pandas()


def test_a_figure_in_a_folder_that_is_not_there(tmp_path: Path) -> None:
    result = ao.maximize(sum, ao.Space.binary(4), 5, algorithm="random", progress=False)
    with pytest.raises(ValueError, match="there is no such folder"):
        result.plot(tmp_path / "none" / "a.png")
    with pytest.raises(ValueError, match="there is no such folder"):
        result.to_csv(tmp_path / "none" / "a.csv")


def test_a_result_as_csv_is_data_of_another_run(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    space = ao.Space({"a": ao.Integer(0, 9), "=b": ao.Categorical(["=1+1", "+x", "y"])})
    result = ao.maximize(
        lambda point: float(point["a"]), space, 12, algorithm="random", seed=0, progress=False
    )
    result.to_csv(tmp_path / "a.csv")
    optimizer = ao.Optimizer(space, algorithm="random", data=tmp_path / "a.csv")
    assert optimizer.best_value == result.best_value
    assert "=1+1" in (tmp_path / "a.csv").read_text(encoding="utf-8")
