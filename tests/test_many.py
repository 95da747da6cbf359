"""solve_many: every run is what it is alone; runs stop, fail and are recorded independently."""

from __future__ import annotations

import csv
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import refused

import anyorder as ao
from anyorder.plotting.runs import averages, band
from anyorder.policy.many import objective
from anyorder.policy.many.host import run_host
from anyorder.strategies.policy.advantage import advantages
from anyorder.strategies.policy.engines import make_model

# duplicates are paid for, as in solve_many and in the paper


def alone_by(search: Any, *arguments: Any, **options: Any) -> ao.Result:
    """A single run of the policy with the configuration, engine and graph of `solve_many`."""
    own = {key: options.pop(key) for key in ("config", "engine", "graph") if key in options}
    result: ao.Result = search(*arguments, algorithm=ao.policy.Policy(**own), **options)
    return result


paid = partial(alone_by, ao.maximize, cache=False)

FAST = ao.policy.Config(epochs=3, hidden=(4,))
# at this rate policies collapse within the budgets used here
RESTARTING = FAST.replace(learning_rate=0.1, restart_agreement=0.7, restart_patience=2)
BITS = ao.Space.binary(6)
NAMED = ao.Space({"flag": ao.Binary(), "algo": ao.Categorical(["a", "b"]), "k": ao.Integer(2, 5)})
# values that are not their codes, and a variable that cannot vary
MIXED = ao.Space(
    [ao.Binary(), ao.Categorical([7, 3, 5]), ao.Integer(-2, 4), ao.Integer(3, 3), ao.Binary()]
)
NK = ao.problems.nk(12, 2, 0)


def weighed(point: np.ndarray) -> float:
    """A function of any integer vector with few ties."""
    return float(np.sin(np.arange(1, len(point) + 1) * (1 + point)).sum())


def total(points: Any) -> Any:
    return points.sum(-1)


def many(f: Any = total, space: ao.Space | None = BITS, **options: Any) -> ao.policy.Runs:
    defaults = {"runs": 3, "budget": 40, "config": FAST, "engine": "cpu"}
    return ao.policy.solve_many(f, space=space, **(defaults | options))


def assert_same_as_alone(run: ao.policy.Run, alone: ao.Result) -> None:
    np.testing.assert_array_equal(run.values, alone.history.values)
    assert run.evaluations == len(alone.history)
    assert run.best_value == alone.best_value
    np.testing.assert_equal(run.best, alone.best)
    assert run.restarts == alone.history.restarts
    assert (run.stop_reason, run.seed) == (alone.stop_reason, alone.seed)


def assert_same_run(one: ao.policy.Run, other: ao.policy.Run) -> None:
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.curve, other.curve)
    np.testing.assert_equal(one.best, other.best)
    assert one.restarts == other.restarts
    assert (one.best_value, one.seed, one.stop_reason) == (
        other.best_value, other.seed, other.stop_reason,
    )  # fmt: skip


# --- a run in a batch is the run alone -----------------------------------------------------------

SMALL = {"epochs": 4, "hidden": (5,)}
CONFIGS = {
    "default": ao.policy.PRESETS["default"].replace(**SMALL),
    "text": ao.policy.PRESETS["paper"].replace(**SMALL),
    "authors": ao.policy.PRESETS["paper-code"].replace(epochs=4, hidden=(5, 5)),
    "restarts": RESTARTING,
    "dropout": RESTARTING.replace(drop_generation=0.4, drop_training=0.3, drop_decay=0.9),
    "adam": RESTARTING.replace(adam="kept"),
    "hasty": FAST.replace(restart_agreement=0.1, restart_patience=3),
    "orders": FAST.replace(training_order="generation", order_per="population", ties="average"),
    "univariate": FAST.replace(network="univariate", population=3),
    "critic": RESTARTING.replace(critic=2.0, adam="kept"),
    "gibbs": RESTARTING.replace(generation_order="gibbs", training_order="none", gibbs_sweeps=2),
}


LONG = ("dropout", "adam", "critic")  # on the reference


@pytest.mark.usefixtures("quick_reference")
@pytest.mark.parametrize(
    ("name", "engine"),
    [
        pytest.param(
            name, engine,
            marks=[pytest.mark.slow] if engine == "reference" and name in LONG else [],
        )
        for name in CONFIGS
        for engine in ("cpu", "reference")
    ],
)  # fmt: skip
def test_a_run_is_what_it_is_alone(name: str, engine: str) -> None:
    options: dict[str, Any] = {"config": CONFIGS[name], "engine": engine}
    seeds, budget = [5, 0, 2**64 - 1, 77], 303
    if engine == "reference":  # slow: as long as some restart twice, or two of several
        restarts = CONFIGS[name].learning_rate == RESTARTING.learning_rate
        seeds, budget = (seeds, 123) if restarts else (seeds[1:3], 53)
    runs = ao.policy.solve_many(weighed, space=MIXED, seeds=seeds, budget=budget, **options)
    assert (runs.engine, runs.config) == (engine, CONFIGS[name])
    for run, seed in zip(runs, seeds, strict=True):
        assert_same_as_alone(run, paid(weighed, MIXED, budget, seed=seed, **options))
    if options["config"].learning_rate == RESTARTING.learning_rate:
        told = {run.restarts for run in runs}
        assert len(told) > 1, "the runs start afresh at different times"
        assert max(map(len, told)) > 1, "some do twice"


