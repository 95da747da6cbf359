"""A conformance suite for search strategies.

    def test_my_strategy():
        check_strategy(lambda space, seed: MyStrategy(space, seed=seed))

It uses a strategy in every way that the protocol allows, and raises an error if one does not work.
"""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from anyorder.archive import Archive
from anyorder.archive.objectives import Objectives
from anyorder.errors import FAILED, INFEASIBLE, OK, REJECTED, TIMEOUT
from anyorder.space import Space, lists
from anyorder.space.variables import Binary, Categorical, Integer, Ordinal
from anyorder.strategies.base import Answer, Codes, Strategy
from anyorder.strategies.state import State

__all__ = ["check_strategy"]

Make = Callable[[Space, int], Strategy]
Outcome = Callable[[Codes], tuple[float, int]]  # the value and the status of a point

_SIZES = np.array([1, 1, 1, 2, 3, 5, 8, 13, 40, 100])
_DOUBLING = Ordinal([1, 2, 4, 8, 16])
_MIXED = Space(
    [Categorical([7]), Binary(), Categorical(range(3)), *[Integer(0, 4)] * 2, _DOUBLING, Binary()]
)
_LISTS = Space(
    {
        "order": lists.Permutation(range(4)),
        "level": Integer(0, 2),
        "some": lists.Subset(range(5), size=(1, 3)),
        "two": lists.Subset(range(4), size=2),
        "turns": lists.Sequence(["a", "b", "c"], [2, 1, 3]),
    }
)
_WEIGHTS = np.cos(np.arange(1000))
_TWO = Objectives(("one", "other"), ("max", "max"))
_SPACES = {
    "one binary variable": Space.binary(1),
    "one variable with one value": Space([Categorical([3])]),
    "three variables with one value": Space([Categorical([3]), Integer(2, 2), Categorical([0])]),
    "8 points": Space.binary(3),
    "one ordered variable": Space([Integer(1, 9)]),
    "mixed variables": _MIXED,
    "lists": _LISTS,
}


def _linear(x: Codes) -> tuple[float, int]:
    return float(x @ _WEIGHTS[: len(x)]), OK


def _partly_failing(x: Codes) -> tuple[float, int]:
    status = (OK, OK, OK, FAILED, OK, TIMEOUT, REJECTED, INFEASIBLE)[int(x.sum()) % 8]
    return (np.nan, status) if status else _linear(x)


_OUTCOMES: dict[str, Outcome] = {
    "a linear function": _linear,
    "a function that fails at some points": _partly_failing,
    "a function that always fails": lambda x: (np.nan, FAILED),
    "a constant function": lambda x: (1.0, OK),
    "a function with infinite values": lambda x: ((-np.inf, 0.0, np.inf)[int(x.sum()) % 3], OK),
}


def check_strategy(make: Make, *, lists: bool = True) -> None:
    """Check that a strategy follows the protocol of `anyorder.strategies.base.Strategy`.

    A failed check raises an AssertionError that names the check and the case.

    Parameters
    ----------
    make
        A function that returns a new strategy for a space and a seed.
    lists
        Whether the strategy accepts spaces with lists, such as a `Permutation`. If not, it must
        refuse them with a ValueError.
    """
    checks: dict[str, Callable[[], None]] = {
        "lists": lambda: None if lists else _check_refusal_of_lists(make),
        "any use": lambda: _check_any_use(make, lists),
        "seeds": lambda: _check_seeds(make),
        "states": lambda: _check_states(make, lists),
        "damaged states": lambda: _check_damaged_states(make),
        "fewer": lambda: _check_fewer(make),
        "settings and influence": lambda: _check_descriptions(make),
        "maximizes": lambda: _check_maximizes(make),
        "several objectives": lambda: _check_several(make, lists),
    }
    for name, check in checks.items():
        with _context(name):
            check()


def _check_refusal_of_lists(make: Make) -> None:
    try:
        make(_LISTS, 0)
    except ValueError:
        return
    raise AssertionError("a space with lists was not refused")


def _check_any_use(make: Make, lists: bool) -> None:
    """Use a strategy with all sizes, orders, outcomes and spaces.

    Answers are late, are unexpected or never come.
    """
    for where, space in _SPACES.items():
        if space is _LISTS and not lists:
            continue
        for what, outcome in _OUTCOMES.items():
            with _context(f"{where}, {what}"):
                _Run(make, space, 0).use(outcome, 8)


def _check_seeds(make: Make) -> None:
    runs = [_Run(make, Space.binary(16), seed) for seed in (1, 1, 2, 3)]
    logs = [run.use_plainly(_linear, 64).log for run in runs]
    _require(logs[0] == logs[1], "the same seed gave another run")
    _require(not logs[0] == logs[2] == logs[3], "other seeds gave the same run")


