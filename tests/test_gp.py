"""The Gaussian process: its equations against plain formulas, and what the search does with it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import mannwhitneyu, norm, ttest_ind

import anyorder as ao
from anyorder import problems
from anyorder.archive import Archive
from anyorder.bench.stats import welch
from anyorder.errors import FAILED
from anyorder.strategies import AutoSearch, GPSearch, RandomSearch
from anyorder.strategies.base import Answer
from anyorder.strategies.gp import kernels
from anyorder.strategies.gp.columns import Columns
from anyorder.strategies.gp.minimise import minimise
from anyorder.strategies.gp.model import GP
from anyorder.strategies.gp.values import squash

SPACE = ao.Space(
    {
        "a": ao.Categorical(["x", "y", "z"]),
        "b": ao.Binary(),
        "one": ao.Integer(3, 3),
        "i": ao.Integer(1, 1000, log=True),
        "j": ao.Integer(0, 5, when={"a": ["x", "y"]}),
        "c": ao.Categorical([1, 2, 3], when={"b": True}),
        "p": ao.Permutation(range(5)),
        "s": ao.Subset(range(4), size=(1, 3)),
    }
)


def drawn(count: int, seed: int = 0, space: ao.Space = SPACE) -> Any:
    return RandomSearch(space, seed).propose(count).codes


def model(count: int, seed: int = 0) -> tuple[GP, Any, Any]:
    """A process with parameters other than the prior's, points and values."""
    process, rng = GP(Columns(SPACE)), np.random.default_rng(seed)
    process.parameters = process.parameters + 0.5 * rng.normal(size=len(process.parameters))
    process.parameters[1] = -4.0
    return process, process.columns.of(drawn(count, seed)), rng.normal(size=count)


def correlation(process: GP, x: dict[str, Any], y: dict[str, Any]) -> float:
    """The correlation of two points from their values, one variable after the other."""
    names = process.columns.labels
    w = dict(zip(names, np.exp(process.parameters[0] + process.parameters[2:]), strict=True))
    n = 14  # variables with more than one value, items of the subset, places of the permutation
    found = 1.0

    def matern(weight: float, distance: float) -> float:
        t = np.sqrt(6 * weight) * distance
        return float((1 + t + t**2 / 3) * np.exp(-t))

    for name in ("a", "b", "c"):
        if x.get(name) != y.get(name):
            found *= np.exp(-w[name] / n)
    found *= matern(w["i"] / n, abs(np.log(x["i"]) - np.log(y["i"])) / np.log(1000))
    if "j" in x and "j" in y:
        found *= matern(w["j"] / n, abs(x["j"] - y["j"]) / 5)
    elif ("j" in x) != ("j" in y):  # an absent value is in the middle
        found *= np.exp(-w["j"] / n) * matern(w["j"] / n, abs((x | y)["j"] / 5 - 0.5))
    for k in range(4):
        if (k in x["s"]) != (k in y["s"]):
            found *= np.exp(-w[f"s[{k}]"] / n)
    p, q = list(x["p"]), list(y["p"])
    for k in range(5):
        found *= np.exp(-w["p: places"] / 3 / n * (p[k] != q[k]))
        found *= matern(w["p: order"] / 3 / n, abs(p.index(k) - q.index(k)) / 4)
        near = [{of[of.index(k) - 1], of[(of.index(k) + 1) % 5]} for of in (p, q)]
        found *= np.exp(-w["p: neighbours"] / 3 / n * len(near[0] - near[1]) / 2)
    return found


def matrix(process: GP, codes: Any) -> Any:
    points = SPACE.decode(codes)
    return np.array([[correlation(process, x, y) for y in points] for x in points])


def test_correlations_are_those_of_the_formula() -> None:
    process, rows, values = model(12)
    process.condition(rows, values)
    expected = matrix(process, drawn(12))
    found = np.array([process.origin(row).correlations for row in rows])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.linalg.eigvalsh(expected).min() > 0


