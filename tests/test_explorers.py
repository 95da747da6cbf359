"""Strategies beside the model: whose turn it is, who is ahead, and what the default makes of it."""

from __future__ import annotations

import numpy as np
import pytest

import anyorder as ao
from anyorder.errors import FAILED
from anyorder.strategies.auto import EXPLORE, MUTATE, AutoSearch
from anyorder.strategies.base import Answer
from anyorder.strategies.delta import layout
from anyorder.strategies.explorers import NOBODY, Explorers
from anyorder.strategies.one_plus_one import FastOnePlusOneEA
from anyorder.strategies.p3 import P3

N = 10
SPACE = ao.Space([ao.Binary() for _ in range(N)])


def make() -> Explorers:
    return Explorers(SPACE, np.random.default_rng(0))


def whole_search(explorers: Explorers, values: list[float]) -> None:
    explorers.note([Answer(None, np.zeros(N, np.int32), value) for value in values])


def explore(explorers: Explorers, value: float, count: int) -> None:
    for _ in range(count):
        point = explorers.propose({}, set(), 0.0)
        assert point is not None
        explorers.learn(point, value)


def test_turns() -> None:
    explorers = make()
    whole_search(explorers, [5.0] * 100)
    explore(explorers, 1.0, 40)
    assert explorers.facts() == {"p3": 20, "fast-one-plus-one": 20}


def test_ahead_after_as_many_evaluations() -> None:
    """What counts is the best value then, not the best value now."""
    explorers = make()
    whole_search(explorers, [1.0] * 30 + [5.0] * 70)
    explore(explorers, 2.0, 2 * N - 2)
    assert explorers.leader(0.0) == NOBODY  # too few to compare
    explore(explorers, 2.0, 2)
    assert explorers.leader(0.0) == 0
    assert explorers.leader(1.5) == NOBODY
    explore(explorers, 2.0, 20)  # the leader's, up to where the whole search was better
    assert explorers.facts() == {"p3": 31, "fast-one-plus-one": 9}
    explore(explorers, 2.0, 30)
    assert explorers.leader(0.0) == NOBODY
    assert set(explorers.facts().values()) == {35}


def test_failures_are_not_counted() -> None:
    explorers = make()
    failed = Answer(None, np.zeros(N, np.int32), np.nan, FAILED)
    explorers.note([failed] * 20)
    whole_search(explorers, [1.0] * 15 + [3.0])
    explore(explorers, 2.0, 2 * N)
    assert explorers.leader(0.0) == 0
    assert explorers._answers == 16


def test_known_points_cost_nothing() -> None:
    explorers = make()
    explorers._searches = explorers._searches[1:]  # whose next proposals are known here
    explorers._spent, explorers._records = [0], [-np.inf]
    ahead = make()
    ahead._searches = ahead._searches[1:]
    ahead._spent, ahead._records = [0], [-np.inf]
    first = ahead.propose({}, set(), 0.0)
    assert first is not None
    second = explorers.propose({first.tobytes(): 7.0}, set(), 0.0)
    assert second is not None
    assert second.tobytes() != first.tobytes()
    assert explorers.facts() == {"fast-one-plus-one": 0}
    assert explorers._records == [7.0]


def test_state() -> None:
    explorers = make()
    whole_search(explorers, [1.0, 3.0, 2.0])
    explore(explorers, 2.0, 7)
    point = explorers.propose({}, set(), 0.0)
    other = make()
    other.restore(explorers.state())
    for one in (explorers, other):
        assert one.waiting
        assert point is not None
        one.learn(point, 4.0)
    for _ in range(20):
        a, b = (one.propose({}, set(), 0.0) for one in (explorers, other))
        assert a is not None
        assert b is not None
        assert a.tolist() == b.tolist()
        for one in (explorers, other):
            one.learn(a, float(a.sum()))
    assert explorers.facts() == other.facts()


