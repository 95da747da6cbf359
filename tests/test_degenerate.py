"""Spaces in which little or nothing can change: every strategy ends, in every mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import anyorder as ao
from anyorder.strategies import P3, registry

SPACES = {
    "one point": ao.Space({"a": ao.Categorical(["x"]), "b": ao.Integer(3, 3)}),
    "one variable": ao.Space({"a": ao.Binary()}),
    "one of many": ao.Space({**{f"c{k}": ao.Integer(1, 1) for k in range(40)}, "a": ao.Binary()}),
    "two orders": ao.Space({"a": ao.Permutation(["x", "y"])}),
    "a few lists": ao.Space(
        {
            "a": ao.Sequence(["x", "y"], [2, 1]),
            "b": ao.Subset(["x", "y"], size=1),
            "c": ao.Permutation(["x"]),
        }
    ),
    "absent": ao.Space(
        {"a": ao.Categorical(["x"]), "b": ao.Integer(0, 3, when=lambda point: False)}
    ),
}
MODES: dict[str, dict[str, Any]] = {
    "plain": {},
    "noisy": {"deterministic": False},
    "uncached": {"cache": False},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("name", registry.names())
def test_every_strategy_ends(name: str, space: str, mode: str) -> None:
    """A loop that waits for a variable with two values would never return."""
    points = SPACES[space].points
    result = ao.maximize(
        lambda point: float(len(point)), SPACES[space], 30, seed=0, algorithm=name, **MODES[mode]
    )
    assert 1 <= result.evaluations <= 30
    if mode == "plain":
        assert (result.stop_reason, result.evaluations) == ("exhausted", points)
    else:  # no point counts as known
        assert (result.stop_reason, result.evaluations) == ("budget", 30)


@pytest.mark.parametrize("name", ["pareto", "nsga2", "random"])
@pytest.mark.parametrize("mode", MODES)
def test_several_objectives_end_as_one_does(name: str, mode: str) -> None:
    options: dict[str, Any] = {"directions": ("max", "min"), "seed": 0, "algorithm": name}
    result = ao.optimize(
        lambda point: (len(point["b"]), point["a"].index("y")), SPACES["a few lists"], 30,
        **options, **MODES[mode],
    )  # fmt: skip
    expected = ("exhausted", 6) if mode == "plain" else ("budget", 30)
    assert (result.stop_reason, result.evaluations) == expected


@pytest.mark.parametrize("name", ["rls", "mimic+population=10"])
def test_points_that_are_still_unknown_are_found(name: str) -> None:
    """In a space of more variables than an array has axes, and in one of lists."""
    constants = {f"c{k}": ao.Integer(1, 1) for k in range(70)}
    spaces = [
        ao.Space({**constants, "a": ao.Binary(), "b": ao.Binary(), "c": ao.Binary()}),
        ao.Space({"a": ao.Binary(), "b": ao.Permutation(range(4)), "c": ao.Subset(range(3))}),
    ]
    for space in spaces:
        result = ao.maximize(lambda point: point["a"], space, 1_000, seed=0, algorithm=name)
        assert (result.stop_reason, result.evaluations) == ("exhausted", space.points)


@pytest.mark.parametrize(
    ("variable", "size"),
    [
        (ao.Permutation(range(1)), 1),
        (ao.Permutation(range(5)), 120),
        (ao.Sequence(["x", "y", "z"], [2, 1, 2]), 30),
        (ao.Subset(range(4)), 16),
        (ao.Subset(range(5), size=(1, 3)), 25),
        (ao.Subset(range(2), size=0), 1),
    ],
)
def test_all_lists(variable: Any, size: int) -> None:
    (group,) = ao.Space({"a": variable}).groups
    assert len(np.unique(group.lists, axis=0)) == len(group.lists) == size == variable.points()
    assert group.valid(group.lists).all()


def test_a_small_conditional_space_without_a_cache_ends_soon(monkeypatch: Any) -> None:
    """Explorers proposed known points 143,000 times."""
    asked: list[int] = []
    plain = P3.propose
    monkeypatch.setattr(
        P3, "propose", lambda *given, **more: asked.append(1) or plain(*given, **more)
    )
    space = ao.Space(
        {
            "a": ao.Binary(),
            "b": ao.Integer(0, 3, when={"a": 1}),
            "c": ao.Binary(when={"a": 0}),
        }
    )
    ao.maximize(
        lambda point: float(point["a"]), space, 200, cache=False, seed=1, progress=False
    )  # fmt: skip
    assert len(asked) < 10_000
