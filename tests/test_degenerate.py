"""Spaces in which little or nothing can change: every strategy ends, in every mode."""

from __future__ import annotations

from typing import Any

import pytest

import anyorder as ao
from anyorder.strategies import P3, registry

SPACES = {
    "one point": ao.Space({"a": ao.Categorical(["x"]), "b": ao.Integer(3, 3)}),
    "one variable": ao.Space({"a": ao.Binary()}),
    "one of many": ao.Space({**{f"c{k}": ao.Integer(1, 1) for k in range(40)}, "a": ao.Binary()}),
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
    else:
        assert result.stop_reason in ("budget", "exhausted")


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
