"""The optimizers for Nevergrad: parametrizations, losses, constraints, workers, and copies."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ng = pytest.importorskip("nevergrad")
from nevergrad.common import errors  # noqa: E402

from anyorder.integrations.nevergrad import AnyOrder, AnyOrderOptimizer  # noqa: E402
from anyorder.integrations.nevergrad_space import Variables  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::nevergrad.common.errors.NevergradWarning")
NAMES = ("AnyOrder", "AnyOrderILS", "AnyOrderPolicy")


def nested() -> Any:
    """Return a parametrization with choices in choices, beside everything else."""
    inner = ng.p.Choice(["x", ng.p.Scalar(lower=-3, upper=3), ng.p.TransitionChoice(range(4))])
    return ng.p.Instrumentation(
        ng.p.Choice(["none", inner, ng.p.Dict(a=ng.p.Log(lower=1e-3, upper=10.0), b="b")]),
        ng.p.Array(shape=(2, 3)).set_bounds(-2, 5).set_integer_casting(),
        flags=ng.p.Choice([0, 1], repetitions=3),
        either=ng.p.Choice([1, ng.p.Array(shape=(2,))], repetitions=2),
        size=ng.p.Scalar(lower=2, upper=9).set_integer_casting(),
        steps=ng.p.Log(lower=1, upper=1000).set_integer_casting(),
        order=ng.p.TransitionChoice(["s", "m", "l"], ordered=False),
        free=ng.p.Tuple(ng.p.Scalar(), ng.p.Array(init=[1e6, -3.0])),
        shifted=-2 * ng.p.Array(shape=(2,)).set_bounds(-1, 2, method="arctan") + 3,
        angle=ng.p.Angles(shape=(2,)),
        constant="c",
    )


def bits(count: int) -> Any:
    return ng.p.Choice([0, 1], repetitions=count)


def values(optimizer: Any, f: Any, count: int) -> list[Any]:
    """Return the values of so many candidates that were asked and told."""
    found = []
    for _ in range(count):
        candidate = optimizer.ask()
        found.append(candidate.value)
        optimizer.tell(candidate, f(candidate.value))
    return found


def test_candidates_have_the_values_of_points_and_points_those_of_candidates() -> None:
    parametrization = nested()
    parametrization.freeze()
    variables = Variables(parametrization, 101)
    space = variables.space
    codes = np.random.default_rng(0).integers(space.cardinalities, size=(40, len(space)))
    for point in space.decode(space.canonical(codes.astype(np.int32))):
        candidate = parametrization.spawn_child()
        variables.write(candidate, point)
        value = repr(candidate.value)
        assert variables.read(candidate) == point
        assert repr(candidate.value) == value  # options are not drawn again


def test_integers_have_all_values_between_their_bounds() -> None:
    parametrization = ng.p.Dict(
        n=ng.p.Scalar(lower=-0.5, upper=2.9).set_integer_casting(),
        m=(ng.p.Array(shape=(1,)).set_bounds(0.0, [3.0]) + 2).set_integer_casting(),
        steps=ng.p.Log(lower=1, upper=8).set_integer_casting(),
    )
    optimizer = AnyOrder(parametrization, budget=200)
    found = values(optimizer, lambda v: 0.0, 3 * 4 * 8)
    assert {v["n"] for v in found} == {0, 1, 2}
    assert {int(v["m"][0]) for v in found} == {2, 3, 4, 5}
    assert {v["steps"] for v in found} == set(range(1, 9))
    assert len({repr(v) for v in found}) == len(found)  # each once


def test_options_that_are_not_chosen_have_no_variables() -> None:
    parametrization = ng.p.Choice(["a", ng.p.Choice(["b", ng.p.Choice(3), ng.p.Choice(4)])])
    optimizer = AnyOrder(parametrization, budget=20)
    found = values(optimizer, lambda v: 0.0, 1 + 1 + 3 + 4)
    assert sorted(map(str, found)) == sorted(["a", "b", *map(str, range(3)), *map(str, range(4))])
    values(optimizer, lambda v: 0.0, 3)  # there is no other point: known ones are given again


@pytest.mark.parametrize("name", NAMES)
def test_the_registered_names_find_the_best_point(name: str) -> None:
    optimizer = ng.optimizers.registry[name](bits(8), budget=250)
    optimizer.parametrization.random_state.seed(0)
    best = optimizer.minimize(lambda x: -sum(x))
    assert (optimizer.name, best.value) == (name, (1,) * 8)


def test_other_algorithms_are_configured() -> None:
    maker = AnyOrderOptimizer(algorithm="p3", levels=11)
    assert repr(maker) == "AnyOrderOptimizer(algorithm='p3', levels=11)"
    optimizer = maker(1, budget=30)
    assert len({float(x[0]) for x in values(optimizer, lambda x: float(x[0] ** 2), 11)}) == 11
    with pytest.raises(ValueError, match="levels is 1"):
        AnyOrderOptimizer(levels=1)
    with pytest.raises(ValueError, match="unknown algorithm 'nothing'"):
        AnyOrderOptimizer(algorithm="nothing")(1).ask()


def test_the_grid_is_said_once_and_only_where_there_is_one() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        values(AnyOrder(2, budget=10), lambda x: float(x.sum()), 3)
    assert [warning.category for warning in caught] == [errors.InefficientSettingsWarning]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values(AnyOrder(bits(4), budget=10), sum, 3)


def test_equal_random_states_give_equal_runs() -> None:
    runs = []
    for seed in (1, 1, 2):
        parametrization = nested()
        parametrization.random_state.seed(seed)
        optimizer = AnyOrder(parametrization, budget=40)
        runs.append(repr(values(optimizer, lambda v: float(v[1]["size"]), 40)))
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("name", NAMES)
def test_a_loaded_optimizer_asks_the_same(name: str, tmp_path: Path) -> None:
    parametrization = ng.p.Instrumentation(x=bits(10), y=ng.p.Choice([1, ng.p.Scalar()]))
    parametrization.random_state.seed(3)
    parametrization.register_cheap_constraint(some_ones)
    optimizer = ng.optimizers.registry[name](parametrization, budget=100, num_workers=2)
    values(optimizer, lambda v: -float(sum(v[1]["x"])), 30)
    open_one = optimizer.ask()
    optimizer.dump(tmp_path / "optimizer.pkl")
    loaded = ng.optimizers.registry[name].load(tmp_path / "optimizer.pkl")
    for _ in range(10):
        one, other = optimizer.ask(), loaded.ask()
        assert one.value == other.value
        optimizer.tell(one, float(sum(one.kwargs["x"])))
        loaded.tell(other, float(sum(one.kwargs["x"])))
    for each in (optimizer, loaded):
        each.tell(open_one, 3.0)
        assert each.num_tell_not_asked == 0
    assert optimizer.ask().value == loaded.ask().value


def some_ones(value: Any) -> float:
    """Allow points with at least two ones."""
    return float(sum(value[1]["x"]) - 2)


def test_cheap_constraints_are_kept() -> None:
    parametrization = ng.p.Instrumentation(x=bits(12))
    parametrization.random_state.seed(0)
    optimizer = AnyOrder(parametrization, budget=60)
    optimizer.parametrization.register_cheap_constraint(some_ones)
    optimizer.parametrization.register_cheap_constraint(not_the_first)
    found = values(optimizer, lambda v: float(sum(v[1]["x"])), 60)
    assert all(some_ones(v) >= 0 and not_the_first(v) for v in found)
    assert sum(optimizer.recommend().kwargs["x"]) == 2
    refused = optimizer.parametrization.spawn_child(new_value=((), {"x": (0,) * 12}))
    optimizer.tell(refused, -5.0)
    assert sum(optimizer.recommend().kwargs["x"]) == 2


def not_the_first(value: Any) -> bool:
    return value[1]["x"][0] == 0


def test_constraints_that_nothing_meets_are_an_error() -> None:
    parametrization = ng.p.Instrumentation(x=bits(4))
    parametrization.register_cheap_constraint(never)
    with pytest.raises(ValueError, match="constraint"):
        AnyOrder(parametrization, budget=10).ask()


def never(value: Any) -> bool:
    return False


def test_violations_rank_below_whatever_the_loss_is() -> None:
    parametrization = bits(12)
    parametrization.random_state.seed(0)
    optimizer = AnyOrder(parametrization, budget=150)
    best = optimizer.minimize(
        lambda x: -1e6 * sum(x), constraint_violation=[lambda x: sum(x) - 6, lambda x: -sum(x)]
    )
    assert sum(best.value) == 6
    archive = optimizer._optimizer.archive
    assert archive.best_value == -6e6
    with pytest.raises(ValueError, match="constraint_violation is nan"):
        optimizer.tell(optimizer.ask(), 0.0, math.nan)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e300])
def test_losses_that_are_no_numbers_are_failures(bad: float) -> None:
    parametrization = bits(10)
    parametrization.random_state.seed(0)
    optimizer = AnyOrder(parametrization, budget=120)
    best = optimizer.minimize(lambda x: bad if x[0] == 0 or x[1] == 1 else -float(sum(x)))
    assert best.value == (1, 0, *[1] * 8)
    archive = optimizer._optimizer.archive
    told = archive.column("status") == 0
    assert np.isfinite(archive.column("value")[told]).all()
    assert not told.all()


def test_workers_ask_different_points_and_tell_in_any_order() -> None:
    parametrization = bits(10)
    parametrization.random_state.seed(0)
    optimizer = AnyOrder(parametrization, budget=100, num_workers=4)
    seen = set()
    for _ in range(20):
        candidates = [optimizer.ask() for _ in range(4)]
        seen.update(candidate.value for candidate in candidates)
        for candidate in reversed(candidates):
            optimizer.tell(candidate, -float(sum(candidate.value)))
    assert len(seen) == 80
    with ThreadPoolExecutor(4) as executor:
        best = optimizer.minimize(lambda x: -float(sum(x)), executor=executor)
    assert best.value == (1,) * 10


def test_points_that_were_not_asked_are_learned() -> None:
    parametrization = bits(6)
    parametrization.random_state.seed(0)
    optimizer = AnyOrder(parametrization, budget=100)
    told = optimizer.parametrization.spawn_child(new_value=(1, 0, 1, 0, 1, 0))
    optimizer.tell(told, -7.0)
    assert optimizer.num_tell_not_asked == 1
    assert optimizer.recommend().value == (1, 0, 1, 0, 1, 0)
    found = values(optimizer, lambda x: -float(sum(x)), 63)
    assert len({*found, told.value}) == 64  # it is not evaluated again
    far = AnyOrder(2, budget=5)
    far.tell(far.parametrization.spawn_child(new_value=np.array([50.0, 0.0])), -1.0)
    assert far._optimizer is None  # no point of the grid is near
    assert far.recommend().value[0] == 50


def test_noisy_functions_repeat_points() -> None:
    parametrization = ng.p.Choice(3)
    parametrization.function.deterministic = False
    optimizer = AnyOrder(parametrization, budget=40)
    found = values(optimizer, float, 20)
    assert len(found) == 20
    assert optimizer._optimizer.archive.deterministic is False


def test_several_objectives_are_one_by_the_volume_that_they_dominate() -> None:
    optimizer = AnyOrder(ng.p.Array(shape=(6,)).set_bounds(0, 4).set_integer_casting(), budget=60)
    optimizer.tell(ng.p.MultiobjectiveReference(), [30.0, 30.0])
    optimizer.minimize(lambda x: [float(x.sum()), float((4 - x).sum())])
    assert len(optimizer.pareto_front()) > 3


def test_importing_the_library_does_not_import_nevergrad() -> None:
    code = "import sys, anyorder; assert 'nevergrad' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
