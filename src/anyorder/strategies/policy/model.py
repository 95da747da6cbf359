"""What an engine computes: a space's coding, a network, an interaction graph and the settings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from anyorder.space import Space
from anyorder.space.digits import Digits
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
        `(n, n)` bool, True where variable i may depend on j; None: on all of them.
    loss
        What is trained: "policy", eq. (8), or "squares", the squared error of one number per
        variable, which is what `conditionals` then returns: a critic.
    """

    config: Config
    coding: Coding
    network: N
    graph: npt.NDArray[np.bool_] | None = None
    loss: str = "policy"

    @property
    def n(self) -> int:
        """Number of variables."""
        return self.coding.n

    @property
    def cards(self) -> IntArray:
        """Number of values of each variable."""
        return self.coding.cards

    @property
    def values(self) -> int:
        """Length of a row of probabilities."""
        return self.coding.values

    @property
    def value_start(self) -> IntArray:
        """Where the distribution of each variable starts in a row of probabilities."""
        return self.coding.value_start

    @property
    def parameters(self) -> int:
        """Number of parameters."""
        return self.network.parameters


def make_model(
    cards: npt.ArrayLike,
    ordered: npt.ArrayLike,
    config: Config,
    graph: npt.NDArray[np.bool_] | None = None,
) -> Model[Network]:
    """The model of a space whose variable i has `cards[i]` values."""
    coding = make_coding(cards, ordered, config)
    return Model(config, coding, make_network(coding, config), graph)


def model_of(
    space: Space, config: Config, graph: npt.NDArray[np.bool_] | None = None
) -> tuple[Model[Network], Digits]:
    """The model of a space, and the digits that are the model's variables.

    `graph` is over the variables of the space. The digits of one variable always see each other.
    """
    digits = Digits(space, config.digits_above)
    if graph is not None and digits.split_any:
        owner = digits.owner
        graph = graph[np.ix_(owner, owner)] | (owner[:, None] == owner)
    return make_model(digits.cardinalities, digits.ordered, config, graph), digits


def make_critic_model(model: Model[Network]) -> Model[Network]:
    """The twin of a policy's model that estimates values: one output per variable, no squashing.

    It sees what the policy saw when it sampled a candidate, without dropout.
    """
    config = model.config.replace(training_order="generation", drop_generation=0, drop_training=0)
    coding = replace(
        model.coding,
        outputs=(model.coding.outputs > 0).astype(np.int64),
        value_start=np.arange(model.n + 1),
    )
    return Model(config, coding, make_network(coding, config), model.graph, "squares")
