"""What `ask` gives and what it answers itself, points of others, and violations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anyorder as ao
from anyorder import optimizer as optimizer_module
from anyorder.run import exhaustion
from anyorder.strategies.base import Answer, Codes, Search
from anyorder.strategies.registry import REGISTRY

ALGORITHMS = ("auto", "ils", "one-plus-one", "p3", "policy", "random", "tabu")
SPACE = ao.Space(
    {"a": ao.Binary(), "b": ao.Categorical(["x", "y", "z"]), "c": ao.Integer(1, 3, when={"a": 1})}
)
SIZE = 3 + 9  # points


@pytest.fixture(autouse=True, scope="module")
def few_idle_proposals() -> Iterator[None]:
    """Let searches of a small space end sooner."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (optimizer_module, exhaustion):
            patch.setattr(module, "IDLE_CANDIDATES", 60)
            patch.setattr(module, "IDLE_BATCHES", 5)
        yield


def value(x: dict[str, Any]) -> float:
    return "xyz".index(x["b"]) + math.sin(x.get("c", 7))


def frozen(points: Sequence[dict[str, Any]]) -> list[tuple[tuple[str, Any], ...]]:
    return [tuple(sorted(point.items())) for point in points]


class Stubborn(Search):
    """Proposes the same few points for ever, and keeps what it learns."""

    name = "stubborn"

    def __init__(self, space: ao.Space, points: Sequence[Sequence[int]]) -> None:
        super().__init__(space, 0)
        self.points, self.turn = np.array(points, np.int32), 0
        self.proposed = 0
        self.answers: list[Answer] = []
        self.lost: list[int] = []

    def give_up(self, tickets: Sequence[int]) -> None:
        self.lost += tickets

    def _propose(self, count: int) -> Codes:
        rows = (self.turn + np.arange(count)) % len(self.points)
        self.turn, self.proposed = self.turn + count, self.proposed + count
        return self.points[rows]

    def _learn(self, answers: Sequence[Answer]) -> None:
        self.answers += answers


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=3)
@given(data=st.data())
def test_no_point_is_given_twice_and_in_the_end_there_are_none(
    algorithm: str, data: st.DataObject
) -> None:
    optimizer = ao.Optimizer(SPACE, data.draw(st.integers(0, 99)), algorithm=algorithm)
    given: list[Any] = []
    waiting: list[dict[str, Any]] = []
    for _ in range(2 * SIZE):
        asked = optimizer.ask(data.draw(st.sampled_from([None, 1, 2, 5, 20])))
        given += frozen(asked)
        waiting += asked
        if not waiting:  # nothing new in many proposals
            break
        told = data.draw(st.integers(1, len(waiting)))
        optimizer.tell(waiting[:told], [value(x) for x in waiting[:told]])
        del waiting[:told]
    assert len(given) == len(set(given)) == optimizer.archive.evaluations + len(waiting)
    if len(given) == SIZE:
        assert not optimizer.ask(3)


def test_known_points_are_given_when_that_is_wanted_or_values_are_noisy() -> None:
    space = ao.Space.binary(1)
    for options, known in (({}, "give"), ({"deterministic": False}, None)):
        optimizer = ao.Optimizer(space, 0, algorithm="random", **options)
        optimizer.tell([[0], [1]], [0.0, 1.0])
        assert len(optimizer.ask(5, known=known)) == 5
        assert not len(optimizer.ask(5, known="answer"))
    with pytest.raises(ValueError, match=r"known is 'answers'.*expected 'answer' or 'give'"):
        optimizer.ask(5, known="answers")


def test_an_answer_is_learned_by_all_that_wait_for_it() -> None:
    strategy = Stubborn(ao.Space.binary(3), [[0, 0, 1], [0, 0, 1], [0, 1, 0]])
    optimizer = ao.Optimizer(strategy.space, 0, algorithm=strategy)
    np.testing.assert_array_equal(optimizer.ask(2), [[0, 0, 1], [0, 1, 0]])
    assert not strategy.answers
    optimizer.tell([0, 0, 1], 5.0)
    assert {(a.ticket, a.value, a.known) for a in strategy.answers} >= {
        (0, 5.0, False),
        (1, 5.0, True),
    }
    assert optimizer.archive.evaluations == 1
    before = len(strategy.answers)
    assert not len(optimizer.ask(1))  # both are known or open
    assert {a.codes.tolist()[1] for a in strategy.answers[before:]} == {0}
    optimizer.tell([0, 1, 0], 6.0)
    answered = [a.ticket for a in strategy.answers]
    assert sorted(answered) == list(range(strategy.proposed))