@pytest.mark.parametrize("scale", [-3.0, -1.5, 0.0, 2.0])
@pytest.mark.parametrize(
    "space",
    [
        ao.Space({"on": ao.Binary(), "x": ao.Integer(0, 400, when={"on": True})}),
        ao.Space({"q": ao.Sequence(["a", "b", "c"], [2, 1, 3])}),
    ],
    ids=["absent", "repeated"],
)
def test_correlations_are_those_of_a_process(space: ao.Space, scale: float) -> None:
    """No eigenvalue is negative.

    Also where many points lack the variable that varies most, and where both neighbours of an item
    are the same.
    """
    process = GP(Columns(space))
    process.parameters[0] = scale
    rows = process.columns.of(np.unique(drawn(60, 0, space), axis=0))
    process.condition(rows, np.zeros(len(rows)))
    found = np.array([process.origin(row).correlations for row in rows])
    assert np.linalg.eigvalsh(found).min() > -1e-12


def test_neighbours_have_the_correlations_of_any_points() -> None:
    process, rows, values = model(12)
    process.condition(rows, values)
    out, means = np.empty((12, 12)), np.empty(12)
    origin = process.origin(rows[3])
    columns = process.columns
    kernels.neighbours(
        rows[3], origin.correlations, rows, rows, process.weights(), columns.kinds,
        columns.nominal, np.ones(12), out, means,
    )  # fmt: skip
    np.testing.assert_allclose(out, matrix(process, drawn(12)), rtol=1e-9)
    np.testing.assert_allclose(means, (out + 1).sum(axis=1), rtol=1e-9)


def test_predictions_are_those_of_the_formula() -> None:
    process, rows, values = model(15)
    process.condition(rows[:10], values[:10])
    every = matrix(process, drawn(15)) + 1
    covariance = every[:10, :10] + np.exp(-4.0) * np.eye(10)
    cross = every[10:, :10]
    variance = values[:10] @ np.linalg.solve(covariance, values[:10]) / 10
    means = cross @ np.linalg.solve(covariance, values[:10])
    left = 2 - np.einsum("ij,ji->i", cross, np.linalg.solve(covariance, cross.T))
    found = process.predict(rows[10:])
    np.testing.assert_allclose(found[0], means, rtol=1e-8)
    np.testing.assert_allclose(found[1], np.sqrt(variance * left), rtol=1e-8)
    # points without a value: the mean stays, the variance is that of more points
    process.add_pending(rows[13])
    process.add_pending(rows[14])
    pending = process.predict(rows[10:])
    np.testing.assert_allclose(pending[0], means, rtol=1e-8)
    assert (pending[1] < found[1]).all()
    assert pending[1][3] < 0.3 * found[1][3]


def test_the_gradient_is_that_of_finite_differences() -> None:
    process, rows, values = model(20)
    at, step = process.parameters, 1e-5
    gradient = process.objective(at, rows, values)[1]
    for k, slope in enumerate(gradient):
        off = step * np.eye(len(at))[k]
        ends = [process.objective(at + sign * off, rows, values)[0] for sign in (1, -1)]
        assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-6)


def test_updates_are_bit_for_bit_those_of_a_new_model() -> None:
    process, rows, values = model(40)
    new = GP(process.columns)
    new.parameters = process.parameters
    process.condition(rows[:25], values[:25])
    process.add_pending(rows[30])
    process.condition(rows[:33], values[:33], 25)
    process.condition(rows, values, 33)
    new.condition(rows, values)
    for found, expected in zip(process.predict(rows), new.predict(rows), strict=True):
        assert np.array_equal(found, expected)


def test_the_error_is_that_of_leaving_one_out() -> None:
    process, rows, values = model(12)
    process.fit(rows, values, 0)
    off = []
    for k in range(12):
        others = np.arange(12) != k
        less = GP(process.columns)
        less.parameters = process.parameters
        less.condition(rows[others], values[others])
        off.append(less.predict(rows[[k]])[0][0] - values[k])
    assert process.error == pytest.approx(np.mean(np.square(off)) / values.var(), rel=1e-8)