@pytest.mark.parametrize("population", [7, 10, 200])
@pytest.mark.parametrize("budget", [1, 69, 70])
def test_budgets_that_are_no_whole_generations(population: int, budget: int) -> None:
    config = RESTARTING.replace(population=population)
    runs = many(weighed, config=config, budget=budget, runs=2)
    for run in runs:
        alone = paid(weighed, BITS, budget, seed=run.seed, config=config, engine="cpu")
        assert_same_as_alone(run, alone)
        assert run.evaluations == budget


def test_a_restart_after_the_last_generation_is_noted() -> None:
    last = many(weighed, config=RESTARTING, budget=300)[0].restarts[0]
    run = many(weighed, config=RESTARTING, budget=last)[0]
    assert run.restarts == (last,)
    assert_same_as_alone(run, paid(weighed, BITS, last, seed=0, config=RESTARTING, engine="cpu"))


def test_a_space_of_one_point_never_starts_afresh() -> None:
    runs = many(weighed, ao.Space([ao.Integer(3, 3)] * 2), config=RESTARTING)
    assert runs.restarts == ((),) * 3
    assert runs[0].best.tolist() == [3, 3]


def test_minimize_and_a_known_graph() -> None:
    graph = np.tri(5, dtype=bool)
    options: dict[str, Any] = {"config": RESTARTING, "engine": "cpu", "graph": graph}
    runs = many(weighed, MIXED, direction="minimize", budget=300, **options)
    assert runs.direction == "minimize"
    assert any(runs.restarts)
    for run in runs:
        alone = alone_by(ao.minimize, weighed, MIXED, 300, seed=run.seed, cache=False, **options)
        assert_same_as_alone(run, alone)
        assert run.curve[-1] == run.best_value == run.values.min()
    unknown = many(weighed, MIXED, direction="minimize", budget=300, config=RESTARTING)
    assert not np.array_equal(runs.values, unknown.values)


def test_named_spaces_give_dicts() -> None:
    def f(point: dict[str, Any]) -> float:
        value = point["k"] * (2.0 if point["algo"] == "b" else 1.0) - point["flag"]
        point.clear()  # what f does to its argument is its own affair
        return value

    for run in many(f, NAMED, budget=57):
        alone = paid(f, NAMED, 57, seed=run.seed, config=FAST, engine="cpu")
        assert_same_as_alone(run, alone)
        assert set(run.best) == {"flag", "algo", "k"}


@pytest.mark.usefixtures("quick_reference")
@pytest.mark.parametrize("engine", ["cpu", pytest.param("reference", marks=pytest.mark.slow)])
def test_neither_order_nor_split_of_a_batch_matters(engine: str) -> None:
    config = RESTARTING.replace(adam="kept", drop_training=0.2, drop_decay=0.9)
    options: dict[str, Any] = {"config": config, "engine": engine, "budget": 120}
    options |= {"space": None, "target": 0.73}
    order = [4, 1, 5, 0, 3, 2] if engine == "cpu" else [1, 0, 3, 2]  # the other is slow
    whole = many(NK, runs=None, seeds=range(len(order)), **options)
    assert len(set(whole.evaluations)) > 2
    assert any(restarts and restarts[0] < 120 for restarts in whole.restarts)
    shuffled = many(NK, runs=None, seeds=order, **options)
    for place, seed in enumerate(order):
        assert_same_run(shuffled[place], whole[seed])
    rest = len(order) - 2
    parts = [*many(NK, runs=2, seeds=0, **options), *many(NK, runs=rest, seeds=2, **options)]
    for part, run in zip(parts, whole, strict=True):
        assert_same_run(part, run)


