"""Algorithms by name: budgets, curves, seeds, early ends, errors; ours and other libraries'."""

from __future__ import annotations

import json
import random
import sys
import threading

import numpy as np
import pytest
from conftest import refused
from functions import run

import anyorder as ao
from anyorder.bench import algorithms
from anyorder.bench.algorithms.meter import Meter, Spent
from anyorder.problems import Problem
from anyorder.space.variables import Binary, Categorical, Integer
from anyorder.strategies import UMDA, RandomSearch, Search
from anyorder.strategies.registry import REGISTRY

BUDGET, GRID = 47, [1, 2, 10, 33, 47]
# of each library some, and all that go another way than the others
OTHERS = {
    "nevergrad": ["DiscreteLenglerOnePlusOne", "CMA", "Cobyla"],
    "optuna": ["TPE", "QMC"],
    "cmaes": ["CatCMAwM"],
    "gomea": ["LinkageTree", "Univariate"],
}
PEERS = [f"{kind}:{name}" for kind, names in OTHERS.items() for name in names]
OURS = ["policy", "policy:paper+epochs=5", *algorithms.available("strategy")]


class Counted(Problem):
    """Counts its evaluations and keeps the values; may fail at one of them."""

    def __init__(self, variables, fails_at=None, error=None):
        super().__init__("counted", ao.Space(variables))
        self.weights = np.random.default_rng(5).normal(size=len(self.space))
        self.seen: list[float] = []
        self.fails_at, self.error = fails_at, error

    def _values(self, points):
        if self.fails_at is not None and len(self.seen) + len(points) >= self.fails_at:
            if self.error is not None:
                raise self.error
            return np.full(len(points), np.nan)
        values = (points * self.weights).sum(axis=1) + 0.3 * points[:, 0] * points[:, -1]
        self.seen += values.tolist()
        return values


def needed(name):
    kind = name.partition(":")[0]
    if kind in OTHERS:
        pytest.importorskip(kind)
    return name


def values_of(name, problem, seed, budget=BUDGET):
    values: list[float] = []
    algorithms.run(name, problem, budget, seed, [budget], each=values.append)
    return values


@pytest.mark.parametrize("name", [*OURS, *PEERS])
def test_budget_and_curve(name):
    problem = Counted([Binary()] * 9)
    trace = algorithms.run(needed(name), problem, BUDGET, 3, GRID)
    assert len(problem.seen) == trace.evaluations == BUDGET
    best = np.maximum.accumulate(problem.seen)
    np.testing.assert_array_equal(trace.curve, best[np.array(GRID) - 1])
    assert trace.best_value == best[-1] == problem(trace.best)
    assert trace.duplicates is not None
    # each of the 512 points has its value
    assert trace.duplicates == BUDGET - len(set(problem.seen[:BUDGET]))
    assert trace.seconds > 0


@pytest.mark.parametrize("name", ["policy", "boa", *PEERS])
def test_seeds(name):
    problem = ao.problems.nk(12, 2, 0)
    np.random.seed(1)
    random.seed(1)
    first = values_of(needed(name), problem, 4)
    drawn = np.random.random(), random.random()
    np.random.seed(2)
    assert values_of(name, problem, 4) == first
    if name != "nevergrad:Cobyla":  # which draws nothing
        assert values_of(name, problem, 5) != first
    np.random.seed(1)
    random.seed(1)
    assert drawn == (np.random.random(), random.random())


@pytest.mark.parametrize("name", ["policy", "p3", *PEERS])
def test_three_values(name):
    problem = ao.problems.nkd(8, 2, 3, 0)
    trace = algorithms.run(needed(name), problem, 40, 0, [20, 40])
    assert trace.evaluations == 40
    assert trace.best_value == problem(trace.best)
    assert set(trace.best.tolist()) <= {0, 1, 2}


