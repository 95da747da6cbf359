"""Networks: the parameters that a policy has, and how they are stored.

    base.py      the protocol
    separate.py  one network per variable ("separate"; "univariate" is the same without inputs)
    shared.py    one network for all variables, with a head for each ("shared")

A network describes parameters and does no arithmetic. Engines compute, and each engine is written
for one kind of network (`engines/__init__.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from anyorder.strategies.policy.coding import Coding
from anyorder.strategies.policy.config import Config
from anyorder.strategies.policy.networks.base import Network
from anyorder.strategies.policy.networks.separate import SeparateNetworks, make_separate
from anyorder.strategies.policy.networks.shared import SharedNetwork, make_shared

__all__ = ["Network", "SeparateNetworks", "SharedNetwork", "make_network"]

_MAKERS: dict[str, Callable[[Coding, Config], Network]] = {
    "separate": make_separate,
    "univariate": make_separate,
    "shared": make_shared,
}


def make_network(coding: Coding, config: Config) -> Network:
    """Return the network that a configuration asks for."""
    return _MAKERS[config.network](coding, config)