@pytest.mark.parametrize("gap", [-30.0, -25.01, -24.99, -8.0, -1.0, 0.0, 2.0])
def test_expected_improvement(gap: float) -> None:
    """By integration, and near zero by drawing as well."""
    correlations, out, deviation = np.zeros((1, 0)), np.empty(1), np.empty(1)
    scale = 1.3
    kernels.expect(
        correlations, np.zeros(1, np.intp), 0, np.empty((0, 0)), np.array([gap * scale * 2**0.5]),
        scale, 0.0, deviation, out,
    )  # fmt: skip
    s = scale * 2**0.5  # no point is known: the variance is that of the prior
    assert deviation[0] == pytest.approx(s)
    # EI / density at 0 = integral of t exp(t gap - t^2 / 2)
    integral = quad(lambda t: t * np.exp(t * gap - t * t / 2), 0, 40, limit=200)[0]
    assert out[0] == pytest.approx(np.log(s * integral) + norm.logpdf(gap), abs=1e-5)
    if abs(gap) <= 2:
        values = np.random.default_rng(0).normal(gap * s, s, 200_000)
        assert np.exp(out[0]) == pytest.approx(np.maximum(values, 0).mean(), rel=0.02)


def test_minimise_keeps_bounds() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(6, 6))
    a = a @ a.T + 0.1 * np.eye(6)
    goal = np.array([0.5, -3.0, 1.0, 0.0, 0.2, 3.0])

    def f(x: Any) -> tuple[float, Any]:
        assert (np.abs(x) <= 2).all()
        return float((x - goal) @ a @ (x - goal) / 2), a @ (x - goal)

    x = minimise(f, np.zeros(6), np.full(6, -2.0), np.full(6, 2.0), 200)
    slope = f(x)[1]
    assert (np.abs(np.where(np.abs(x) < 2, slope, 0)) < 0.01).all()
    assert (slope * np.sign(x) <= 0)[np.abs(x) == 2].all()
    inside = minimise(
        lambda x: (float(x @ a @ x), 2 * a @ x), goal / 2, -(goal**2) - 9, goal**2 + 9, 99
    )
    np.testing.assert_allclose(inside, 0, atol=0.01)


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=30))
def test_squashed_values_keep_their_order(values: list[float]) -> None:
    found = squash(values)
    assert np.isfinite(found).all()
    assert abs(found.mean()) < 1e-6
    assert found.std() == pytest.approx(1.0) or np.allclose(found, 0)
    order = np.argsort(values, kind="stable")
    assert (np.diff(found[order]) >= -1e-9).all()


def test_distances_count_changes() -> None:
    columns = Columns(SPACE)
    point = {"a": "x", "b": False, "one": 3, "i": 5, "j": 2, "p": [0, 1, 2, 3, 4], "s": [1]}
    others = [
        point,
        {**point, "i": 900, "j": 3},
        {**point, "p": [0, 2, 1, 3, 4], "s": [1, 3]},
        {key: value for key, value in {**point, "a": "z"}.items() if key != "j"},
    ]
    rows = columns.of(SPACE.encode(others))
    assert columns.distances(rows, rows[0]).tolist() == [0.0, 2.0, 2.0, 1.0]


# --- the search -----------------------------------------------------------------------------------


