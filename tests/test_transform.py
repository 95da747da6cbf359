"""The scale on which delta search models f: how it is chosen, and what changes with it."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import anyorder as ao
from anyorder.strategies.auto.operators.explore import Explore
from anyorder.strategies.auto.search import AutoSearch, DeltaSearch
from anyorder.strategies.base import Answer
from anyorder.strategies.models import layout
from anyorder.strategies.models.scale import (
    IDENTITY,
    LADDER,
    Pairs,
    Transform,
    choose,
    pair_up,
)

BOTH = pytest.mark.parametrize("maker", [DeltaSearch, AutoSearch])
# A function of values in (0, 1): the power that undoes it, the sign, and the pole.
UNDONE: dict[str, tuple[Callable[[Any], Any], float, int, float]] = {
    "exponential": (lambda z: np.exp(10 * z), 0.0, 1, 0.0),
    "with an offset": (lambda z: 3 + 1e-3 * np.exp(10 * z), 0.0, 1, 3.0),
    "run time": (lambda z: 7 - 50 * np.exp(-10 * z), 0.0, -1, 7.0),
    "reciprocal": (lambda z: 1 / (1.5 - z), -1.0, 1, 0.0),
    "negative reciprocal": (lambda z: -1 / (z + 0.1), -1.0, -1, 0.0),
    "negative root": (lambda z: -np.sqrt(1.2 - z), 2.0, -1, 0.0),
    "root": (lambda z: np.sqrt(z + 0.1), 2.0, 1, 0.0),
    "square": (lambda z: (z + 0.1) ** 2, 0.5, 1, 0.0),
    "negative square": (lambda z: -((1.2 - z) ** 2), 0.5, -1, 0.0),
}
# The same for powers with the pole 0; of values that may have both signs.
RAISED: dict[str, tuple[Callable[[Any], Any], float, int]] = {
    "cube": (lambda z: z**3, 1 / 3, 1),
    "negative cube": (lambda z: -((1.2 - z) ** 3), 1 / 3, -1),
    "reciprocal of a root": (lambda z: (1.2 - z) ** -0.4, -2.5, 1),
    "cube with sign": (lambda z: (z - 0.3) ** 3, 1 / 3, 1),
    "other power below": (
        lambda z: np.where(z > 0.4, np.abs(z - 0.4) ** 2.5, -np.sqrt(np.abs(z - 0.4))),
        0.4,
        1,
    ),
}


def gains(f: Callable[[Any], Any], share: float, count: int = 200, seed: int = 0) -> Pairs:
    """Pairs of gains of f, a function of numbers; a share of them is the same without f."""
    rng = np.random.default_rng(seed)
    u, v, p = 0.2 + 0.3 * rng.random(count), 0.5 + 0.3 * rng.random(count), 0.2 * rng.random(count)
    q = np.where(rng.random(count) < share, p, 0.2 * rng.random(count))
    return Pairs(f(u), f(u + p) - f(u), f(v), f(v + q) - f(v))


def run(strategy: Any, f: Callable[[Any], float], evaluations: int, batch: int = 1) -> list[bytes]:
    """All points that were proposed."""
    points: list[bytes] = []
    while len(points) < evaluations:
        proposals = strategy.propose(batch)
        strategy.learn(
            [
                Answer(ticket, codes, float(f(codes)))
                for ticket, codes in zip(proposals.tickets, proposals.codes, strict=True)
            ]
        )
        points += [codes.tobytes() for codes in proposals.codes]
    return points


def exponential(problem: Any) -> Callable[[Any], float]:
    return lambda x: math.exp(10 * problem(x))


# --- the choice -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", UNDONE)
@pytest.mark.parametrize("scale", [1.0, 1e-100, 1e100])
def test_what_was_done_to_f_is_undone(name: str, scale: float) -> None:
    f, power, sign, pole = UNDONE[name]
    found = choose(gains(lambda z: scale * f(z), 0.3), IDENTITY)
    assert (found.power, found.sign) == (power, sign)
    assert found.pole == pytest.approx(scale * pole, rel=1e-12, abs=1e-12 * scale)
    z = np.linspace(0.2, 1.0, 9)
    steps = np.diff([found(scale * float(f(one))) for one in z])
    assert steps == pytest.approx(np.full(8, steps[0]), rel=1e-6)


@pytest.mark.parametrize("name", RAISED)
@pytest.mark.parametrize("scale", [1.0, 1e-90, 1e90])
def test_any_power_of_f_is_undone(name: str, scale: float) -> None:
    f, power, sign = RAISED[name]
    found = choose(gains(lambda z: scale * f(z), 0.5), IDENTITY)
    assert (found.sign, found.pole) == (sign, 0.0)
    assert found.power == pytest.approx(power, rel=1e-9)
    z = np.linspace(0.2, 1.0, 17)
    levels = [found(scale * float(f(one))) for one in z]
    assert (np.diff(levels) > 0).all()
    assert [found.inverse(level) for level in levels] == pytest.approx(scale * f(z), rel=1e-9)
    steps = np.diff(levels)[-8:]
    assert steps == pytest.approx(np.full(8, steps[0]), rel=1e-6)


def test_values_of_both_signs_have_no_logarithm() -> None:
    """Nor a negative power: the values below 0 would be far away from all others."""
    pairs = gains(lambda z: np.where(z > 0.3, 1 / np.maximum(1.2 - z, 0.1), z - 0.3), 0.5)
    assert (pairs.ends() < 0).any()
    assert choose(pairs, IDENTITY) == IDENTITY
    assert choose(pairs.only(pairs.ends().min(axis=0) > 0), IDENTITY).power == -1.0


def test_a_scale_is_chosen_only_if_many_gains_agree() -> None:
    f = UNDONE["exponential"][0]
    assert choose(gains(f, 0.0), IDENTITY) == IDENTITY
    assert choose(gains(f, 0.01), IDENTITY) == IDENTITY
    assert choose(gains(lambda z: z, 0.3), IDENTITY) == IDENTITY
    assert choose(gains(np.sinh, 0.3), IDENTITY) == IDENTITY  # not among the scales
    assert choose(gains(lambda z: z**0.995, 0.3), IDENTITY) == IDENTITY  # as good as linear
    assert choose(gains(np.sign, 0.3), IDENTITY) == IDENTITY  # no gain at all
    assert choose(Pairs(*np.empty((4, 0))), IDENTITY) == IDENTITY
    repeated = Pairs(*np.tile(gains(f, 1.0, 7), 30))  # the same seven again and again
    assert choose(repeated, IDENTITY) == IDENTITY
    assert choose(Pairs(*np.tile(gains(f, 1.0, 8), 30)), IDENTITY).sign == 1


def test_a_scale_is_kept_or_given_up() -> None:
    f, other = UNDONE["exponential"][0], UNDONE["reciprocal"][0]
    present = choose(gains(f, 0.3), IDENTITY)
    assert choose(gains(f, 0.2, seed=1), present) is present
    assert choose(gains(f, 0.0), present) is present  # nothing speaks for any other
    assert choose(gains(lambda z: z, 0.3), present) == IDENTITY
    assert choose(gains(other, 0.3), present).power == -1.0


@pytest.mark.parametrize("family", ["nk", "nkd", "qubo", "maxsat"])
def test_other_functions_keep_their_scale(family: str) -> None:
    problem = {
        "nk": lambda: ao.problems.nk(32, 4, 0),
        "nkd": lambda: ao.problems.nkd(24, 2, 3, seed=0),
        "qubo": lambda: ao.problems.get("qubo:n=32,type=0,seed=0"),
        "maxsat": lambda: ao.problems.maxsat(32, 4.3, 3, 0),
    }[family]()
    strategy = AutoSearch(problem.space, seed=0)
    run(strategy, problem, 400)
    assert strategy.facts()["transform"] == "none"


def test_gains_are_paired_with_those_of_the_same_change() -> None:
    changes = np.array(
        [[3, 0, 1], [1, 2, 0], [3, 1, 0], [-2, 0, 0], [1, 0, 2], [1, 0, 1]], np.int32
    )
    levels = np.array([[1.0, 5.0], [2.0, 3.0], [7.0, 6.0], [0.0, 9.0], [4.0, 8.0], [1.0, 2.0]])
    u, p, v, q = pair_up(changes, levels)
    assert u.tolist() == [3.0, 1.0]
    assert p.tolist() == [-1.0, 4.0]
    assert v.tolist() == [4.0, 6.0]
    assert q.tolist() == [4.0, 1.0]


@pytest.mark.parametrize("power", [*LADDER, 0.4, 0.01, 3.0, -0.01, -3.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_transforms_increase_and_can_be_inverted(power: float, sign: int) -> None:
    transform = Transform(sign, 2.0, power, 1e-3)
    distances = np.concatenate([-np.logspace(1, -5, 50), np.logspace(-5, 4, 200)])
    values = np.sort(2.0 + sign * distances)
    found = [transform(float(value)) for value in values]
    assert (np.diff(found) > 0).all()
    back = np.array([transform.inverse(value) for value in found])
    assert np.allclose(back - 2.0, values - 2.0, rtol=1e-9, atol=1e-15)
    for value in (-math.inf, math.inf):
        assert transform(value) == transform.inverse(value) == value
    for prediction in (-1e300, -1.0, 1.0, 1e300):  # also where f has no such value
        assert math.isfinite(transform.inverse(prediction))
    assert -math.inf < transform(-1e308) < transform(1e308) < math.inf
    near = transform(values[100] + 1e-6) - transform(values[100])
    assert transform.stretch(transform(values[100])) * near == pytest.approx(1e-6, rel=0.01)


def test_formulas() -> None:
    assert IDENTITY.describe() == "none"
    assert Transform(1, -3.0, 0.0, 1e-6).describe() == "log(f + 3)"
    assert Transform(-1, 3.0, 0.0, 1e-6).describe() == "-log(3 - f)"
    assert Transform(1, 1e-12, 0.5, 1e-6).describe() == "f^0.5"
    assert Transform(1, 2.0, -1.0, 1e-6).describe() == "-(f - 2)^-1"
    assert Transform(-1, 0.0, 2.0, 1e-6).describe() == "-(-f)^2"
    assert Transform(1, 0.0, 0.4 + 1e-13, 1e-6).describe() == "f^0.4"


# --- the search -----------------------------------------------------------------------------------


@BOTH
def test_a_search_models_the_logarithm_of_an_exponential(maker: Any) -> None:
    """It finds the links of the function itself, and proposes the same whatever the unit is."""
    problem = ao.problems.nk(24, 2, 0)
    f, true = exponential(problem), np.zeros((24, 24), bool)
    for group in problem.neighbours:
        true[np.ix_(group, group)] = True
    found = right = 0
    for seed in range(3, -1, -1):
        strategy = maker(problem.space, seed=seed)
        points = run(strategy, f, 500)
        assert strategy.facts()["transform"] == "log(f)"
        links = strategy.landscape.gains.links()
        found, right = found + links.sum(), right + (links & true).sum()
    assert found > 80
    assert right > 0.9 * found
    best = max(f(np.frombuffer(point, np.int32)) for point in points)
    assert strategy._best.value == pytest.approx(best, rel=1e-9)
    again = maker(problem.space, seed=0)
    assert run(again, lambda x: 1024.0 * f(x), 500) == points


@BOTH
@pytest.mark.parametrize("centre", [0.0, 0.5])
def test_a_search_models_the_cube_root_of_a_cube(maker: Any, centre: float) -> None:
    """Also if most random points have negative values."""
    problem = ao.problems.nk(24, 2, 0)
    strategy = maker(problem.space, seed=0)
    run(strategy, lambda x: (problem(x) - centre) ** 3, 200)
    assert strategy.facts()["transform"] == "f^0.333333"
    assert strategy.landscape._transform.power == pytest.approx(1 / 3, abs=1e-6)


@BOTH
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("saved", [20, 300])
def test_a_state_continues_bit_for_bit_across_the_choice(
    maker: Any, batch: int, saved: int
) -> None:
    problem = ao.problems.nk(20, 2, 1)
    f = exponential(problem)
    first = maker(problem.space, seed=2)
    run(first, f, saved, batch)
    open_ones = first.propose(2)
    file = io.BytesIO()
    np.savez(file, **first.state())
    file.seek(0)
    second = maker(problem.space, seed=9)
    second.restore(dict(np.load(file)))
    assert (first.facts()["transform"] == "none") == (saved == 20)
    for strategy in (first, second):
        strategy.learn([Answer(open_ones.tickets[1], open_ones.codes[1], f(open_ones.codes[1]))])
    assert run(first, f, 200, batch) == run(second, f, 200, batch)
    assert first.facts() == second.facts()
    assert first.facts()["transform"] == "log(f)"


@BOTH
def test_proposals_that_are_not_answered_keep_the_scale_of_f(maker: Any) -> None:
    problem = ao.problems.nk(24, 2, 0)
    f = exponential(problem)
    strategy, waiting, late = maker(problem.space, seed=0), [], 0
    for _ in range(60):
        proposals = strategy.propose(4)
        waiting += list(zip(proposals.tickets, proposals.codes, strict=True))
        answered, waiting = waiting[:-3], waiting[-3:]
        strategy.learn([Answer(ticket, codes, f(codes)) for ticket, codes in answered])
        for entry in strategy._waiting.values():
            request = entry.request
            if request is not None and request.at > -np.inf:
                assert request.at == f(np.frombuffer(request.base, np.int32))
                late += strategy.landscape._transform.sign
    assert late > 0


def test_nobody_but_the_landscape_meets_the_transform() -> None:
    problem = ao.problems.nk(16, 1, 0)
    f = exponential(problem)
    strategy = AutoSearch(problem.space, seed=0)
    points = run(strategy, f, 400)
    landscape = strategy.landscape
    assert landscape._transform.sign == 1
    values = {f(np.frombuffer(point, np.int32)) for point in points}
    assert strategy._best.value == pytest.approx(max(values), rel=1e-9)
    landscape.go_to(strategy._best.point, strategy._best.value)
    assert landscape.value == strategy._best.value
    for operator in strategy._operators.values():
        strategies = [operator._strategy] if isinstance(operator, Explore) else []
        assert values >= {s._parent_value for s in strategies if hasattr(s, "_parent_value")}


@pytest.mark.parametrize("kind", ["binary", "mixed"])
def test_a_model_on_another_scale_is_that_of_values_on_that_scale(kind: str) -> None:
    """All that was observed is learned again, as if it had come on that scale."""
    space = ao.Space.binary(16)
    if kind == "mixed":
        space = ao.Space(
            [ao.Binary()] * 3 + [ao.Categorical(range(3))] * 3 + [ao.Integer(1, 10**6)] * 3
        )
    rng = np.random.default_rng(0)
    weights, change = rng.standard_normal(len(space)), Transform(1, -1.0, 0.0, 1e-3)
    searches = [DeltaSearch(space, seed=0) for _ in range(2)]

    def f(x: Any) -> float:
        z = x / space.cardinalities
        return float(np.exp(weights @ z + z[0] * z[1]))

    for _ in range(2 * len(space) - 1):  # before the first fit
        x = rng.integers(space.cardinalities).astype(np.int32)
        y, i = x.copy(), int(rng.integers(len(space)))
        y[i] = (x[i] + rng.integers(1, space.cardinalities[i])) % space.cardinalities[i]
        for search, scale in zip(searches, (lambda v: v, change), strict=True):
            search.landscape.go_to(x, scale(f(x)))
            search.landscape.observe(i, int(y[i]), scale(f(y)), climb=False)
    one, other = searches
    one.landscape.quadratic.note_several(x, (x + 1) % 2, f(x), 9.0)
    other.landscape.quadratic.note_several(x, (x + 1) % 2, change(f(x)), change(9.0))
    one.landscape.rescale(change)
    for name in ("profiles", "code", "context", "link", "value", "mean", "variance", "scale"):
        found = getattr(one.landscape.gains.arrays, name)
        assert np.array_equal(found, getattr(other.landscape.gains.arrays, name)), name
    assert np.array_equal(
        one.landscape.quadratic.observations.gains, other.landscape.quadratic.observations.gains
    )
    assert one.landscape.gains.evaluations == other.landscape.gains.evaluations
    assert one.landscape.gains.value == other.landscape.gains.value
    assert np.array_equal(one.landscape.gains.point, x)
    assert one.landscape.gains.scalar(layout.STALE) == 1.0


def test_no_scale_is_chosen_without_the_global_model() -> None:
    """Its observations are needed; a feature in 32 bits does not tell all large integers apart."""
    assert math.isfinite(DeltaSearch(ao.Space([ao.Integer(0, 10**6)] * 3)).landscape._next_look)
    assert DeltaSearch(ao.Space([ao.Integer(0, 10**9)] * 3)).landscape._next_look == math.inf
    assert DeltaSearch(ao.Space.binary(2100)).landscape._next_look == math.inf