@pytest.mark.parametrize("name", ["policy", "tabu", *PEERS])
@pytest.mark.parametrize(
    "variables",
    [
        [Binary()] * 21 + [Categorical([0, 1, 2])] * 5,
        [
            Categorical([0, 1, 2]),
            Binary(),
            Categorical([0]),
            Integer(0, 6),
            Binary(),
            Integer(0, 6),
        ],
    ],
    ids=["nas", "all kinds"],
)
def test_mixed_spaces(name, variables):
    problem = Counted(variables)
    if name.startswith("gomea:"):
        with refused(ValueError, name, "expected the same number for all"):
            algorithms.check(needed(name), problem)
        return
    algorithms.check(needed(name), problem)
    trace = algorithms.run(name, problem, 40, 0, [40])
    assert len(problem.seen) == 40
    assert trace.best_value == max(problem.seen) == problem(trace.best)


def test_settings():
    problem = ao.problems.nk(12, 2, 0)
    config = ao.policy.Config(beta=2.0, hidden=(7,), learning_rate=1e3)
    alone = ao.maximize(
        problem, problem.space, 40, seed=1, algorithm=ao.policy.Policy(config), cache=False
    )
    name = "policy:default+beta=2+hidden=(7,)+learning_rate=1e+3+engine=cpu"
    assert values_of(name, problem, 1, 40) == alone.history.values.tolist()
    trace = algorithms.run(name, problem, 40, 1, [40])
    assert trace.configuration == {**config.to_dict(), "engine": "cpu"}
    umda = UMDA(problem.space, seed=1, population=8, selection=0.25)
    expected = run(umda, problem, 40).tolist()
    assert values_of("umda+population=8+selection=0.25", problem, 1, 40) == expected


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("optuna:TPE", "optuna:TPE+n_startup_trials=3"),
        ("cmaes:CatCMAwM", "cmaes:CatCMAwM+population_size=5"),
        ("gomea:LinkageTree", "gomea:LinkageTree+base_population_size=3+filtered=True"),
    ],
)
def test_settings_of_others(name, other):
    problem = ao.problems.nk(12, 2, 0)
    assert values_of(needed(name), problem, 0) != values_of(other, problem, 0)


class GivesUp(RandomSearch):
    """Converges after 20 points."""

    def _propose(self, count):
        self.converged = self._next_ticket >= 20
        return self._none() if self.converged else self._uniform(count)


def test_early_end(monkeypatch):
    monkeypatch.setitem(REGISTRY, "gives-up", GivesUp)
    problem = Counted([Binary()] * 9)
    trace = algorithms.run("gives-up", problem, BUDGET, 0, GRID)
    assert trace.evaluations == len(problem.seen) == 20
    best = np.maximum.accumulate(problem.seen)
    np.testing.assert_array_equal(trace.curve, best[[0, 1, 9, 19, 19]])


@pytest.mark.parametrize(
    "name", ["optuna:BruteForce", "gomea:LinkageTree+max_number_of_populations=1"]
)
def test_early_end_of_others(name):
    trace = algorithms.run(needed(name), Counted([Binary()] * 3), 100, 0, [4, 50, 100])
    assert trace.evaluations < 100
    assert trace.curve[1] == trace.curve[2] == trace.best_value


def test_no_evaluation_at_all(monkeypatch):
    class Nothing(RandomSearch):
        converged = True

        def _propose(self, count):
            return self._none()

    monkeypatch.setitem(REGISTRY, "nothing", Nothing)
    with refused(algorithms.AlgorithmError, "nothing", "before its first evaluation"):
        algorithms.run("nothing", Counted([Binary()] * 3), 10, 0, [10])


@pytest.mark.parametrize("name", ["policy", "rls", *PEERS])
def test_errors_of_a_problem(name):
    problem = Counted([Binary()] * 9, fails_at=25, error=ZeroDivisionError("ouch"))
    with refused(algorithms.AlgorithmError, name, "counted", "seed 6", "ZeroDivisionError", "ouch"):
        algorithms.run(needed(name), problem, BUDGET, 6, GRID)
    with refused(algorithms.AlgorithmError, name, "NaN"):
        algorithms.run(name, Counted([Binary()] * 9, fails_at=25), BUDGET, 6, GRID)