def _check_states(make: Make, lists: bool) -> None:
    """Check that a restored strategy continues like an uninterrupted one, with open proposals."""
    cases = ((_MIXED, _linear), (_MIXED, _partly_failing), (_LISTS, _linear))
    for space, outcome in cases if lists else cases[:2]:
        turns, stops = (24, (0, 1, 5, 12)) if space is _MIXED else (8, (1, 5))
        expected, original = _Run(make, space, 0).use(outcome, turns).log, _Run(make, space, 0)
        for turn in range(turns):
            if turn in stops:
                log = original.restore().use(outcome, turns - turn).log
                _require(log == expected, f"restored after {turn} turns it differs")
            original.use(outcome, 1)
        _require(original.log == expected, "state() or facts() changed the strategy")


def _check_descriptions(make: Make) -> None:
    """Check that settings are JSON, influence a matrix, and that neither changes the search."""
    runs = [_Run(make, _MIXED, 0).use(_linear, 5) for _ in range(2)]
    strategy, n = runs[0].strategy, len(_MIXED)
    kept = json.loads(json.dumps(strategy.settings(), allow_nan=False))
    _require(isinstance(kept, dict), "settings() is {}, expected a dict", kept)
    moves = strategy.influence(2)
    if moves is not None:
        _require(moves.shape == (n, n), "influence() has shape {}", moves.shape)
        _require(isinstance(strategy.influence_unit, str), "influence_unit is no text")
    logs = [run.use(_linear, 5).log for run in runs]
    _require(logs[0] == logs[1], "settings() or influence() changed the strategy")


def _check_damaged_states(make: Make) -> None:
    state = _through_file(_Run(make, _MIXED, 0).use(_linear, 5).strategy.state())
    other = _Run(make, Space.binary(3), 0).use(_linear, 5).strategy.state()
    parts = {f"no {gone!r}": {k: state[k] for k in state if k != gone} for gone in state}
    for what, damaged in {"nothing": {}, "another space": other, **parts}.items():
        try:
            make(_MIXED, 0).restore(damaged)
        except ValueError:
            continue
        raise AssertionError(f"a state with {what} was restored, expected a ValueError")


def _check_fewer(make: Make) -> None:
    """Check that `propose(k)` with m < k points leaves the strategy as `propose(m)` would."""
    for run in (_Run(make, _MIXED, 0), _Run(make, Space.binary(3), 0)):
        for turn, count in enumerate((2, 30, 200) * 3):
            more, exact = run.restore(), run.restore()
            found = len(more.propose(count))
            if 0 < found < count:
                exact.propose(found)
            if found < count:
                logs = more.use(_linear, 4).log, exact.use(_linear, 4).log
                what = f"propose({count}) gave {found} points and differs from propose({found})"
                _require(logs[0] == logs[1], f"after {turn} turns {what}")
            run.use(_linear, 1)


def _check_maximizes(make: Make) -> None:
    run = _Run(make, Space.binary(20), 0)
    values = run.use_plainly(lambda x: (float(x.sum()), OK), 400).archive.values
    if len(values) == 400:  # of uniform points, one has 14 ones with probability 1 - 5e-11
        _require(values.max() >= 14, f"400 evaluations of OneMax gave {values.max():g} of 20")
        _require(values[200:].mean() > 8, f"OneMax averages {values[200:].mean():.1f} in the end")


def _check_several(make: Make, lists: bool) -> None:
    """Check a strategy that supports several objectives: any use, states, and maximization."""
    if not getattr(make(_MIXED, 0), "several", False):
        return
    for space in (_MIXED, _LISTS) if lists else (_MIXED,):
        for outcome in (_linear, _partly_failing):
            expected = _Run(make, space, 0, _TWO).use(outcome, 12).log
            original = _Run(make, space, 0, _TWO).use(outcome, 6)
            log = original.restore().use(outcome, 6).log
            _require(log == expected, "restored with several objectives it differs")
    run = _Run(make, Space.binary(12), 0, _TWO).use_plainly(_linear, 300)
    _require(len(run.archive.front) > 3, "a front has {} points", len(run.archive.front))