@pytest.mark.usefixtures("quick_reference")
@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_as_many_runs_at_once_as_the_memory_holds(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"runs": 5, "budget": 20, "space": None, "engine": engine}
    whole = many(NK, **options)
    layout = make_model(NK.space.cardinalities, NK.space.ordered, whole.config)
    sizes: list[int] = []

    def drive(engine: Any, objective: Any, task: Any, bar: Any) -> Any:
        sizes.append(len(task.seeds))
        return run_host(engine, objective, task, bar)

    monkeypatch.setattr("anyorder.policy.many.solve.run_host", drive)
    for fit in (1, 2, 4, 9):
        rows = int(layout.network.widths[1:].sum() + layout.coding.outputs.max())
        shared = 12 * rows * max(layout.coding.features, rows)
        if engine == "reference":
            shared = 16 * layout.parameters
        size = {"cpu": 4, "reference": 8}[engine]
        memory = (shared + size * layout.parameters * (fit + 0.5)) / 0.9
        monkeypatch.setattr(
            "anyorder.strategies.policy.engines.memory.memory_here", lambda memory=memory: memory
        )
        sizes.clear()
        for run, other in zip(many(NK, **options), whole, strict=True):
            assert_same_run(run, other)
        assert sizes == {1: [1] * 5, 2: [2, 2, 1], 4: [4, 1], 9: [5]}[fit]
    monkeypatch.setattr("anyorder.strategies.policy.engines.memory.memory_here", lambda: 100.0)
    with refused(MemoryError, "parameters", "this machine has 0.0"):
        many(NK, **options)


def test_large_separate_networks_name_the_shared_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    space = ao.Space.binary(40)
    ao.Optimizer(space, seed=0, algorithm="policy")
    assert "network='shared'" not in caplog.text
    monkeypatch.setattr("anyorder.strategies.policy.engines.memory.LARGE", 1_000)
    ao.Optimizer(space, seed=0, algorithm="policy")
    assert "the policy of 40 variables" in caplog.text
    assert "network='shared'" in caplog.text


def test_advantages_of_many_runs_are_those_of_each() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 4, (20, 7)).astype(float)
    values[rng.random(values.shape) < 0.2] = np.nan
    values[rng.random(values.shape) < 0.2] = -np.inf
    for ties in ("strict", "average", "sort"):
        expected = [advantages(row, (1.0, 0.2, -1.0), ties) for row in values]
        np.testing.assert_array_equal(advantages(values, (1.0, 0.2, -1.0), ties), expected)
    np.testing.assert_array_equal(
        advantages(values[:, :1], (1.0, -1.0), "strict"), np.zeros((20, 1))
    )


