"""The neighbourhood: small changes of points, for all kinds of variables alike."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from anyorder import Binary, Categorical, Float, Integer, Permutation, Sequence, Space, Subset
from anyorder.space.neighbours import Neighbourhood

Row = tuple[int, ...]


def counts() -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(1, 3), min_size=1, max_size=4).filter(lambda c: sum(c) <= 7)


def lists() -> st.SearchStrategy[Any]:
    sizes = st.tuples(st.integers(0, 4), st.integers(0, 4)).map(sorted)
    return st.one_of(
        st.integers(1, 5).map(lambda m: Permutation(range(m))),
        counts().map(lambda c: Sequence(range(len(c)), c)),
        sizes.map(lambda pair: Subset(range(4), size=tuple(pair))),
    )


def scalars() -> st.SearchStrategy[Any]:
    return st.sampled_from([
        Binary(), Categorical(["a", "b", "c"]), Integer(1, 4), Integer(0, 200),
        Integer(1, 900, log=True), Float(0, 1, levels=60), Categorical([3]),
    ])  # fmt: skip


@st.composite
def variables(draw: st.DrawFn) -> dict[str, Any]:
    """Variables of several kinds, in some of which one variable decides on another."""
    kinds = [draw(kind) for kind in draw(st.permutations([lists(), scalars(), scalars()]))]
    found = {f"x{k}": kind for k, kind in enumerate(kinds)}
    if draw(st.booleans()):
        found |= {"on": Binary(), "more": Integer(0, 2, when={"on": True})}
    return found


@settings(deadline=None, max_examples=60)
@given(variables(), st.integers(0, 2**32))
def test_every_neighbour_is_a_point_and_another_one(kinds: dict[str, Any], seed: int) -> None:
    space = Space(kinds)
    near, rng = Neighbourhood(space), np.random.default_rng(seed)
    everything = np.arange(len(near.changes))
    for point in space.canonical(near.sample(3, rng)):
        chosen = near.distinct(point, near.changes.shuffle(rng))
        found = near.neighbours(point, chosen, rng)
        assert np.array_equal(found, space.canonical(found))
        assert (found != point).any(axis=1).all()
        assert np.isin(chosen, everything).all()
        stepped = near.changes.apply(point, chosen)
        assert len(np.unique(stepped, axis=0)) == len(stepped)
        for other in stepped if not space.conditional else ():
            ways = near.changes.between(point, other)
            if ways is None and near.scales:  # a step along a logarithm may have none back
                continue
            assert ways is not None
            there, back = ways
            assert np.array_equal(near.changes.apply(point, np.array([there]))[0], other)
            assert np.array_equal(near.changes.apply(other, np.array([back]))[0], point)


@settings(deadline=None, max_examples=60)
@given(variables(), st.integers(0, 2**32), st.integers(1, 3))
def test_random_changes_give_other_points(kinds: dict[str, Any], seed: int, changes: int) -> None:
    space = Space(kinds)
    near, rng = Neighbourhood(space), np.random.default_rng(seed)
    (point,) = space.canonical(near.sample(1, rng))
    found = near.mutate(point, 8, changes, rng)
    assert np.array_equal(space.canonical(found), space.canonical(space.canonical(found)))
    assert (found >= 0).all()
    assert (found < space.cardinalities).all()
    for group in space.groups:
        assert group.valid(found[:, group.columns]).all()
    if changes == 1:
        one = space.canonical(found)
        assert (one != point).any(axis=1).all() == bool(len(near.changeable(point)))


def brute_force(kind: Any, row: Row) -> set[Row]:
    """All neighbours of a list, made with lists."""
    found, places = set(), range(len(row))
    for a, b in itertools.permutations(places, 2):
        exchanged = list(row)
        exchanged[a], exchanged[b] = row[b], row[a]
        found.add(tuple(exchanged))
        if not isinstance(kind, Subset):
            rest = [row[k] for k in places if k != a]
            found.add((*rest[:b], row[a], *rest[b:]))
            low, high = min(a, b), max(a, b) + 1
            found.add((*row[:low], *row[low:high][::-1], *row[high:]))
    if isinstance(kind, Subset):
        flips = {(*row[:k], 1 - row[k], *row[k + 1 :]) for k in places}
        found |= {flip for flip in flips if kind._least <= sum(flip) <= kind._most}
    return found - {row}


@settings(deadline=None, max_examples=80)
@given(lists(), st.integers(0, 2**32))
def test_neighbours_of_lists_are_those_of_brute_force(kind: Any, seed: int) -> None:
    near, rng = Neighbourhood(Space({"x": kind})), np.random.default_rng(seed)
    for point in near.sample(3, rng):
        found = near.changes.apply(point, near.distinct(point, np.arange(len(near.changes))))
        rows = [tuple(row) for row in found.tolist()]
        assert len(set(rows)) == len(rows)
        assert set(rows) == brute_force(kind, tuple(point.tolist()))


@settings(deadline=None, max_examples=40)
@given(st.lists(st.one_of(lists(), scalars()), min_size=1, max_size=2))
def test_changes_reach_every_point(kinds: list[Any]) -> None:
    space = Space({f"x{k}": kind for k, kind in enumerate(kinds)})
    if space.points > 500:
        return
    near, rng = Neighbourhood(space), np.random.default_rng(0)
    (start,) = near.sample(1, rng)
    seen, todo = {tuple(start.tolist())}, [start]
    while todo:
        point = todo.pop()
        for other in near.neighbours(
            point, near.distinct(point, np.arange(len(near.changes))), rng
        ):
            if tuple(other.tolist()) not in seen:
                seen.add(tuple(other.tolist()))
                todo.append(other)
    assert len(seen) == space.points


@settings(deadline=None, max_examples=60)
@given(lists(), st.integers(0, 2**32), st.data())
def test_values_are_given_as_asked(kind: Any, seed: int, data: st.DataObject) -> None:
    space, rng = Space({"x": kind}), np.random.default_rng(seed)
    near = Neighbourhood(space)
    point, goal = near.sample(2, rng)
    column = data.draw(st.integers(0, len(space) - 1))
    found = near.give(point, [column], [int(goal[column])], rng, goal)
    assert np.array_equal(space.canonical(found[None])[0], found)
    assert (found == goal).sum() >= (point == goal).sum()
    assert found[column] == goal[column] or not (point == goal[column]).any()