def test_errors_of_an_algorithm(monkeypatch):
    class Broken(Search):
        def _propose(self, count):
            raise KeyError("nowhere")

        def _learn(self, answers):
            pass

    monkeypatch.setitem(REGISTRY, "broken", Broken)
    with pytest.raises(algorithms.AlgorithmError, match="broken on counted") as info:
        algorithms.run("broken", Counted([Binary()] * 3), 10, 0, [10])
    assert isinstance(info.value.__cause__, KeyError)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("taboo", ["'taboo'", "did you mean 'tabu'?"]),
        ("policy:defualt", ["did you mean 'policy:default'?"]),
        ("polciy", ["did you mean 'policy'?", "nevergrad:NAME"]),
        ("policy:default+beta", ["+NAME=VALUE"]),
        ("policy+bata=2", ["'bata'", "'beta'"]),
        ("policy+beta=-2", ["beta", "-2"]),
        ("policy+beta=2+beta=3", ["beta", "twice"]),
        ("policy+engine=gpu", ["engine", "'gpu'", "cpu"]),
        ("boa+populatoin=500", ["'populatoin'", "did you mean 'population'?"]),
        ("boa+population=0", ["boa+population=0", "population", "0"]),
        ("boa+seed=1", ["unknown setting of boa 'seed'"]),
        ("cmaes:CMA", ["did you mean 'cmaes:CatCMAwM'?"]),
        ("gomea:StaticLinkageTree", ["did you mean 'gomea:LinkageTree'?"]),
    ],
)
def test_bad_names(name, words):
    with refused(ValueError, *words):
        algorithms.check(name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nevergrad:DiscreteOnePlusOn", ["did you mean 'nevergrad:DiscreteOnePlusOne'?"]),
        ("nevergrad:CMA+popsize=10", ["unknown setting 'popsize'"]),
        ("optuna:TPESampler", ["did you mean 'optuna:TPE'?"]),
        ("optuna:TPE+n_startup_trails=3", ["did you mean 'n_startup_trials'?"]),
        ("cmaes:CatCMAwM+population_size=1", ["population_size is 1"]),
        ("gomea:LinkageTree+base_population_size=0", ["base_population_size is 0"]),
    ],
)
def test_bad_names_of_others(name, words):
    with refused(ValueError, *words):
        algorithms.check(needed(name))


@pytest.mark.parametrize("name", ["nevergrad:CMA", "optuna:TPE", "cmaes:CatCMAwM", "gomea:Full"])
def test_missing_package(name, monkeypatch):
    kind = name.partition(":")[0]
    monkeypatch.setitem(sys.modules, kind, None)
    with refused(ImportError, kind, "pip install 'anyorder[peers]'"):
        algorithms.check(name)


def test_arguments():
    problem = Counted([Binary()] * 4)
    for grid in ([], [0, 5], [5, 5], [5, 11], [2.5], 3):
        with refused(ValueError, "grid"):
            algorithms.run("rls", problem, 10, 0, grid)
    for seed in (-1, 2**32):
        with refused(ValueError, "seed", str(seed)):
            algorithms.run("rls", problem, 10, seed, [10])
    with refused(ValueError, "one point"):
        algorithms.run("rls", Counted([Categorical([0])]), 10, 0, [10])
    with refused(ValueError, "kind", "'optona'", "'optuna'"):
        algorithms.available("optona")


def test_available():
    names = algorithms.available()
    assert {"policy", "policy:paper", "boa"} <= set(names)
    assert not [name for name in names if name.startswith("nevergrad:")]
    for name in ("optuna:TPE", "cmaes:CatCMAwM", "gomea:LinkageTree"):
        kind = name.partition(":")[0]
        assert (name in names) == algorithms.naming.is_installed(kind)


def test_nevergrad_has_its_whole_registry():
    ng = pytest.importorskip("nevergrad")
    assert len(algorithms.available("nevergrad")) == len(ng.optimizers.registry)