# --- problems ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        ["nk:n=12,k=2,seed=0", "nk:n=12,k=2,seed=1"],
        ["nkd:n=10,k=2,d=3,seed=0"],
        ["qubo:n=16,type=1,seed=0", "qubo:n=16,type=3,seed=0"],
        ["onemax:n=12"],
    ],
)
def test_problems_come_one_after_the_other(names: list[str]) -> None:
    problems = [ao.problems.get(name) for name in names]
    runs = many(problems if len(problems) > 1 else problems[0], None, runs=2, budget=65, seeds=3)
    assert runs.problems == tuple(problem.name for problem in problems for _ in range(2))
    for r, run in enumerate(runs):
        problem = problems[r // 2]
        alone = paid(problem, problem.space, 65, seed=3 + r, config=FAST, engine="cpu")
        assert_same_as_alone(run, alone)
        assert run.problem == problem.name


def test_different_kinds_of_problem_share_a_batch_and_are_evaluated_in_one_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problems = [ao.problems.nk(12, 2, 0), ao.problems.nk(12, 3, 0)]
    groups: list[list[str]] = []
    together = ao.problems.together

    def counted(mine: Any) -> Any:
        groups.append([problem.name for problem in mine])
        return together(mine)

    monkeypatch.setattr(ao.problems, "together", counted)
    runs = many(problems, NK.space, runs=2, budget=200, target=0.71, config=RESTARTING)
    assert groups[0] == [problems[0].name] * 2 + [problems[1].name] * 2
    assert len(groups) == len({run.evaluations for run in runs}), "made anew only when some leave"
    for r, run in enumerate(runs):
        f = problems[r // 2]
        alone = paid(
            f.evaluate, f.space, 200, seed=r, config=RESTARTING, engine="cpu", target=0.71,
            vectorized=True,
        )  # fmt: skip
        assert_same_as_alone(run, alone)


class Broken(ao.problems.OneMax):
    """Somebody's problem that cannot take the point of all ones in one of its variables."""

    def _values(self, points: np.ndarray) -> np.ndarray:
        if (points.sum(axis=-1) >= 7).any():
            raise ArithmeticError("too good")
        return super()._values(points)


def test_a_problem_that_raises_fails_its_own_runs() -> None:
    onemax, broken = ao.problems.onemax(8), Broken(8)
    runs = many([onemax, broken, onemax], None, runs=2, seeds=[1, 2] * 3, budget=200)
    assert runs.stop_reasons == ("budget",) * 2 + ("failed",) * 2 + ("budget",) * 2
    for r in (0, 1, 4, 5):
        alone = paid(onemax, onemax.space, 200, seed=1 + r % 2, config=FAST, engine="cpu")
        assert_same_as_alone(runs[r], alone)
    for r in (2, 3):
        full = runs[r - 2].values
        first = int((full >= 7).argmax())
        np.testing.assert_array_equal(runs[r].values, full[:first])
        error = runs[r].error or ""
        assert error.startswith("ArithmeticError: too good while evaluating [")  # and the point
        assert error.endswith(f"] (at evaluation {first + 1})")


class Patchy(ao.problems.OneMax):
    """Somebody's problem whose values are NaN at times."""

    def _values(self, points: np.ndarray) -> np.ndarray:
        values = super()._values(points)
        return np.where(values >= 7, np.nan, values)


def test_a_problem_that_gives_nan_fails_its_own_runs() -> None:
    runs = many([Patchy(8), ao.problems.onemax(8)], None, runs=1, seeds=[1, 1], budget=200)
    assert runs.stop_reasons == ("failed", "budget")
    first = int((runs[1].values >= 7).argmax())
    np.testing.assert_array_equal(runs[0].values, runs[1].values[:first])
    assert "NaN" in (runs[0].error or "")
    assert f"(at evaluation {first + 1})" in (runs[0].error or "")


# --- how runs stop -------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_runs_leave_when_they_reach_the_target(direction: str) -> None:
    target = 6 if direction == "maximize" else 0
    runs = many(runs=8, budget=60, target=target, direction=direction)
    assert len({run.evaluations for run in runs}) > 2
    assert set(runs.stop_reasons) == {"target", "budget"}
    solve = ao.maximize if direction == "maximize" else ao.minimize
    for r, run in enumerate(runs):
        alone = alone_by(
            solve,
            total, BITS, 60, seed=r, config=FAST, engine="cpu", target=target, cache=False,
            vectorized=True,
        )  # fmt: skip
        assert_same_as_alone(run, alone)
        assert np.isnan(runs.values[r, run.evaluations :]).all()
        assert run.curve[-1] == run.best_value, "a run at the target keeps its best"


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (ZeroDivisionError("oh"), "ZeroDivisionError: oh"),
        (
            float("nan"),
            "ValueError: f returned NaN or None for [1, 1, 1, 1, 1, 1], expected",
        ),
        (None, "ValueError: f returned NaN or None for [1, 1, 1, 1, 1, 1], expected"),
        ("good", "TypeError: what f returned is 'good', expected a number"),
        (10**400, "ValueError: what f returned is too large"),
    ],
)
def test_a_failure_stops_its_own_run_only(result: Any, expected: str) -> None:
    def f(point: np.ndarray) -> Any:
        value = float(point.sum())
        point[:] = 9
        if value < 6:
            return value
        if isinstance(result, Exception):
            raise result
        return result

    runs = many(f, runs=6, budget=30, grid=10)
    assert set(runs.stop_reasons) == {"budget", "failed"}
    for r, run in enumerate(runs):
        alone = paid(total, BITS, 30, seed=r, config=FAST, engine="cpu").history.values
        failed = int((alone == 6).argmax()) if (alone == 6).any() else 30
        np.testing.assert_array_equal(run.values, alone[:failed])
        assert run.evaluations == failed
        assert (run.stop_reason == "failed") == (failed < 30) == (run.error is not None)
        if run.error is not None:
            assert run.error.startswith(expected)
            assert run.error.endswith(f"(at evaluation {failed + 1})")
            assert np.isnan(run.curve[runs.grid > failed]).all()
            if failed:
                assert run.best_value == run.values.max() == run.best.sum()
        best = np.maximum.accumulate(run.values)
        within = runs.grid <= failed
        np.testing.assert_array_equal(run.curve[within], best[runs.grid[within] - 1])
    assert f"{runs.stop_reasons.count('failed')} failed" in repr(runs)


def test_all_may_fail_at_once() -> None:
    runs = many(lambda x: 1 / 0)
    assert runs.stop_reasons == ("failed",) * 3
    error = runs[0].error or ""
    assert error.startswith("ZeroDivisionError: division by zero while evaluating [")
    assert error.endswith("] (at evaluation 1)")
    assert (runs[0].best, runs[0].best_value, runs[0].evaluations) == (None, -math.inf, 0)
    assert np.isnan(runs.curves).all()
    assert repr(runs).startswith("<Runs: 3 runs, 3 failed, 0 evaluations")


def test_infinities_are_values() -> None:
    def f(point: np.ndarray) -> float:
        if point[0] == point[1]:
            return -math.inf
        return weighed(point)

    for run in many(f, budget=50):
        assert_same_as_alone(run, paid(f, BITS, 50, seed=run.seed, config=FAST, engine="cpu"))
        assert -math.inf in run.values
    assert many(lambda x: math.inf, budget=20)[0].best_value == math.inf
    worst = many(lambda x: -math.inf, budget=20)
    assert worst[0].best is not None
    assert worst[0].best_value == -math.inf
    assert "mean best -inf," in repr(worst)