@pytest.mark.parametrize("kind", [P3, FastOnePlusOneEA])
def test_a_failed_trial(kind: type) -> None:
    explorers = make()
    explore(explorers, 1.0, 5)
    point = explorers.propose({}, set(), 0.0)
    assert point is not None
    explorers.learn(point, None)
    assert not explorers.waiting
    assert kind(SPACE).name in explorers.facts()


def test_traps_are_left_to_p3() -> None:
    """Single changes mislead there; delta search alone hardly gets beyond 52 of 60."""
    problem = ao.problems.get("trap:blocks=12,k=5")
    strategy = AutoSearch(problem.space, seed=1)
    best = -np.inf
    for _ in range(8_000):
        proposals = strategy.propose(1)
        value = float(problem(proposals.codes[0]))
        best = max(best, value)
        strategy.learn([Answer(proposals.tickets[0], proposals.codes[0], value)])
        if best == 60:
            break
    facts = strategy.facts()
    assert best >= 55
    assert facts["explorers"]["p3"] > 2 * facts["explorers"]["fast-one-plus-one"]


def test_nobody_waits_for_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight workers get eight trials; a late one that is better is adopted, and credited."""
    problem = ao.problems.get("nk:n=64,k=4")
    strategy = AutoSearch(problem.space, seed=0)
    answered: list[float] = []

    def use(count: int) -> list[str]:
        proposals = strategy.propose(count)
        kinds = [strategy._waiting[ticket].kind for ticket in proposals.tickets]
        values = [float(problem(codes)) for codes in proposals.codes]
        answered.extend(values)
        both = zip(proposals.tickets, proposals.codes, values, strict=True)
        strategy.learn([Answer(*one) for one in both])
        return kinds

    while strategy._optima < 3:
        use(1)
    monkeypatch.setattr(AutoSearch, "_choose", lambda self: MUTATE)
    kinds = [kind for _ in range(40) for kind in use(8)]
    assert kinds.count("trial") > 100
    assert kinds.count("extra") < 10
    assert not strategy._trials
    point = strategy._best.copy()
    proposals = strategy.propose(8)
    assert strategy._trials
    ticket = next(iter(strategy._trials))
    codes = proposals.codes[list(proposals.tickets).index(ticket)]
    better = max(answered) + 1.0
    wins = strategy._wins[MUTATE]
    strategy.learn([Answer(ticket, codes, better)])
    assert strategy._best.tolist() == codes.tolist() != point.tolist()
    assert strategy._best_value == better
    assert strategy._wins[MUTATE] == wins + 1
    assert strategy.facts()["best_found_by"] == "mutate"


def test_under_noise_a_late_trial_is_confirmed_first() -> None:
    """One lucky reading does not make a point the best."""
    problem = ao.problems.get("nk:n=64,k=4")
    strategy = AutoSearch(problem.space, seed=0)
    while not strategy._trials:
        proposals = strategy.propose(8)
        if not strategy._trials:
            both = zip(proposals.tickets, proposals.codes, strict=True)
            strategy.learn([Answer(t, codes, float(problem(codes))) for t, codes in both])
    ticket = next(iter(strategy._trials))
    codes = proposals.codes[list(proposals.tickets).index(ticket)]
    strategy.model.scalars[layout.NOISE] = 1e-4
    best = strategy._best.copy()
    strategy.learn([Answer(ticket, codes, strategy._best_value + 1.0)])
    assert strategy.model.point.tolist() == codes.tolist()
    assert strategy._best.tolist() == best.tolist()


def test_a_trial_that_nobody_waits_for_is_given_up() -> None:
    problem = ao.problems.get("trap:blocks=4,k=5")
    strategy = AutoSearch(problem.space, seed=0)
    for _ in range(150):
        proposals = strategy.propose(8)
        for k, (ticket, codes) in enumerate(zip(proposals.tickets, proposals.codes, strict=True)):
            if k % 3:
                strategy.learn([Answer(ticket, codes, float(problem(codes)))])
            else:
                strategy.give_up([ticket])
    assert not strategy._trials
    assert not strategy._waiting
    next_one = bool(strategy._trial) and strategy._operator == EXPLORE  # not yet proposed
    assert strategy._explorers.waiting == next_one
