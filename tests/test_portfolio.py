"""The portfolio: credit, climbs without tickets, memory, operators, and that no run ends early."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anyorder as ao
from anyorder.archive import Archive
from anyorder.errors import FAILED, REJECTED
from anyorder.strategies.auto.climb import Climb
from anyorder.strategies.auto.credit import Credit
from anyorder.strategies.auto.memory import Memory
from anyorder.strategies.auto.operators.base import Operator, Tools
from anyorder.strategies.auto.operators.branch import Branch
from anyorder.strategies.auto.operators.explore import Explore
from anyorder.strategies.auto.operators.mutate import Exchange, Mutate
from anyorder.strategies.auto.operators.restart import Restart
from anyorder.strategies.auto.portfolio import Portfolio
from anyorder.strategies.auto.request import CHANGE, POINT, Best
from anyorder.strategies.auto.search import AutoSearch, DeltaSearch
from anyorder.strategies.base import Answer
from anyorder.strategies.models.landscape import Landscape
from anyorder.strategies.plain.one_plus_one import FastOnePlusOneEA
from anyorder.strategies.plain.p3 import P3

BOTH = pytest.mark.parametrize("maker", [DeltaSearch, AutoSearch])


# --- credit ---------------------------------------------------------------------------------------


def spend(credit: Credit, priors: dict[str, float], gains: dict[str, float], total: int) -> Any:
    """Evaluations of each, if every one of an operator has its chance of a gain."""
    rng, spent = np.random.default_rng(0), dict.fromkeys(priors, 0)
    for _ in range(total):
        name = credit.next(priors, float(rng.random()))
        credit.charge(name, 1, float(rng.random() < gains.get(name, 0.0)))
        credit.close(name, 1)
        spent[name] += 1
    return spent


def test_shares_are_the_priors_without_any_gain() -> None:
    priors = {"a": 3.0, "b": 1.0}
    spent = spend(Credit(dict.fromkeys(priors, 1), 10), priors, {}, 400)
    assert spent["a"] == pytest.approx(300, abs=10)


def test_gains_raise_a_share_and_nobody_is_left_out_for_good() -> None:
    priors = {"a": 1.0, "b": 1.0, "c": 1.0}
    credit = Credit(dict.fromkeys(priors, 1), 10)
    spent = spend(credit, priors, {"b": 0.3}, 1_000)
    assert spent["b"] > 3 * spent["a"]
    more = spend(credit, priors, {}, 1_000)  # nothing gains any more
    assert min(more.values()) > 100


def test_old_gains_are_forgotten() -> None:
    credit, priors = Credit({"a": 1, "b": 1}, 10), {"a": 1.0, "b": 1.0}
    spend(credit, priors, {"a": 0.5}, 100)
    before = credit.shares(priors)["a"]
    spend(credit, priors, {"b": 0.5}, 300)
    assert credit.shares(priors)["a"] < 0.5 < before


def test_shares_are_of_evaluations_and_not_of_uses() -> None:
    credit, priors = Credit({"cheap": 1, "dear": 50}, 10), {"cheap": 1.0, "dear": 1.0}
    spent = {"cheap": 0, "dear": 0}
    for _ in range(500):
        name = credit.next(priors, 0.0)
        cost = 50 if name == "dear" else 1
        credit.charge(name, cost, 0)
        credit.close(name, cost)
        spent[name] += cost
    assert 0.5 < spent["cheap"] / spent["dear"] < 2


def test_an_operator_without_a_prior_is_never_next() -> None:
    credit = Credit({"a": 1, "b": 1}, 10)
    assert {credit.next({"a": 0.0, "b": 1.0}, tie) for tie in (0.0, 0.5, 0.99)} == {"b"}


def test_what_is_charged_is_kept() -> None:
    credit, other = Credit({"a": 1, "b": 1}, 10), Credit({"a": 1, "b": 1}, 10)
    credit.charge("a", 7, 1)
    credit.close("a", 7)
    other.restore(credit.state())
    priors = {"a": 1.0, "b": 1.0}
    assert other.shares(priors) == credit.shares(priors) != {"a": 0.5, "b": 0.5}


# --- climbs ---------------------------------------------------------------------------------------


def climb_alone(space: ao.Space, f: Callable[[Any], float | None], seed: int = 0) -> Any:
    """A climb without tickets or operators: where it ended, and how many requests it made."""
    rng = np.random.default_rng(seed)
    landscape, memory = Landscape(space, rng), Memory(space)
    climb, best = Climb(space, landscape, memory), Best(np.zeros(len(space), np.int32), -np.inf)
    climb.start(rng.integers(space.cardinalities).astype(np.int32))
    asked = []
    while climb.active:
        request = climb.next(best)
        if request is None:
            break
        value = f(request.point)
        status = 0 if value is not None else FAILED
        answer = Answer(None, request.point, math.nan if value is None else value, status)
        memory.answer(memory.key(request.point), answer, proposed=False)
        climb.answered(request, value, best)
        asked.append(request)
    return landscape, asked


def test_a_climb_ends_at_a_local_optimum() -> None:
    weights = np.random.default_rng(0).standard_normal(30)
    landscape, asked = climb_alone(ao.Space.binary(30), lambda x: float(weights @ x))
    assert landscape.point.tolist() == (weights > 0).tolist()
    assert landscape.value == pytest.approx(weights[weights > 0].sum())
    assert len(asked) <= 2 * 30
    assert len({request.key for request in asked}) == len(asked)


def test_a_climb_is_not_stopped_by_failures() -> None:
    """Where the point itself has no value there is no climb; a change that fails is left out."""
    f = lambda x: None if x[0] == 1 else float(x.sum())  # noqa: E731
    for seed in range(6):
        landscape, asked = climb_alone(ao.Space.binary(12), f, seed)
        if asked[0].point[0] == 1:
            assert len(asked) == 1
        else:
            assert landscape.point.tolist() == [0] + [1] * 11


def test_a_climb_asks_for_more_while_it_waits() -> None:
    space, rng = ao.Space.binary(20), np.random.default_rng(0)
    landscape, memory = Landscape(space, rng), Memory(space)
    climb, best = Climb(space, landscape, memory), Best(np.zeros(20, np.int32), -np.inf)
    climb.start(np.zeros(20, np.int32))
    requests = []
    for _ in range(8):
        request = climb.next(best)
        assert request is not None
        memory.expect(memory.key(request.point))
        requests.append(request)
    assert len({request.key for request in requests}) == 8
    assert sum(request.kind == CHANGE for request in requests) == 7
    for request in requests:
        value = float(request.point.sum())
        memory.answer(memory.key(request.point), Answer(0, request.point, value), proposed=True)
        climb.answered(request, value, best)
    assert landscape.value >= 2  # several of seven changes that are better are made together


# --- memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_what_an_archive_knows(direction: str) -> None:
    space = ao.Space.binary(4)
    memory, archive = Memory(space), Archive(space, direction)
    memory.use(archive)
    points = np.eye(4, dtype=np.int32)
    keys = [memory.key(point) for point in points]
    archive.add(keys[0], 3.0)
    archive.add(keys[1], math.nan, FAILED)
    archive.add(keys[2], math.nan, REJECTED, known=True)
    found = [memory.value(key) for key in keys]
    assert found[0] == (3.0 if direction == "maximize" else -3.0)
    assert all(value is not None and math.isnan(value) for value in found[1:3])
    assert memory.is_new(points[3])
    memory.expect(keys[3])
    assert not memory.is_new(points[3])
    memory.answer(keys[3], None, proposed=True)  # given up
    assert not memory.is_new(points[3])


def test_absent_variables_make_no_new_point() -> None:
    space = ao.Space({"a": ao.Binary(), "b": ao.Integer(1, 9, when={"a": True})})
    memory = Memory(space)
    assert memory.key(np.array([0, 3], np.int32)) == memory.key(np.array([0, 5], np.int32))
    assert memory.key(np.array([1, 3], np.int32)) != memory.key(np.array([1, 5], np.int32))


# --- operators ------------------------------------------------------------------------------------


def tools(space: ao.Space) -> Tools:
    strategy = DeltaSearch(space, seed=0)
    return strategy._operators["restart"].tools


@pytest.mark.parametrize("kind", [Mutate, Exchange])
def test_mutants_are_new_and_near(kind: type[Operator]) -> None:
    shared = tools(ao.Space.binary(40))
    operator, best = kind(shared), Best(np.arange(40, dtype=np.int32) % 2, 1.0)
    found = [operator.propose(best) for _ in range(100)]
    near = [point for point in found if point is not None]
    assert len(near) > 80
    for point in near:
        assert 1 <= np.count_nonzero(point != best.point) < 12
        if kind is Exchange:
            assert point.sum() == best.point.sum()
    for _ in range(30):
        point = operator.propose(best)
        if point is not None:
            assert shared.memory.is_new(point)
            key = shared.memory.key(point)
            shared.memory.answer(key, Answer(None, point, 0.0), proposed=False)
    assert best.point.tolist() == [0, 1] * 20


def test_restarts_approach_what_is_violated_least() -> None:
    operator = Restart(tools(ao.Space.binary(100)))
    least, none = np.ones(100, np.int32), Best(np.zeros(100, np.int32), -np.inf)
    operator.note_violation(np.zeros(100, np.int32), math.nan)
    operator.note_violation(least, 2.0)
    operator.note_violation(np.zeros(100, np.int32), 3.0)
    near = [operator.propose(none) for _ in range(20)]
    assert all(point is not None and point.sum() > 90 for point in near)
    anywhere = operator.propose(Best(least, 1.0))
    assert anywhere is not None
    assert anywhere.sum() < 80


def test_branches_bring_other_variables() -> None:
    space = ao.Space(
        {
            "kind": ao.Categorical(list("abc")), "free": ao.Binary(),
            "x": ao.Integer(0, 9, when={"kind": "a"}), "y": ao.Integer(0, 9, when={"kind": "b"}),
        }
    )  # fmt: skip
    operator = Branch(tools(space))
    best = Best(np.array([0, 1, 4, 7], np.int32), 1.0)
    points = np.array([operator.propose(best) for _ in range(40)])
    assert set(points[:, 0]) == {1, 2}
    assert (points[:, 1] == best.point[1]).all()
    assert (points[:2, 1:] == best.point[1:]).all()  # the first visits begin where it was best
    assert operator.weight(0.5) == 1.0
    assert Branch(tools(ao.Space.binary(3))).weight(0.5) == 0.0


@pytest.mark.parametrize("kind", [P3, FastOnePlusOneEA])
def test_an_explorer_learns_what_is_known_at_no_cost(kind: Any) -> None:
    space = ao.Space.binary(10)
    shared, best = tools(space), Best(np.zeros(10, np.int32), 0.0)
    one, other = (Explore(shared, kind(space, 3)) for _ in range(2))
    first = one.propose(best)
    assert first is not None
    shared.memory.answer(shared.memory.key(first), Answer(None, first, 7.0), proposed=False)
    one.answered(first, 7.0)
    second = other.propose(best)  # the first one is known by now
    assert second is not None
    assert second.tolist() == np.asarray(one.propose(best)).tolist()
    other.answered(second, None)  # it failed
    assert other.facts() == {kind(space, 0).name: 1}
    again = Explore(shared, kind(space, 99))
    again.restore(other.state())
    assert np.array_equal(np.asarray(again.propose(best)), np.asarray(other.propose(best)))


def test_traps_are_left_to_p3() -> None:
    """Single changes mislead there; delta search alone hardly gets beyond 52 of 60."""
    problem = ao.problems.get("trap:blocks=12,k=5")
    strategy, best = AutoSearch(problem.space, seed=1), -np.inf
    for _ in range(10_000):
        proposals = strategy.propose(1)
        value = float(problem(proposals.codes[0]))
        best = max(best, value)
        strategy.learn([Answer(proposals.tickets[0], proposals.codes[0], value)])
        if best == 60:
            break
    assert best >= 55
    assert strategy.facts()["operators"]["p3"] > 300


# --- the whole ------------------------------------------------------------------------------------


def spaces() -> st.SearchStrategy[ao.Space]:
    """Bits, categories, integers and conditions."""

    def build(sizes: list[int], conditional: bool) -> ao.Space:
        variables: dict[str, Any] = {}
        for k, size in enumerate(sizes):
            when = {"v0": variables["v0"].values[0]} if conditional and k % 3 == 1 else None
            kind = ao.Categorical(range(size)) if k % 2 else ao.Integer(0, size - 1)
            variables[f"v{k}"] = (
                ao.Categorical(range(size), when=when) if k % 2
                else ao.Integer(0, size - 1, when=when)
            ) if when else kind  # fmt: skip
        return ao.Space(variables)

    lists = st.lists(st.sampled_from([1, 2, 2, 3, 7, 40]), min_size=1, max_size=8)
    return st.builds(build, lists, st.booleans())


@settings(deadline=None, max_examples=25)
@given(spaces(), st.integers(0, 3), st.sampled_from([1, 3]), st.booleans(), st.booleans())
def test_no_run_ends_early_and_no_point_comes_twice(
    space: ao.Space, seed: int, batch: int, portfolio: bool, failing: bool
) -> None:
    """Until every point is known, there is a new one; readings of a point apart."""
    strategy: Portfolio = (AutoSearch if portfolio else DeltaSearch)(space, seed=seed)
    weights, seen, repeats = np.random.default_rng(seed).standard_normal(len(space)), set(), 0
    while len(seen) < min(space.points, 120):
        proposals = strategy.propose(batch)
        assert len(proposals.codes), f"nothing after {len(seen)} of {space.points} points"
        for ticket, codes in zip(proposals.tickets, proposals.codes, strict=True):
            key = space.canonical(codes[None]).tobytes()
            request = strategy._waiting[ticket].request
            assert key not in seen or (request is not None and request.kind not in (0, CHANGE))
            repeats += key in seen
            seen.add(key)
            failed = failing and codes.sum() % 3 == 1
            value = math.nan if failed else float(np.sin(codes * 1.3) @ weights)
            strategy.learn([Answer(ticket, codes, value, FAILED if failed else 0)])
        assert repeats <= 20
    if len(seen) == space.points:
        assert not len(strategy.propose(2).codes) or repeats < 20


def test_many_categories_do_not_end_a_run() -> None:
    space = ao.Space([ao.Categorical(range(32))] * 32)
    weights = np.random.default_rng(0).standard_normal((32, 32))
    f = lambda x: float(weights[np.arange(32), x].sum())  # noqa: E731
    result = ao.maximize(f, space, 1_200, algorithm="delta", seed=0, progress=False)
    assert (result.evaluations, result.stop_reason) == (1_200, "budget")


def test_conditions_do_not_end_a_run() -> None:
    variables: dict[str, Any] = {"kind": ao.Categorical(list("abcd"))}
    for kind in "abcd":
        for k in range(3):
            variables[f"{kind}{k}"] = ao.Integer(0, 200, when={"kind": kind})

    def f(point: dict[str, Any]) -> float:
        values = [point[name] for name in point if name != "kind"]
        return -sum(abs(value - 70) for value in values) - 10.0 * (point["kind"] != "c")

    result = ao.maximize(f, ao.Space(variables), 400, seed=0, progress=False)
    assert (result.evaluations, result.stop_reason) == (400, "budget")
    assert result.best_value > -20


def test_a_branch_is_judged_by_more_than_one_evaluation() -> None:
    """The best branch is worse than another one at nearly all of its points."""
    space = ao.Space(
        {
            "kind": ao.Categorical(list("ab")),
            "x": ao.Integer(0, 99, when={"kind": "a"}),
            **{f"y{k}": ao.Integer(0, 99, when={"kind": "b"}) for k in range(3)},
        }
    )

    def f(point: dict[str, Any]) -> float:
        if point["kind"] == "a":
            return 1.0 - abs(point["x"] - 50) / 100
        return 2.0 - sum(abs(point[f"y{k}"] - 20 - 30 * k) for k in range(3)) / 40

    found = [ao.maximize(f, space, 150, seed=s, progress=False).best_value for s in range(6)]
    assert sum(value is not None and value > 1.0 for value in found) >= 5, found


def test_a_branch_pays_for_its_climb_from_the_first_evaluation_on() -> None:
    """The value of a climb's first point is not a step of the climb that was interrupted."""
    when = {"kind": "a"}
    space = ao.Space({"kind": ao.Categorical(["a", "b", "c"]), "i": ao.Integer(0, 60, when=when),
                      "j": ao.Integer(0, 60), "x": ao.Binary(when=when)})  # fmt: skip
    begun = []
    for seed in range(4):
        strategy = AutoSearch(space, seed=seed)
        for _ in range(200):
            proposals = strategy.propose(1)
            ticket, codes = proposals.tickets[0], proposals.codes[0]
            waiting = strategy._waiting[ticket]
            if waiting.request is not None and waiting.request.kind == POINT:
                begun.append(waiting.operator)
            strategy.learn([Answer(ticket, codes, -float(np.sum((codes - [1, 9, 40, 1]) ** 2)))])
    assert "branch" in begun
    assert "step" not in begun