def test_ctrl_c_returns_what_was_found() -> None:
    calls = []

    def f(point: np.ndarray) -> float:
        calls.append(1)
        if len(calls) == 3 * 20 + 10 + 5:  # in the second run's third generation
            raise KeyboardInterrupt
        return float(point.sum())

    runs = many(f, budget=100, grid=10)
    assert runs.stop_reasons == ("interrupted",) * 3
    assert runs.evaluations.tolist() == [30, 24, 20]
    for run in runs:
        alone = paid(total, BITS, run.evaluations, seed=run.seed, config=FAST, engine="cpu")
        np.testing.assert_array_equal(run.values, alone.history.values)
        assert run.best_value == run.values.max()
        assert np.isnan(run.curve).tolist() == (runs.grid > run.evaluations).tolist()


def test_ctrl_c_leaves_finished_runs_finished() -> None:
    calls = []

    def f(point: np.ndarray) -> float:
        calls.append(1)
        if len(calls) == 15:
            raise KeyboardInterrupt
        return float(point.sum())

    assert many(f, budget=10).stop_reasons == ("budget", "interrupted", "interrupted")


@pytest.mark.parametrize("verb", ["fresh", "sample", "train"])
def test_ctrl_c_while_the_policies_are_at_work(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from anyorder.strategies.policy.engines.cpu import CpuEngine

    plain, calls = getattr(CpuEngine, verb), []

    def interrupted(self: Any, *args: Any) -> Any:
        calls.append(1)
        if len(calls) == (1 if verb == "fresh" else 3):
            raise KeyboardInterrupt
        return plain(self, *args)

    monkeypatch.setattr(CpuEngine, verb, interrupted)
    runs = many(budget=100)
    assert runs.stop_reasons == ("interrupted",) * 3
    assert runs.evaluations.tolist() == [{"fresh": 0, "sample": 20, "train": 30}[verb]] * 3


@pytest.mark.parametrize("problem", [True, False])
def test_ctrl_c_in_a_batch(problem: bool) -> None:
    calls = []

    class Interrupted(ao.problems.OneMax):
        def _values(self, points: np.ndarray) -> np.ndarray:
            calls.append(1)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return points.sum(axis=-1).astype(float)

    instance = Interrupted(6)
    runs = many(instance, None) if problem else many(instance.evaluate, vectorized=True)
    assert runs.evaluations.tolist() == [20] * 3
    assert set(runs.stop_reasons) == {"interrupted"}


# --- vectorised functions ------------------------------------------------------------------------


@pytest.mark.parametrize("vectorized", [True, pytest.param("torch", marks=pytest.mark.gpu)])
def test_vectorized_functions_get_all_runs(vectorized: bool | str) -> None:
    shapes = []
    torch = pytest.importorskip("torch") if vectorized == "torch" else None

    def f(points: Any) -> Any:
        shapes.append(tuple(points.shape))
        if vectorized == "torch":
            assert points.dtype == torch.int64
            assert points.device.type == "cpu"
            place = torch.arange(1, 6, dtype=torch.float64)
            values = torch.sin(place * (1 + points)).sum(-1)
        else:
            assert points.dtype == np.int64
            values = np.sin(np.arange(1, 6) * (1 + points)).sum(-1)
        points[:] = 99  # what f does to its argument is its own affair
        return values

    runs = many(f, MIXED, vectorized=vectorized, budget=25)
    assert shapes == [(3, 10, 5), (3, 10, 5), (3, 5, 5)]
    for run, plain in zip(runs, many(weighed, MIXED, budget=25), strict=True):
        np.testing.assert_allclose(run.values, plain.values, rtol=1e-12)
        np.testing.assert_array_equal(run.best, plain.best)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["float32", "bfloat16", "int64", "grad", "array", "list"])
def test_torch_functions_may_return_any_numbers(kind: str) -> None:
    torch = pytest.importorskip("torch")

    def f(points: Any) -> Any:
        values = points.sum(-1)
        if kind == "grad":
            return values.double().requires_grad_()
        if kind == "array":
            return values.numpy()
        return values.tolist() if kind == "list" else values.to(getattr(torch, kind))

    plain = many()
    np.testing.assert_array_equal(many(f, vectorized="torch").values, plain.values)


