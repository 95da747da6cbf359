"""What the engine tests share: cases to run engines on, and the rule by which floats are compared."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from anyorder.config import PRESETS, Config
from anyorder.policy import reference
from anyorder.policy.base import Batch, Draw, Engine, Policy
from anyorder.policy.cpu import CpuEngine
from anyorder.policy.layout import Layout, make_layout
from anyorder.policy.reference import ReferenceEngine

SEED = 0  # of everything; it was never chosen
CARDS, ORDERED = (2, 3, 7, 2, 1, 5, 4, 6), (0, 0, 1, 0, 0, 0, 1, 0)


@pytest.fixture(autouse=True, scope="session")
def _remembered_words() -> Iterator[None]:
    """The reference asks for the same order once a variable: remembering it makes it 5x faster."""
    plain = reference.words

    @functools.lru_cache(1 << 14)
    def words(*args: Any, **kwargs: Any) -> Any:
        result = plain(*args, **kwargs)
        result.flags.writeable = False
        return result

    reference.words = words
    yield
    reference.words = plain


@dataclass(frozen=True)
class Case:
    """A space, a configuration and a batch to compare engines on.

    `sharp` multiplies the initial parameters, so that probabilities get far from uniform and beyond
    the clip; `weights` is the share of (candidate, variable) pairs that count.
    """

    config: Config
    n: int = 8
    cards: tuple[int, ...] = CARDS
    batch: int = 10
    runs: int = 2
    sharp: float = 1.0
    weights: float = 1.0
    graph: bool = False
    layout: Layout = field(init=False)

    def __post_init__(self) -> None:
        cards = np.resize(self.cards, self.n)
        ordered = np.resize(ORDERED, self.n).astype(bool)
        graph = np.random.default_rng(SEED).random((self.n, self.n)) < 0.5 if self.graph else None
        object.__setattr__(self, "layout", make_layout(cards, ordered, self.config, graph))

    @property
    def seeds(self) -> list[int]:
        """One seed a run; the second word of the key is used too."""
        return [SEED + r + (r << 40) for r in range(self.runs)]

    def policy(self, engine: Engine) -> Policy:
        """The policy every engine starts a comparison with."""
        policy = engine.fresh(self.seeds, [0] * self.runs)
        policy.theta *= self.sharp
        return policy

    def draw(self, generation: int = 0, first: int = 0) -> Draw:
        """A request for a batch."""
        runs, config = self.runs, self.config
        drop = config.drop_generation * config.drop_decay**generation
        return Draw(self.seeds, [generation] * runs, [first] * runs, [drop] * runs, self.batch)

    def answers(self, points: Any, old: Any, advantages: Any = None, generation: int = 0) -> Batch:
        """Points to train on; advantages and weights are made up where none are given."""
        rng = np.random.default_rng([SEED, generation])
        stamps = np.zeros((*points.shape[:2], 2), np.int64)
        stamps[..., 0], stamps[..., 1] = generation, np.arange(points.shape[1])
        if advantages is None:
            advantages = rng.normal(size=points.shape)
        weights = rng.uniform(0.5, 2, points.shape) * (rng.random(points.shape) < self.weights)
        drop = self.config.drop_training * self.config.drop_decay**generation
        return Batch(
            self.seeds, [generation] * self.runs, points, old, advantages, weights,
            [drop] * self.runs, stamps,
        )  # fmt: skip

    def engines(self) -> tuple[ReferenceEngine, ReferenceEngine, CpuEngine]:
        """The exact one, a plain one in float32 and the one under test."""
        plain = ReferenceEngine(self.layout, np.float32)
        return ReferenceEngine(self.layout), plain, CpuEngine(self.layout, threads=2)


def case(**settings: Any) -> Case:
    """A `Case` of few short epochs: the fields of `Case` and those of `Config` side by side."""
    own = {f.name for f in dataclasses.fields(Case)}
    shape = {key: settings.pop(key) for key in own & settings.keys()}
    return Case(PRESETS["text"].replace(**{"epochs": 5, "hidden": (6,), **settings}), **shape)


def rms(x: Any) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(np.asarray(x, np.float64))))) if np.size(x) else 0.0