def evaluate(strategy: GPSearch, f: Any, turns: int, count: int = 1) -> list[bytes]:
    """Propose and answer; the points as bytes."""
    if strategy.archive is None:
        strategy.archive = Archive(strategy.space)
    seen = []
    for _ in range(turns):
        tickets, codes = strategy.propose(count)
        keys = strategy.archive.packing.pack(codes)
        answers = []
        for ticket, row, key in zip(tickets, codes, keys, strict=True):
            seen.append(key)
            value = f(row)
            status = FAILED if np.isnan(value) else 0
            strategy.archive.add(key, value, status)
            answers.append(Answer(ticket, row, value, status))
        strategy.learn(answers)
    return seen


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_no_point_is_proposed_twice_while_there_are_new_ones(data: st.DataObject) -> None:
    variables: dict[str, Any] = {"v0": ao.Categorical(["p", "q", "r"])}
    for k in range(1, data.draw(st.integers(1, 3))):
        when = data.draw(st.sampled_from([None, {"v0": "p"}, {"v0": ["q", "r"]}]))
        kinds = (
            ao.Binary(when=when),
            ao.Integer(1, 4, when=when),
            ao.Categorical([1, 2], when=when),
        )
        variables[f"v{k}"] = data.draw(st.sampled_from(kinds))
    space = ao.Space(variables)
    count = data.draw(st.integers(1, 4))
    strategy = GPSearch(space, 0)
    seen = evaluate(
        strategy, lambda x: float(x @ np.arange(len(x))), -(-space.points // count), count
    )
    assert len(set(seen)) == space.points


def test_points_that_are_evaluated_are_not_proposed() -> None:
    strategy = GPSearch(ao.Space.binary(12), 0)
    evaluate(strategy, lambda x: float(x.sum()), 15)
    open_points = [strategy.propose(4).codes for _ in range(5)]
    assert len(np.unique(np.concatenate(open_points), axis=0)) == 20
    # each is chosen in view of the others: they are not all neighbours of the best point
    assert len({tuple(np.flatnonzero(row == 0)) for row in np.concatenate(open_points)}) == 20


def test_it_learns_where_evaluations_fail() -> None:
    """Points with the first bit fail: half of all points, but few of the later ones."""
    problem = problems.nk(30, 4, 0)
    strategy = GPSearch(problem.space, 0)
    failed: list[bool] = []

    def f(x: Any) -> float:
        failed.append(bool(x[0]))
        return np.nan if x[0] else float(problem(x))

    evaluate(strategy, f, 60)
    assert len(strategy._answers.failed) == sum(failed)
    assert sum(failed[30:]) <= 6  # of 30 fair coins, at most 6 are heads with probability 7e-4


def test_noise_is_recognised() -> None:
    found = {}
    for deviation in (0.0, 3.0):
        rng = np.random.default_rng(0)
        space = ao.Space.binary(20)
        strategy = GPSearch(space, 0)
        strategy.archive = Archive(space, deterministic=False)
        evaluate(strategy, lambda x, d=deviation, r=rng: float(x.sum() + d * r.normal()), 60)
        found[deviation] = strategy.facts()["noise"]
        assert strategy._best is not None
        assert strategy._best.sum() >= 14
    assert found[3.0] > 3 * found[0.0]


def test_it_learns_from_data() -> None:
    problem = problems.nk(30, 2, 0)
    points = drawn(60, 0, problem.space)
    data = (points, problem.evaluate(points))
    options: dict[str, Any] = {"algorithm": "gp", "progress": False}
    without = [ao.maximize(problem, budget=15, seed=k, **options).best_value for k in range(3)]
    learned = [
        ao.maximize(problem, budget=15, seed=k, data=data, **options).best_value for k in range(3)
    ]
    assert np.mean(learned) > np.mean(without)


def test_it_learns() -> None:
    """After 50 evaluations it is better than random search and no worse than iterated local search.

    One-sided tests of Welch at 1 % against random search, two-sided ones at 5 % against the other.
    """
    for f in (problems.qubo(40, 0, 0), problems.nkd(20, 2, 4, 0)):
        found = {
            name: [
                ao.maximize(f, budget=50, algorithm=name, seed=seed, progress=False).best_value
                for seed in range(6)
            ]
            for name in ("gp", "ils", "random")
        }
        test = ttest_ind(found["gp"], found["random"], equal_var=False, alternative="greater")
        assert test.pvalue < 0.01
        level = welch(found["gp"], found["ils"]) >= 0.05
        assert level or np.mean(found["gp"]) > np.mean(found["ils"])


def test_conditions_may_be_functions() -> None:
    space = ao.Space(
        {
            "layers": ao.Integer(1, 3),
            "two": ao.Integer(1, 20, when=lambda point: point["layers"] >= 2),
            "three": ao.Integer(1, 20, when=lambda point: point["layers"] >= 3),
        }
    )
    result = ao.maximize(
        lambda point: sum(point.values()), space, budget=20, seed=0, algorithm="gp"
    )
    assert result.evaluations == 20


def test_lists_are_learned() -> None:
    """Where which item is decides, and which are next to each other."""
    worth = np.random.default_rng(0).random((7, 7))
    space = ao.Space({"p": ao.Permutation(range(7))})

    def places(x: dict[str, Any]) -> float:
        return float(sum(worth[k, item] for k, item in enumerate(x["p"])))

    def tour(x: dict[str, Any]) -> float:
        p = x["p"]
        return -float(sum(worth[p[k - 1], p[k]] + worth[p[k], p[k - 1]] for k in range(7)))

    for f in (places, tour):
        values = {
            name: [
                ao.maximize(f, space, 40, algorithm=name, seed=seed, progress=False).best_value
                for seed in range(6)
            ]
            for name in ("gp", "random")
        }
        test = mannwhitneyu(values["gp"], values["random"], alternative="greater")
        assert test.pvalue < 0.01


def test_runs_do_not_depend_on_threads() -> None:
    code = (
        "import anyorder as ao\n"
        "r = ao.maximize(ao.problems.nk(60, 2, 0), budget=45, algorithm='gp', seed=1,"
        " progress=False)\n"
        "print(r.history.codes.tobytes().hex())"
    )
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, "1")}
    other = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    here = ao.maximize(problems.nk(60, 2, 0), budget=45, algorithm="gp", seed=1, progress=False)
    assert other.strip() == here.history.codes.tobytes().hex()


