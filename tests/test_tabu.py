"""Tabu search."""

from __future__ import annotations

import numpy as np
import pytest
from driving import answer, ask, neighbours, step, tell

from anyorder import Binary, Categorical, Integer, Space
from anyorder.strategies import (
    TabuSearch,
)

MIXED = Space([Integer(5, 9), Binary(), Categorical([7]), Categorical([40, 20, 30])])


def place(old: tuple[int, ...], new: tuple[int, ...]) -> int:
    return next(i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b)


@pytest.mark.parametrize(
    ("space", "tenure"),
    [
        (Space.binary(12), None),
        (Space.binary(12), 7),
        (Space.categorical(5, 4), 3),
        (MIXED, 3),
        (Space([Integer(1, 5)]), 9),
    ],
)
def test_tabu_moves_by_its_rule(space: Space, tenure: int | None) -> None:
    """Seen from outside, against the rule written down plainly."""
    table = np.random.default_rng(0)
    strategy = TabuSearch(space, seed=0, tenure=tenure)
    length = 3 if tenure is None else tenure  # 12 // 4
    point = tuple(step(strategy, lambda x: 0.0)[0].tolist())
    record, left, worse = 0.0, list[tuple[int, int]](), 0
    barred = aspired = stuck = 0
    for move in range(1000 // int((space.cardinalities - 1).sum())):
        seen: dict[tuple[int, ...], float] = {}
        for _ in range(int((space.cardinalities - 1).sum())):
            # Heights with ties; they rise, so that there are records to the end.
            value = float(table.integers(0, 12)) + move // 3
            x, _ = step(strategy, lambda x, value=value: value)
            seen[tuple(x.tolist())] = value
        assert set(seen) == neighbours(space, np.array(point))

        # Moves since its variable left the value that a neighbour gives back; many if never.
        age = {}
        for key in seen:
            i = place(point, key)
            age[key] = left[::-1].index((i, key[i])) if (i, key[i]) in left else 10**9
        free = [key for key in seen if age[key] >= length or seen[key] > record]
        stuck += not free
        if not free:
            free = [key for key in seen if age[key] == max(age.values())]
        new = max(free, key=seen.__getitem__)  # the first of equals
        aspired += age[new] < length and seen[new] > record
        barred += max(seen.values()) > seen[new]
        worse += seen[new] < record
        left.append((place(point, new), point[place(point, new)]))
        point, record = new, max(record, seen[new])
    assert worse > 5
    assert barred > 0 or len(space) == 1
    assert aspired > 0
    assert stuck > 0 or len(space) > 1


def test_tabu_moves_to_a_better_stranger_at_once() -> None:
    strategy = TabuSearch(Space.binary(8), seed=0)
    tell(strategy, [[0] * 8], [3.0])
    assert (ask(strategy, 5).sum(axis=1) == 1).all()
    tell(strategy, [[1] * 8], [3.0])  # equal: stays
    assert (ask(strategy, 3).sum(axis=1) == 1).all()
    tell(strategy, [[1] * 8], [4.0])
    assert (ask(strategy, 8).sum(axis=1) == 7).all()
    assert strategy.generation == 2


def test_tabu_neighbours_are_known_by_their_tickets() -> None:
    """Late neighbours of the last point do not count, nor do those that were given up."""
    strategy = TabuSearch(Space.binary(4), seed=0)
    tell(strategy, [[0] * 4], [9.0])
    first = strategy.propose(4)
    answer(strategy, first, [1.0, 2.0], [0, 1])
    strategy.give_up(first.tickets[2:3])
    answer(strategy, first, [7.0], [2])  # given up
    second = strategy.propose(4)
    assert ((second.codes != first.codes[1]).sum(axis=1) == 1).all()  # to the better of two
    answer(strategy, first, [8.0], [3])  # late
    answer(strategy, second, [1.0, 3.0, 2.0, 0.0])
    third = strategy.propose(4)
    best = 1 if (second.codes[1] != 0).any() else 2  # back to the start is tabu
    assert ((third.codes != second.codes[best]).sum(axis=1) == 1).all()


@pytest.mark.parametrize(("n", "expected"), [(1, 1), (5, 1), (64, 16), (500, 20)])
def test_tabu_default_tenure(n: int, expected: int) -> None:
    assert TabuSearch(Space([Categorical([3]), *[Binary()] * n])).tenure == expected