def test_a_state_keeps_what_is_waiting() -> None:
    """Explorers, trials and requests of the climb, saved with none of them answered."""
    problem = ao.problems.get("nk:n=40,k=3")
    strategy = AutoSearch(problem.space, seed=0)
    for _ in range(60):
        proposals = strategy.propose(6)
        both = zip(proposals.tickets, proposals.codes, strict=True)
        strategy.learn([Answer(t, codes, float(problem(codes))) for t, codes in both])
    proposals = strategy.propose(80)
    assert len(strategy._waiting) == 80
    file = io.BytesIO()
    np.savez(file, **strategy.state())
    file.seek(0)
    twin = AutoSearch(problem.space, seed=7)
    twin.restore(dict(np.load(file)))
    answers = [
        Answer(t, codes, float(problem(codes)))
        for t, codes in zip(proposals.tickets, proposals.codes, strict=True)
    ]
    for each in (strategy, twin):
        each.learn(answers[::-1])
    assert strategy.propose(5).codes.tolist() == twin.propose(5).codes.tolist()
    assert strategy.facts() == twin.facts()


def test_under_noise_a_trial_is_confirmed_before_it_is_the_best() -> None:
    problem = ao.problems.get("nk:n=64,k=4")
    strategy = AutoSearch(problem.space, seed=0)
    for _ in range(150):
        proposals = strategy.propose(1)
        strategy.learn([Answer(proposals.tickets[0], proposals.codes[0],
                               float(problem(proposals.codes[0])))])  # fmt: skip
    strategy.landscape.add_noise(0.0, 0.05, 1)
    best = strategy._best
    point = best.point.copy()
    point[:5] = 1 - point[:5]
    strategy.learn([Answer(None, point, best.value + 1.0)])
    assert strategy._best.point.tolist() == best.point.tolist()
    assert strategy.landscape.point.tolist() == point.tolist()


def test_trials_fill_up_for_workers_that_would_wait() -> None:
    problem = ao.problems.get("trap:blocks=4,k=5")
    strategy = AutoSearch(problem.space, seed=0)
    for _ in range(150):
        proposals = strategy.propose(8)
        assert len({codes.tobytes() for codes in proposals.codes}) == 8
        for k, (ticket, codes) in enumerate(zip(proposals.tickets, proposals.codes, strict=True)):
            if k % 3:
                strategy.learn([Answer(ticket, codes, float(problem(codes)))])
            else:
                strategy.give_up([ticket])
    assert not strategy._waiting
    assert not strategy._memory._pending


@BOTH
def test_facts_tell_shares_that_add_up(maker: Any) -> None:
    facts = ao.maximize(ao.problems.get("nk:n=30,k=2"), budget=200, algorithm=maker.name,
                        seed=0, progress=False).facts  # fmt: skip
    assert sum(facts["shares"].values()) == pytest.approx(1, abs=0.01)
    assert facts["best_found_by"] in facts["operators"]