def test_studies_of_workers_and_resumption(tmp_path: Any) -> None:
    problem, study = problems.nk(16, 2, 0), tmp_path / "a.db"
    options: dict[str, Any] = {"algorithm": "gp", "progress": False}
    ao.maximize(problem, budget=20, study=study, seed=3, **options)
    more = ao.maximize(problem, budget=32, study=study, **options)
    whole = ao.maximize(problem, budget=32, seed=3, **options)
    assert more.history.values.tolist() == whole.history.values.tolist()
    assert more.facts["model_error"] == whole.facts["model_error"]


def test_a_small_budget_of_auto_begins_with_the_process() -> None:
    """The portfolio climbs from what the process found, and a state is exact before and after."""
    problem = problems.nk(24, 2, 0)

    def answer(strategy: Any, count: int) -> list[Any]:
        asked = []
        for _ in range(count):
            tickets, codes = strategy.propose(1)
            value = float(problem.evaluate(codes)[0])
            strategy.learn([Answer(tickets[0], codes[0], value)])
            asked.append((codes[0], value))
        return asked

    for budget, opening in ((300, True), (301, False), (None, False)):
        strategy = AutoSearch(problem.space, 5, budget)
        assert ("gp" in strategy.facts()["explorers"]) == opening
    one = AutoSearch(problem.space, 5, 130)
    first = answer(one, 60)
    twin = AutoSearch(problem.space, 5, 130)
    twin.restore(one.state())
    later, again = answer(one, 50), answer(twin, 50)
    assert all(np.array_equal(a, b) for (a, _), (b, _) in zip(later, again, strict=True))
    assert one.facts()["explorers"]["gp"] == 100
    best = max(first + later[:40], key=lambda entry: entry[1])[0]
    assert (later[40][0] != best).sum() == 1