@pytest.mark.parametrize("nothing", [np.nan, None])
def test_nan_in_a_row_fails_that_run(nothing: Any) -> None:
    def f(points: np.ndarray) -> Any:
        values = points.sum(-1).astype(object)
        values[values == 6] = nothing
        return values if nothing is None else values.astype(float)

    runs = many(f, runs=6, budget=30, vectorized=True)
    assert set(runs.stop_reasons) == {"budget", "failed"}
    for run, plain in zip(runs, many(runs=6, budget=30), strict=True):
        failed = int((plain.values == 6).argmax()) if (plain.values == 6).any() else 30
        np.testing.assert_array_equal(run.values, plain.values[:failed])
        if failed < 30:
            assert "NaN or None for [1, 1, 1, 1, 1, 1]" in (run.error or "")


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (lambda x: 1 / 0, ZeroDivisionError, "division by zero"),
        (lambda x: x.sum(-1).ravel(), ValueError, r"shape \(30,\), expected \(3, 10\)"),
        (lambda x: 1.0, ValueError, r"shape \(\), expected \(3, 10\)"),
        (lambda x: None, ValueError, r"shape \(\), expected \(3, 10\)"),
        (lambda x: [[1.0], [2.0, 3.0]], ValueError, r"no array of shape \(3, 10\)"),
        (lambda x: x.sum(-1).astype(str), TypeError, "expected numbers"),
        (lambda x: x.sum(-1) * 1j, TypeError, "complex128, expected numbers"),
        (lambda x: [["a", None] * 5] * 3, TypeError, "what f returned is 'a'"),
    ],
)
def test_what_a_vectorized_function_does_wrong_is_raised(
    f: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        many(f, vectorized=True)


def test_a_driver_can_ask_what_it_drives(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    plain = run_host

    def driver(engine: Any, objective: Any, task: Any, bar: Any) -> Any:
        seen.append(objective)
        return plain(engine, objective, task, bar)

    monkeypatch.setattr("anyorder.policy.many.solve.run_host", driver)
    many(budget=10)
    many(budget=10, vectorized=True)
    many([NK, NK], None, budget=10)
    assert [type(o) for o in seen] == [
        objective.Pointwise, objective.Vectorized, objective.Problems,
    ]  # fmt: skip
    assert seen[1].function is total
    assert seen[2].problems == (NK,) * 6


# --- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0]),
        ({"runs": 3}, [0, 1, 2]),
        ({"runs": 3, "seeds": 7}, [7, 8, 9]),
        ({"seeds": 7}, [7]),
        ({"seeds": [4, 4, 1]}, [4, 4, 1]),
        ({"seeds": np.array([4, 1], np.uint64)}, [4, 1]),
        ({"seeds": range(2, 4)}, [2, 3]),
        ({"runs": 2, "seeds": (8, 3)}, [8, 3]),
        ({"seeds": 2**64 - 1}, [2**64 - 1]),
    ],
)
def test_seeds(options: dict[str, Any], expected: list[int]) -> None:
    runs = many(**({"runs": None, "budget": 5} | options))
    assert list(runs.seeds) == [run.seed for run in runs] == expected
    assert all(type(seed) is int for seed in runs.seeds)
    both = [NK, ao.problems.nk(12, 2, 1)]
    if len(expected) == 2:
        split = many(both, None, **({"runs": None, "budget": 5} | options | {"runs": None}))
        assert (split.seeds, split.problems) == (tuple(expected), (both[0].name, both[1].name))


@pytest.mark.parametrize(
    ("budget", "grid", "expected"),
    [
        (40, 100, [40]),
        (40, 10, [10, 20, 30, 40]),
        (45, 20, [20, 40, 45]),
        (40, [1, 7, 40], [1, 7, 40]),
        (40, np.array([3]), [3]),
        (40, range(5, 40, 15), [5, 20, 35]),
        (1, 1, [1]),
    ],
)
def test_grid(budget: int, grid: Any, expected: list[int]) -> None:
    runs = many(weighed, budget=budget, grid=grid)
    assert runs.grid.tolist() == expected
    assert runs.curves.shape == (3, len(expected))
    for run in runs:
        best = np.maximum.accumulate(run.values)
        np.testing.assert_array_equal(run.curve, best[runs.grid - 1])


def test_the_grid_is_every_hundred_by_default() -> None:
    assert many(budget=250).grid.tolist() == [100, 200, 250]


class Minimised(ao.problems.OneMax):
    direction = "minimize"  # type: ignore[assignment]


def test_a_problem_knows_its_direction() -> None:
    for options in ({}, {"direction": "minimize"}):
        runs = many(Minimised(6), None, budget=100, **options)
        assert runs.direction == "minimize"
        alone = many(direction="minimize", budget=100)
        np.testing.assert_array_equal(runs.values, alone.values)


BOTH = [NK, ao.problems.nk(12, 2, 1)]