@pytest.mark.parametrize(
    ("name", "some"),
    [
        ("pbil", {"population": 32}),
        ("pbil+population=7", {"population": 7}),
        ("nevergrad:DiscreteDE", {"optimizer": "DifferentialEvolution", "F1": 0.8}),
        ("nevergrad:ChainCMAwithRsqrt", {"optimizers": ["RandomSearch", "CMA"]}),
        ("nevergrad:NGOpt", {"optimizer": "NGOpt"}),
        ("optuna:TPE+n_startup_trials=4", {"n_startup_trials": 4, "n_ei_candidates": 24}),
    ],
)
def test_the_whole_configuration(name, some):
    kind = name.partition(":")[0]
    if kind in algorithms.LIBRARIES:
        pytest.importorskip(kind)
    trace = algorithms.run(name, ao.problems.onemax(6), 12, 0, [12])
    assert some.items() <= trace.configuration.items()
    assert "seed" not in trace.configuration
    assert "0x" not in json.dumps(trace.configuration)  # and it is JSON


def test_whether_a_name_means_what_it_did():
    problem = ao.problems.nk(6, 2, 0)
    for name in ("policy", "policy:paper+beta=2+hidden=(4,)+engine=cpu", "policy+graph=known"):
        then = algorithms.run(name, problem, 2, 0, [2], engine="reference").configuration
        assert algorithms.still(name, then)
        assert algorithms.still(name, json.loads(json.dumps(then)))
        assert not algorithms.still(name, {**then, "epochs": 3})
        assert not algorithms.still(name, {**then, "of another version": 3})
        assert not algorithms.still(name, {**then, "kl": "reverse"})
    assert algorithms.still("policy", {})  # what is not said has its default
    assert not algorithms.still("policy:paper-code", {})
    assert algorithms.still("pbil", {"population": 7})


def test_nevergrad_without_what_an_optimiser_wants(monkeypatch):
    pytest.importorskip("nevergrad")
    from anyorder.bench.algorithms import nevergrad

    nevergrad._missing.cache_clear()
    monkeypatch.setitem(sys.modules, "nlopt", None)
    with pytest.raises(ImportError, match="NLOPT_GN_DIRECT_L requires nlopt: pip install nlopt"):
        algorithms.check("nevergrad:NLOPT_GN_DIRECT_L", ao.problems.onemax(5))
    algorithms.check("nevergrad:CMA", ao.problems.onemax(5))
    nevergrad._missing.cache_clear()


def test_nevergrad_leaves_no_threads():
    pytest.importorskip("nevergrad")
    before = threading.active_count()
    values_of("nevergrad:Cobyla", ao.problems.nk(12, 2, 0), 0, 12)
    assert threading.active_count() == before


def test_meter_beyond_its_budget():
    problem = Counted([Binary()] * 5)
    meter = Meter(problem, 10, [10])
    meter.evaluate(np.zeros((7, 5), int))
    with pytest.raises(Spent):
        meter.evaluate(np.ones((7, 5), int))
    assert meter.done == len(problem.seen) == 10
    with pytest.raises(Spent):
        meter.value([0] * 5)
    assert len(problem.seen) == 10
    trace = meter.trace(1.0, {})
    assert trace.duplicates == 8
    assert trace.curve[0] == max(problem.seen)


def test_linkage_tree_wants_three_variables():
    pytest.importorskip("gomea")
    with refused(ValueError, "gomea:LinkageTree", "2 variables", "at least 3"):
        algorithms.check("gomea:LinkageTree", ao.problems.onemax(2))


@pytest.mark.parametrize("name", ["policy+epochs=5", "policy+epochs=5+graph=known"])
def test_many_are_what_one_is(name):
    one, other = (ao.problems.nk(12, 2, seed) for seed in (0, 1))
    problems = [one, other, one]
    many = algorithms.run_many(name, problems, 40, [3, 3, 4], [5, 40], engine="cpu")
    for problem, seed, trace in zip(problems, (3, 3, 4), many, strict=True):
        alone = algorithms.run(name, problem, 40, seed, [5, 40], engine="cpu")
        assert not isinstance(trace, str)
        np.testing.assert_array_equal(trace.curve, alone.curve)
        np.testing.assert_array_equal(trace.best, alone.best)
        assert (trace.best_value, trace.evaluations) == (alone.best_value, 40)
        assert trace.configuration == alone.configuration
    with refused(ValueError, "rls", "runs one at a time"):
        algorithms.run_many("rls", problems, 40, [3, 3, 4], [40])
