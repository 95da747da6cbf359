"""The model that an engine computes: a coding, a network, an interaction graph and settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from anyorder.space import Space
from anyorder.space.digits import Digits
from anyorder.space.groups import Group
from anyorder.strategies.policy.coding import Coding, IntArray, make_coding
from anyorder.strategies.policy.config import Config
from anyorder.strategies.policy.networks import Network, make_network

N = TypeVar("N", bound=Network, covariant=True)


@dataclass(frozen=True, eq=False)
class Model(Generic[N]):
    """The model of one space under one configuration.

    Attributes
    ----------
    graph
        `(n, n)` bool, True where variable i may depend on j; None if it may depend on all.
    loss
        The objective: "policy", which is eq. (8), or "squares", for a critic: the squared error of
        one number per variable, which `conditionals` then returns.
    groups
        The columns in which values are used up, and then masked: see `masks.py`.
    """

    config: Config
    coding: Coding
    network: N
    graph: npt.NDArray[np.bool_] | None = None
    loss: str = "policy"
    groups: tuple[Group, ...] = ()

    @property
    def n(self) -> int:
        """The number of variables."""
        return self.coding.n

    @property
    def cards(self) -> IntArray:
        """The number of values of each variable."""
        return self.coding.cards

    @property
    def values(self) -> int:
        """The length of a row of probabilities."""
        return self.coding.values

    @property
    def value_start(self) -> IntArray:
        """The start of the distribution of each variable in a row of probabilities."""
        return self.coding.value_start

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return self.network.parameters

    @cached_property
    def group_of(self) -> IntArray:
        """The group of which each variable is a column, or -1."""
        found = np.full(self.n, -1)
        for g, group in enumerate(self.groups):
            found[group.columns] = g
        return found


def make_model(
    cards: npt.ArrayLike,
    ordered: npt.ArrayLike,
    config: Config,
    graph: npt.NDArray[np.bool_] | None = None,
    groups: Sequence[Group] = (),
) -> Model[Network]:
    """Return the model of a space whose variable i has `cards[i]` values."""
    if groups and config.generation_order == "gibbs":
        raise ValueError(
            "generation_order is 'gibbs', expected 'random' or 'fixed' with lists: given "
            "all others, a column of theirs can keep its value only"
        )
    if groups and config.generation_order == "learned":
        raise ValueError(
            "generation_order is 'learned', expected 'random' or 'fixed' with lists: there "
            "is no gradient through which of their values are used up"
        )
    coding = make_coding(cards, ordered, config)
    network = make_network(coding, config)
    return Model(config, coding, network, graph, groups=tuple(groups))


def model_of(
    space: Space, config: Config, graph: npt.NDArray[np.bool_] | None = None
) -> tuple[Model[Network], Digits]:
    """Return the model of a space, and the digits that are the model's variables.

    `graph` is over the variables of the space. The digits of a variable always see each other.
    """
    digits = Digits(space, config.digits_above)
    if graph is not None and digits.split_any:
        owner = digits.owner
        graph = graph[np.ix_(owner, owner)] | (owner[:, None] == owner)
    first = np.searchsorted(digits.owner, np.arange(len(space)))
    groups = [replace(group, first=int(first[group.first])) for group in space.groups]
    return make_model(digits.cardinalities, digits.ordered, config, graph, groups), digits


def make_critic_model(model: Model[Network]) -> Model[Network]:
    """Return a model like a policy's that estimates values: one output per variable, not squashed.

    It is trained under random orders if the policy is, and otherwise under the orders in which the
    candidates were sampled; there is no dropout. It has no groups, since a value has nothing to
    mask.
    """
    order = "random" if model.config.training_order == "random" else "generation"
    config = model.config.replace(training_order=order, drop_generation=0, drop_training=0)
    coding = replace(
        model.coding,
        outputs=(model.coding.outputs > 0).astype(np.int64),
        value_start=np.arange(model.n + 1),
    )
    return Model(config, coding, make_network(coding, config), model.graph, "squares")