def test_an_exhausted_space_costs_few_proposals() -> None:
    space = ao.Space([ao.Integer(1, 100), ao.Integer(1, 100)])
    points = [[i, j] for i in range(1, 101) for j in range(1, 101)]
    for others in (0, 10):
        strategy = Stubborn(space, [[0, 0], [5, 5], [9, 9]])
        optimizer = ao.Optimizer(space, 0, algorithm=strategy)
        optimizer.tell(points[others:], np.zeros(10_000 - others))
        optimizer.elsewhere(points[:others])
        assert not len(optimizer.ask(10_000))
        assert not len(optimizer.ask(1))
        assert strategy.proposed <= 2 * 10_000


# --- points of others -----------------------------------------------------------------------------


@pytest.mark.parametrize("known", ["answer", "give"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=3)
@given(data=st.data())
def test_points_of_others_are_not_given(algorithm: str, known: str, data: st.DataObject) -> None:
    space = ao.Space.binary(4)
    codes = np.array(list(np.ndindex(2, 2, 2, 2)))
    optimizer = ao.Optimizer(space, data.draw(st.integers(0, 99)), algorithm=algorithm)
    for _ in range(5):
        taken = codes[sorted(data.draw(st.sets(st.integers(0, 15), max_size=14)))]
        optimizer.elsewhere(taken)
        asked = np.asarray(optimizer.ask(2, known=known))
        assert not {*map(tuple, asked)} & {*map(tuple, taken)}
        optimizer.tell(asked, asked.sum(axis=1))
        told = taken[: len(taken) // 2]  # by those others
        optimizer.tell(told, told.sum(axis=1))


def test_points_of_others_are_given_once_nobody_has_them() -> None:
    strategy = Stubborn(ao.Space.binary(2), [[0, 1], [1, 0]])
    optimizer = ao.Optimizer(strategy.space, 0, algorithm=strategy)
    optimizer.elsewhere([[0, 1], [1, 0]])
    assert not len(optimizer.ask(1))
    waiting = strategy.proposed
    optimizer.tell([0, 1], 2.0)  # it has been evaluated, and answers those that waited for it
    answers = strategy.answers
    assert [answer.known for answer in answers] == [False] + [True] * (len(answers) - 1)
    assert optimizer.archive.evaluations == 1
    optimizer.elsewhere([])
    assert len(answers) + len(strategy.lost) == waiting
    np.testing.assert_array_equal(optimizer.ask(1), [[1, 0]])


@pytest.mark.parametrize("points", [None, 3])
def test_points_of_others_that_are_no_points(points: Any) -> None:
    with pytest.raises(TypeError, match=f"points is {points}, expected a sequence of points"):
        ao.Optimizer(ao.Space.binary(2), 0).elsewhere(points)


def test_points_of_others_are_not_part_of_the_state() -> None:
    strategy = Stubborn(ao.Space.binary(2), [[0, 1], [1, 0]])
    optimizer = ao.Optimizer(strategy.space, 0, algorithm=strategy)
    optimizer.elsewhere([[0, 1]])
    optimizer.ask(2)
    again = Stubborn(strategy.space, strategy.points)
    state = optimizer.state_dict()
    copy = ao.Optimizer.from_state(state, algorithm=again)
    assert again.lost  # nobody tells the copy what became of those
    copy.tell([1, 0], 1.0)
    np.testing.assert_array_equal(copy.ask(1), [[0, 1]])
    state["open_tickets"] = state["open_tickets"] + 2
    with pytest.raises(ValueError, match="damaged"):
        ao.Optimizer.from_state(state, algorithm=again)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_copy_with_open_points_goes_on_the_same(algorithm: str) -> None:
    optimizer = ao.Optimizer(SPACE, 1, algorithm=algorithm)
    open_points = optimizer.ask(4) + optimizer.ask(2)
    copy = ao.Optimizer.from_state(optimizer.state_dict())
    for each in (optimizer, copy):
        each.tell(open_points[:3], [value(x) for x in open_points[:3]])
    for _ in range(SIZE):
        asked = optimizer.ask(2)
        assert asked == copy.ask(2)
        for each in (optimizer, copy):
            each.tell(asked, [value(x) for x in asked])


# --- the same as a run ----------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=2)
@given(seed=st.integers(0, 999))
def test_asking_for_one_point_at_a_time_is_what_a_run_does(algorithm: str, seed: int) -> None:
    """One answer after the other, some of them infeasible, and a constraint."""

    def f(x: dict[str, Any]) -> float:
        if x["b"] == "y" and x["a"]:
            raise ao.Infeasible(violation=1.0 + x["c"])
        return value(x)

    def constraint(x: dict[str, Any]) -> bool:
        return bool(x["b"] != "z" or not x["a"])

    # the class, and not the name: a run tells a strategy its budget, which asking does not know
    options: dict[str, Any] = {"algorithm": REGISTRY[algorithm], "constraint": constraint}
    one_by_one = {"workers": 1, "asynchronous": True}
    run = ao.maximize(f, SPACE, 9, seed=seed, progress=False, **one_by_one, **options)
    optimizer = ao.Optimizer(SPACE, seed, **options)
    while optimizer.archive.evaluations < 9 and (asked := optimizer.ask(1)):
        (x,) = asked
        violation = 1.0 + x["c"] if x["b"] == "y" and x["a"] else 0.0
        optimizer.tell(x, value(x), violations=[violation])
    history, archive = run.history, optimizer.archive
    asked_for = ~archive.column("known")
    ran = np.flatnonzero(~history.cached)[: asked_for.sum()]  # a run looks for unknown points then
    np.testing.assert_array_equal(history.codes[ran], archive.codes[asked_for])
    np.testing.assert_array_equal(history.values[ran], archive.values[asked_for])
    np.testing.assert_array_equal(history.statuses[ran], archive.column("status")[asked_for])


# --- violations -----------------------------------------------------------------------------------


def test_violations_rank_as_infeasible_points_do() -> None:
    strategy = Stubborn(ao.Space.binary(2), [[0, 0]])
    optimizer = ao.Optimizer(strategy.space, 0, algorithm=strategy)
    points = [[0, 0], [0, 1], [1, 0], [1, 1]]
    values, violations = [math.nan, 9.0, 1.0, 2.0], [0.5, math.inf, -1.0, 0.0]
    optimizer.tell(points, values, violations=violations)
    found = [(ao.STATUSES[a.status], a.value, a.violation) for a in strategy.answers]
    expected = [("infeasible", math.nan, 0.5), ("infeasible", math.nan, math.nan),
                ("ok", 1.0, math.nan), ("ok", 2.0, math.nan)]  # fmt: skip
    assert str(found) == str(expected)
    assert optimizer.best_value == 2.0
    assert not len(optimizer.ask(1))  # what is infeasible is known as well


@pytest.mark.parametrize(
    ("values", "violations", "said"),
    [
        ([1.0, 2.0], [0.0, math.nan], "violation 1 is NaN or None"),
        ([1.0, 2.0], [0.0, None], "violation 1 is NaN or None"),
        ([1.0, 2.0], [0.0], "1 violations, expected 2"),
        ([1.0, 2.0], 1.0, "1 violations, expected 2"),
        ([1.0, math.nan], [1.0, 0.0], "value 1 is NaN or None"),
        ([1.0], [1.0, 0.0], "1 values, expected 2"),
    ],
)
def test_bad_violations_change_nothing(values: Any, violations: Any, said: str) -> None:
    optimizer = ao.Optimizer(ao.Space.binary(2), 0, algorithm="random")
    with pytest.raises(ValueError, match=said):
        optimizer.tell([[0, 1], [1, 1]], values, violations=violations)
    assert optimizer.told == 0