@pytest.mark.parametrize(
    ("f", "options", "error", "words"),
    [
        (3, {}, TypeError, ["problem is 3", "expected a Problem"]),
        ("nk", {}, TypeError, ["problem is 'nk'", "expected a Problem"]),
        ([], {}, ValueError, ["empty", "expected at least one Problem"]),
        ([NK, len], {}, TypeError, ["problem[1] is", "expected a Problem"]),
        (len, {"space": None}, ValueError, ["space is None", "expected"]),
        (len, {"space": 4}, TypeError, ["space is 4, expected a Space"]),
        (NK, {"space": BITS}, ValueError, ["space is", "expected None or", NK.name]),
        (
            [NK, ao.problems.nk(10, 2, 0)],
            {"space": None},
            ValueError,
            ["nk:n=10,k=2,seed=0 has", "expected", NK.name],
        ),
        (NK, {"space": None, "vectorized": True}, ValueError, ["vectorized is True", "False"]),
        (len, {"vectorized": 1}, ValueError, ["vectorized is 1", "expected False, True"]),
        (len, {"vectorized": "numpy"}, ValueError, ["vectorized is 'numpy'", "'torch'"]),
        (len, {"space": NAMED, "vectorized": True}, ValueError, ["vectorized is True", "named"]),
        (len, {"space": NAMED, "vectorized": "torch"}, ValueError, ["'torch'", "named"]),
        (
            len,
            {"direction": "up"},
            ValueError,
            ["direction is 'up', expected 'maximize' or 'minimize'"],
        ),
        (NK, {"space": None, "direction": "minimize"}, ValueError, ["'minimize'", NK.name]),
        (
            [ao.problems.onemax(6), Minimised(6)],
            {},
            ValueError,
            ["some minimised", "expected one kind"],
        ),
        (len, {"runs": 0}, ValueError, ["runs is 0", "from 1 to"]),
        (len, {"runs": 2.0}, TypeError, ["runs is 2.0", "an integer"]),
        (len, {"budget": 0}, ValueError, ["budget is 0", "at least 1"]),
        (len, {"budget": 1e3}, TypeError, ["budget is 1000.0", "an integer"]),
        (len, {"seeds": -1}, ValueError, ["seeds is -1", "an integer from 0"]),
        (len, {"seeds": 2**64 - 1}, ValueError, [f"seeds is {2**64 - 1}", f"to {2**64 - 3}"]),
        (len, {"seeds": "12"}, TypeError, ["seeds is '12'", "a sequence of integers"]),
        (len, {"seeds": True}, TypeError, ["seeds is True", "an integer"]),
        (len, {"seeds": 1.5}, TypeError, ["seeds is 1.5", "an integer"]),
        (len, {"seeds": np.zeros((1, 3), int)}, TypeError, ["seeds is", "a sequence"]),
        (len, {"seeds": [1, 2, 2.5]}, TypeError, ["seeds[2] is 2.5", "an integer"]),
        (len, {"seeds": [1, 2, -3]}, ValueError, ["seeds[2] is -3", "from 0"]),
        (len, {"seeds": [1, 2]}, ValueError, ["seeds has 2 entries", "expected 3", "1 x 3"]),
        (len, {"seeds": [], "runs": None}, ValueError, ["seeds has 0 entries", "multiple of 1"]),
        (
            BOTH,
            {"space": None, "seeds": [1, 2, 3], "runs": None},
            ValueError,
            ["seeds has 3 entries", "multiple of 2"],
        ),
        (BOTH, {"space": None, "seeds": [1, 2, 3]}, ValueError, ["expected 6", "2 x 3"]),
        (len, {"seeds": [[1], [2, 3]]}, TypeError, ["seeds[0] is [1]", "an integer"]),
        (len, {"seeds": {1, 2, 3}}, TypeError, ["seeds is {1, 2, 3}", "a sequence of integers"]),
        (len, {"seeds": np.ones((1, 3), int)}, TypeError, ["seeds is array", "a sequence"]),
        (len, {"runs": 10**12}, ValueError, ["runs is 1000000000000", "from 1 to 10000000"]),
        (
            len,
            {"budget": 10**13},
            MemoryError,
            [f"3 runs of {10**13}", "GiB of values", "not even"],
        ),
        (len, {"grid": [[1], [2, 3]]}, TypeError, ["grid[0] is [1]", "an integer"]),
        (len, {"config": "author"}, ValueError, ["unknown preset 'author'"]),
        (len, {"engine": "cude"}, ValueError, ["unknown engine 'cude'"]),
        (len, {"graph": np.ones((2, 2))}, ValueError, ["graph has shape (2, 2)", "(6, 6)"]),
        (len, {"target": "high"}, TypeError, ["target is 'high'", "a number"]),
        (len, {"target": math.nan}, ValueError, ["target is nan", "a number"]),
        (len, {"grid": 0}, ValueError, ["grid is 0", "at least 1"]),
        (len, {"grid": "all"}, TypeError, ["grid is 'all'", "an integer"]),
        (len, {"grid": []}, ValueError, ["grid is []", "a sequence of integers"]),
        (len, {"grid": [10, 10]}, ValueError, ["grid is [10, 10]", "increasing"]),
        (len, {"grid": [10, 41]}, ValueError, ["grid[1] is 41", "from 1 to 40"]),
        (len, {"grid": [0, 10]}, ValueError, ["grid[0] is 0", "from 1 to 40"]),
        (len, {"grid": [1.5]}, TypeError, ["grid[0] is 1.5", "an integer"]),
        (len, {"progress": "yes"}, ValueError, ["progress is 'yes'"]),
    ],
)
def test_bad_arguments(
    f: Any, options: dict[str, Any], error: type[Exception], words: list[str]
) -> None:
    with refused(error, *words):
        many(f, **options)