class _Run:
    """A strategy in use; every proposal is checked."""

    def __init__(
        self, make: Make, space: Space, seed: int, objectives: Objectives | None = None
    ) -> None:
        self.make, self.space, self.archive = make, space, Archive(space, objectives=objectives)
        self.strategy = make(space, seed)
        _require(isinstance(self.strategy, Strategy), "a part of the protocol is missing")
        self.strategy.archive = self.archive
        # for the use of the strategy, not for the strategy itself
        self.rng = np.random.default_rng(0)
        self.log: list[tuple[Any, ...]] = []  # everything that the strategy did
        self.tickets: set[int] = set()
        self.open: list[tuple[int, Codes]] = []  # proposals without an answer
        # arrays that the strategy must not modify, and copies of them
        self.lent: list[tuple[Codes, Codes]] = []

    def propose(self, count: int, given: Codes | None = None) -> Codes:
        strategy, n = self.strategy, len(self.space)
        if given is not None:
            self.lent.append((given, given.copy()))
        tickets, codes = strategy.propose(count, given)
        kind = codes.dtype if isinstance(codes, np.ndarray) else type(codes).__name__
        _require(kind == np.int32, "codes are {}, expected int32", kind)
        fits = codes.ndim == 2 and len(codes) <= count and codes.shape[1] == n
        _require(fits, "codes have shape {}, expected at most ({}, {})", codes.shape, count, n)
        outside = codes[(codes < 0) | (codes >= self.space.cardinalities)]
        _require(not len(outside), "codes {} are out of range", outside[:3])
        same = np.array_equal(codes, self.space.canonical(codes))
        _require(same, "codes of a list repeat an item, or have too many or too few")
        if given is not None:
            first = np.array_equal(codes[: len(given)], given)
            _require(first, "given points do not come first")
        counts = len(tickets), len(codes)
        _require(counts[0] == counts[1], "{} tickets for {} points", *counts)
        new = set(map(int, tickets))
        _require(len(new) == len(tickets) and not new & self.tickets, "a ticket was used again")
        _require(isinstance(strategy.batch, int) and strategy.batch > 0, "batch is not positive")
        self.tickets |= new
        self.open += zip(map(int, tickets), codes, strict=True)
        self.lent.append((codes, codes.copy()))
        counters = strategy.batch, strategy.generation, strategy.restarts, strategy.converged
        self.log += [(*tickets, codes.tobytes(), *counters)] if len(codes) else []
        return codes

    def learn(self, chosen: Sequence[tuple[int | None, Codes]], outcome: Outcome) -> None:
        answers = []
        points = np.array([codes for _, codes in chosen], np.int32).reshape(-1, len(self.space))
        keys = self.archive.packing.pack(points)
        for (ticket, codes), key in zip(chosen, keys, strict=True):
            found = self.archive.lookup(key)
            status, value = outcome(codes)[::-1] if found is None else found
            known = found is not None or status == REJECTED
            values = None
            if self.archive.objectives is not None and status == OK:
                values = value, _linear(codes[::-1])[0] - value / 2
            self.archive.add(key, value, status, known=known, values=values)
            answers.append(Answer(ticket, codes, value, status, known, values=values))
        self.strategy.learn(answers)

    def use_plainly(self, outcome: Outcome, budget: int) -> _Run:
        """Propose a batch, answer all of it, and repeat."""
        while (left := budget - len(self.archive)) > 0:
            if not len(self.propose(min(self.strategy.batch, left))):
                break
            answered, self.open = self.open, []
            self.learn(answered, outcome)
        return self

    def use(self, outcome: Outcome, turns: int) -> _Run:
        """Use the strategy in every way that the protocol allows."""
        rng = self.rng
        for _ in range(turns):
            count = int(rng.choice(_SIZES))
            m = int(rng.integers(1, count + 1))
            self.propose(count, self._points(m) if rng.random() < 0.2 else None)
            shuffled = [self.open[i] for i in rng.permutation(len(self.open))]
            first, second = np.sort(rng.integers(0, len(shuffled) + 1, 2)) // 2
            self.open, given_up = shuffled[:first], shuffled[first:second]
            self.strategy.give_up([*(ticket for ticket, _ in given_up), 10**9, -1])
            answered: list[tuple[int | None, Codes]] = [*shuffled[second:], *given_up[::2]]
            # a point that it did not propose, and a ticket that it never gave
            if rng.random() < 0.3:
                answered += [(None, self._points(1)[0]), (10**9, self._points(1)[0])]
            self.learn(answered, outcome)
        same = all(np.array_equal(array, before) for array, before in self.lent)
        _require(same, "an array that others hold was modified")
        return self

    def restore(self) -> _Run:
        """Return a new strategy with the state of this one, in the same situation."""
        twin = copy.copy(self)
        twin.archive, twin.rng = copy.deepcopy(self.archive), copy.deepcopy(self.rng)
        twin.log, twin.tickets = [*self.log], {*self.tickets}
        twin.open, twin.lent = [*self.open], []
        twin.strategy = self.make(self.space, 12345)
        twin.strategy.archive = twin.archive
        twin.strategy.restore(_through_file(self.strategy.state()))
        facts = [json.dumps(run.strategy.facts(), allow_nan=False) for run in (self, twin)]
        _require(facts[0] == facts[1], "restored facts() differ")
        return twin

    def _points(self, count: int) -> Codes:
        limits = self.space.cardinalities
        points = self.rng.integers(limits, size=(count, len(limits)), dtype=np.int32)
        return self.space.canonical(points)


def _require(condition: bool, message: str, *values: Any) -> None:
    if not condition:
        raise AssertionError(message.format(*values) if values else message)


@contextmanager
def _context(label: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        text = str(error) if isinstance(error, AssertionError) else f"raised {error!r}"
        raise AssertionError(f"{label}: {text}") from error


def _through_file(state: State) -> State:
    file = io.BytesIO()
    np.savez(file, **state)  # type: ignore[arg-type]
    file.seek(0)
    return dict(np.load(file, allow_pickle=False))
