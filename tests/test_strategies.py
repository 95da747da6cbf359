"""All strategies keep the protocol, and the conformance suite finds those that do not."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from functions import run

from anyorder import Space, problems
from anyorder.strategies import OnePlusOneEA, Proposals, RandomSearch, Search
from anyorder.strategies import registry as by_name
from anyorder.strategies.create import create
from anyorder.testing import check_strategy

PAGE = Path(__file__).parent.parent / "docs" / "strategies.md"


@pytest.mark.parametrize("name", by_name.names())
def test_strategies_conform(name: str) -> None:
    kind = by_name.REGISTRY[name]
    assert kind.name == name
    check_strategy(lambda space, seed: kind(space, seed=seed))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("umda", {"population": 4, "margins": False}),
        pytest.param("pbil", {"population": 2, "rate": 1.0}, marks=pytest.mark.slow),
        pytest.param("mimic", {"population": 6}, marks=pytest.mark.slow),
        pytest.param("boa", {"population": 6, "selection": 0.7}, marks=pytest.mark.slow),
        ("annealing", {"budget": 50, "sample": 2}),
        ("ils", {"kick": 1}),
        ("tabu", {"tenure": 1}),
    ],
)
def test_other_settings_conform(name: str, settings: dict[str, Any]) -> None:
    kind = by_name.REGISTRY[name]
    check_strategy(lambda space, seed: kind(space, seed=seed, **settings))


def test_names() -> None:
    space = Space.binary(4)
    for text, name in {
        "tabu": "tabu",
        "ils+kick=2": "ils",
        "policy:paper": "policy",
        "policy:paper+beta=2": "policy",
    }.items():
        assert create(text, space, 0).name == name
    for gone in ("iterated-local-search", "anyorder", "baseline:tabu"):
        with pytest.raises(ValueError, match="unknown algorithm"):
            create(gone, space, 0)
    with pytest.raises(ValueError, match=r"unknown algorithm 'taboo' \(did you mean 'tabu'\?\)"):
        create("taboo", space, 0)
    with pytest.raises(ValueError, match=r"unknown setting of tabu 'tenur' \(did you mean 'tenure"):
        create("tabu+tenur=3", space, 0)
    with pytest.raises(ValueError, match="tabu has no presets"):
        create("tabu:paper", space, 0)
    with pytest.raises(ValueError, match="unknown preset 'papre'"):
        create("policy:papre", space, 0)
    with pytest.raises(TypeError, match="algorithm is 3, expected a name or a strategy"):
        create(3, space, 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="searches another space"):
        create(RandomSearch(Space.binary(5), seed=0), space, 0)


def test_the_strategy_of_the_documentation() -> None:
    """It has at most 40 lines, and is better than random search on three NK instances.

    That it conforms is checked on the page, whose code `test_docs.py` runs.
    """
    code, check, _ = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(code.splitlines()) <= 40
    assert "check_strategy" in check
    names: dict[str, Any] = {}
    exec(code, names)
    for seed in range(3):
        problem = problems.nk(32, 2, seed)
        found = run(names["SteadyStateGA"](problem.space, seed=seed), problem, 1000)
        assert found.max() > run(RandomSearch(problem.space, seed), problem, 1000).max()


# What is unusual, but allowed ---------------------------------------------------------------------


class Enumerates(RandomSearch):
    """Proposes each point once, in an order of its own, at most two at a time; then finishes."""

    STATE = ("_next", "_shift")

    def __init__(self, space: Space, seed: Any = None) -> None:
        super().__init__(space, seed)
        self._next, self._shift = 0, int(self._rng.integers(1 << 16))

    def _propose(self, count: int) -> Any:
        numbers = np.arange(self._next, min(self._next + min(count, 2), self.space.size))
        self._next += len(numbers)
        numbers = (numbers * 7919 + self._shift) % self.space.size
        points = np.unravel_index(numbers, tuple(self._cardinalities))
        return np.stack(points, axis=1).astype(np.int32)


class Waits(RandomSearch):
    """Waits until all of its proposals are answered or given up."""

    STATE = ("_open",)

    def __init__(self, space: Space, seed: Any = None) -> None:
        super().__init__(space, seed)
        self._open: set[int] = set()

    def _propose(self, count: int) -> Any:
        if self._open:
            return self._none()
        self._open = set(range(self._next_ticket, self._next_ticket + count))
        return self._uniform(count)

    def _learn(self, answers: Any) -> None:
        self.give_up([answer.ticket for answer in answers])

    def give_up(self, tickets: Any) -> None:
        self._open -= set(tickets)


@pytest.mark.parametrize("kind", [Enumerates, Waits])
def test_what_is_allowed(kind: type[Search]) -> None:
    check_strategy(lambda space, seed: kind(space, seed))


# Strategies that break the protocol -------------------------------------------------------------


class ReusesTickets(RandomSearch):
    def propose(self, count: int, given: Any = None) -> Proposals:
        return Proposals(range(count), super().propose(count, given).codes)


class OutOfRange(RandomSearch):
    def _propose(self, count: int) -> Any:
        return self._uniform(count) + 1


class WrongType(RandomSearch):
    def _propose(self, count: int) -> Any:
        return self._uniform(count).astype(np.int64)


class TooMany(RandomSearch):
    def _propose(self, count: int) -> Any:
        return self._uniform(count + 1)


class IgnoresGiven(RandomSearch):
    def propose(self, count: int, given: Any = None) -> Proposals:
        return super().propose(count)


class ForgetsItsGenerator(OnePlusOneEA):
    @classmethod
    def _state_names(cls) -> list[str]:
        return [name for name in super()._state_names() if name != "_rng"]


class ForgetsItsParent(OnePlusOneEA):
    @classmethod
    def _state_names(cls) -> list[str]:
        return [name for name in super()._state_names() if name != "_parent"]


class AcceptsAnyState(RandomSearch):
    def restore(self, state: Any) -> None:
        with contextlib.suppress(ValueError):
            super().restore(state)


class IgnoresItsSeed(RandomSearch):
    def __init__(self, space: Space, seed: Any = None) -> None:
        super().__init__(space, 0)


class UsesTheClock(RandomSearch):
    def __init__(self, space: Space, seed: Any = None) -> None:
        super().__init__(space)


class StateDraws(RandomSearch):
    def state(self) -> Any:
        self._rng.random()
        return super().state()


class FactsAreArrays(RandomSearch):
    def facts(self) -> dict[str, Any]:
        return {"best": np.zeros(3)}


class SettingsAreArrays(RandomSearch):
    def settings(self) -> dict[str, Any]:
        return {"weights": np.zeros(3)}


class InfluencesAll(RandomSearch):
    def influence(self, points: int = 10) -> Any:
        return np.zeros(len(self.space))


class InfluenceDraws(RandomSearch):
    def influence(self, points: int = 10) -> Any:
        return self._rng.random((len(self.space),) * 2)


class Modifies(OnePlusOneEA):
    def _learn(self, answers: Any) -> None:
        super()._learn(answers)
        for answer in answers:
            answer.codes[:] = 0


class Minimizes(OnePlusOneEA):
    def _learn(self, answers: Any) -> None:
        super()._learn([answer._replace(value=-answer.value) for answer in answers])


class MatchesTickets(RandomSearch):
    """Fails on answers of points that it did not propose."""

    def _learn(self, answers: Any) -> None:
        for answer in answers:
            _ = range(self._next_ticket)[answer.ticket]


class DrawsForNothing(RandomSearch):
    """Draws all points although it returns two only."""

    def _propose(self, count: int) -> Any:
        return self._uniform(count)[:2]


class DrawsWhileWaiting(Waits):
    def _propose(self, count: int) -> Any:
        self._rng.random()
        return super()._propose(count)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (ReusesTickets, "any use: one binary variable, a linear function: a ticket was used again"),
        (OutOfRange, "any use: .*out of range"),
        (WrongType, "any use: .*codes are int64, expected int32"),
        (TooMany, "any use: .*codes have shape"),
        (IgnoresGiven, "any use: .*given points do not come first"),
        (Modifies, "any use: .*an array that others hold was modified"),
        (MatchesTickets, "any use: .*raised (TypeError|IndexError)"),
        (IgnoresItsSeed, "seeds: other seeds gave the same run"),
        (UsesTheClock, "seeds: the same seed gave another run"),
        (ForgetsItsGenerator, "states: restored after 0 turns it differs"),
        (ForgetsItsParent, "states: restored after 1 turns it differs"),
        (StateDraws, "states: "),
        (SettingsAreArrays, "settings and influence: raised TypeError.*not JSON serializable"),
        (InfluencesAll, r"settings and influence: influence\(\) has shape \(7,\)"),
        (InfluenceDraws, "settings and influence: .*changed the strategy"),
        (FactsAreArrays, "states: raised TypeError.*not JSON serializable"),
        (AcceptsAnyState, "damaged states: a state with nothing was restored"),
        (DrawsForNothing, r"fewer: after 1 turns propose\(30\) gave 2 points"),
        (DrawsWhileWaiting, r"fewer: after \d turns propose\(\d+\) gave 0 points"),
        (Minimizes, "maximizes: "),
    ],
)
def test_what_breaks_the_protocol_is_found(kind: Callable[..., Search], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_strategy(lambda space, seed: kind(space, seed))