def test_a_problem_of_named_variables_is_refused() -> None:
    class Named(ao.problems.OneMax):
        def __init__(self) -> None:
            super().__init__(3)
            self.space = NAMED

    with refused(ValueError, "named space", "expected a nameless one"):
        many(Named(), None)


@pytest.mark.gpu
def test_complex_tensors_are_no_numbers() -> None:
    pytest.importorskip("torch")
    with refused(TypeError, "f returned torch.complex64", "expected numbers"):
        many(lambda x: x.sum(-1) * 1j, vectorized="torch", engine="reference")


def test_torch_functions_need_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with refused(ImportError, "vectorized='torch' needs PyTorch"):
        many(vectorized="torch", engine="reference")


# --- what is left --------------------------------------------------------------------------------


def test_runs_are_a_sequence_and_arrays() -> None:
    runs = many(weighed, runs=4, budget=30, grid=10)
    assert len(runs) == 4
    assert [run.seed for run in runs[1:3]] == [1, 2]
    assert_same_run(runs[-1], runs[3])
    with pytest.raises(IndexError):
        runs[4]
    assert (runs.values.shape, runs.curves.shape, runs.best_codes.shape) == (
        (4, 30),
        (4, 3),
        (4, 6),
    )
    np.testing.assert_array_equal(runs.best_values, runs.values.max(axis=1))
    np.testing.assert_array_equal(runs.best_codes, [run.best for run in runs])
    assert runs.problems is None
    assert runs[0].problem is None
    assert runs.seconds > 0
    mean, error = runs.best_values.mean(), runs.best_values.std(ddof=1) / 2
    assert f"4 runs, mean best {mean:.6g} +- {error:.2g}, 120 evaluations" in repr(runs)
    assert "\n" not in repr(runs)
    assert "+-" not in repr(many(runs=1))


@pytest.mark.parametrize("problem", [NK, None])
def test_csv_reads_back(problem: Any, tmp_path: Path) -> None:
    def f(point: np.ndarray) -> float:
        if point.all():
            raise ValueError
        return weighed(point)

    space = None if problem else BITS
    runs = many(problem or f, space, runs=5, budget=70, grid=30, seeds=2**63)
    runs.to_csv(tmp_path / "runs.csv")
    with open(tmp_path / "runs.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["problem", "seed", "evaluations", "best"]
    assert [int(row["seed"]) for row in rows] == np.repeat(runs.seeds, 3).tolist()
    assert [int(row["evaluations"]) for row in rows] == runs.grid.tolist() * 5
    best = np.array([float(row["best"]) for row in rows]).reshape(5, 3)
    np.testing.assert_array_equal(best, runs.curves)
    assert np.isnan(best).any() == (problem is None)
    assert {row["problem"] for row in rows} == {problem.name if problem else ""}


def test_the_band_is_the_mean_and_its_standard_error() -> None:
    runs = many(weighed, runs=5, budget=30, grid=10)
    line = band(runs)
    np.testing.assert_allclose(line.mean, runs.curves.mean(axis=0))
    np.testing.assert_allclose(line.error, runs.curves.std(axis=0, ddof=1) / np.sqrt(5))
    runs.curves[:2, 2] = np.nan  # two of them failed
    runs.curves[:, 1] = np.nan
    line = band(runs)
    np.testing.assert_allclose(line.mean[2], runs.curves[2:, 2].mean())
    np.testing.assert_allclose(line.error[2], runs.curves[2:, 2].std(ddof=1) / np.sqrt(3))
    assert np.isnan(line.mean[1])
    np.testing.assert_array_equal(band(many(runs=1)).error, 0.0)


def test_plot_writes_a_picture(tmp_path: Path) -> None:
    runs = many(weighed, grid=10)
    runs.plot(tmp_path / "runs.png")
    assert (tmp_path / "runs.png").read_bytes().startswith(b"\x89PNG")
    axes = runs.plot().axes[0]
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), runs.curves.mean(axis=0))
    assert axes.get_xlabel() == "evaluations"
    for f in (lambda x: -math.inf, lambda x: math.nan):
        many(f).plot(tmp_path / "odd.png")
        assert (tmp_path / "odd.png").read_bytes().startswith(b"\x89PNG")
    two = averages({"a": runs, "b": runs}, title="both").axes[0]
    assert [text.get_text() for text in two.get_legend().get_texts()] == ["a", "b"]


def test_a_bar_counts_all_evaluations(capsys: pytest.CaptureFixture[str]) -> None:
    many(progress=True)
    shown = capsys.readouterr().err
    assert "120/120" in shown
    assert "runs active" in shown
    many(progress=False)
    assert capsys.readouterr().err == ""
