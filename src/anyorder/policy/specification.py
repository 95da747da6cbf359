"""The policy as an algorithm for `maximize`: its settings, without space and seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy.typing as npt

from anyorder._internal.checks import flag, unknown
from anyorder.space import Space
from anyorder.strategies.policy.config import Config, resolve
from anyorder.strategies.policy.engines import ENGINES, choose, model_of
from anyorder.strategies.policy.search import PolicySearch


@dataclass(frozen=True, eq=False)
class Policy:
    """Order-invariant RL-EDA as an algorithm: `maximize(..., algorithm=Policy("paper"))`.

    When called with a space and a seed it returns the strategy. The name
    "policy:paper+beta=2+engine=cpu" means `Policy(PRESETS["paper"].replace(beta=2), engine="cpu")`.

    Parameters
    ----------
    config
        A preset ("default", "fast", "balanced", "paper", "paper-code") or a `Config`.
    engine
        "cuda", "cpu" or "reference"; "auto" takes the fastest that can run here for one run of this
        size, and logs why (logger "anyorder", INFO).
    graph
        An n x n boolean matrix, True where variable i may depend on j, if that is known.
    stop_collapsed
        Whether to end the run (`stop_reason` "collapsed") once nearly all points of the population
        are equal, instead of restarting.
    """

    config: Config | str = "default"
    engine: str = "auto"
    graph: npt.ArrayLike | None = None
    stop_collapsed: bool = False

    def __post_init__(self) -> None:
        resolve(self.config)
        flag("stop_collapsed", self.stop_collapsed)
        if self.engine not in ("auto", *ENGINES):
            raise unknown("engine", self.engine, ["auto", *ENGINES])

    def __call__(self, space: Space, seed: int = 0) -> PolicySearch:
        """Return the strategy for a space and a seed."""
        return PolicySearch(
            space, seed, self.config, self.engine, self.graph, stop_collapsed=self.stop_collapsed
        )


def choose_engine(space: Space, config: Config | str = "default", runs: int = 1) -> tuple[str, str]:
    """Return the engine that "auto" takes for `runs` runs at once, and the reason."""
    return choose(model_of(space, resolve(config))[0], runs)
