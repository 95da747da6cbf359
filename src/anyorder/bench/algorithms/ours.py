"""The strategies of this library: the policy by preset, and all others by name."""

from __future__ import annotations

from typing import Any

from anyorder._checks import unknown
from anyorder.bench.algorithms.meter import Meter
from anyorder.bench.algorithms.naming import Settings
from anyorder.optimize import maximize
from anyorder.problems.base import Problem
from anyorder.result import Result
from anyorder.space import Space
from anyorder.strategies.base import Strategy
from anyorder.strategies.create import named
from anyorder.strategies.policy.config import PRESET_NAMES, Config, resolve
from anyorder.strategies.policy.engines import ENGINES
from anyorder.strategies.registry import ALIASES, REGISTRY


class Policy:
    """A preset with settings of `Config` changed; `engine`, and `graph=known`."""

    package = None

    def names(self) -> list[str]:
        """The presets; no name is the default one."""
        return ["", *PRESET_NAMES]

    def check(self, name: str, settings: Settings, space: Space | None) -> None:
        """Raise for a bad preset or setting."""
        engine = configured(name, settings)[1]
        if engine not in ("auto", *ENGINES):
            raise unknown("engine", str(engine), ["auto", *ENGINES])

    def search(self, name: str, settings: Settings, meter: Meter, seed: int) -> Settings:
        """Spend the meter's budget."""
        config, engine = configured(name, settings)
        known = settings.get("graph") == "known"
        graph = known_graph(meter.problem) if known else None
        result = _run(meter, seed, "policy", config=config, engine=engine, graph=graph)
        chosen = {"graph": "known"} if known else {}
        return {**result.settings, "engine": result.engine, **chosen}


def configured(name: str, settings: Settings) -> tuple[Config, str]:
    """What `policy:NAME` with these settings is, and the engine that computes it."""
    rest = dict(settings)
    engine, graph = rest.pop("engine", "auto"), rest.pop("graph", "known")
    if graph != "known":
        raise ValueError(f"graph is {graph!r}, expected 'known': the problem's own")
    return resolve(name or "default").replace(**rest), engine


def known_graph(problem: Problem) -> Any:
    """The interaction graph of a problem, or an error if it has none."""
    graph = problem.interaction_graph()
    if graph is None:
        raise ValueError(f"graph is 'known', but {problem.name} does not know its graph")
    return graph


class Others:
    """Any other strategy, with its keyword arguments as settings."""

    package = None

    def names(self) -> list[str]:
        """Those of the registry, and their older names."""
        return [*(name for name in REGISTRY if name != "policy"), *ALIASES]

    def check(self, name: str, settings: Settings, space: Space | None) -> None:
        """Raise for a setting it does not have, or a value it does not accept."""
        named(name, settings, space or Space.binary(64), seed=0, budget=1_000)

    def search(self, name: str, settings: Settings, meter: Meter, seed: int) -> Settings:
        """Spend the meter's budget, or stop when the strategy has finished."""
        strategy = named(name, settings, meter.problem.space, seed, meter.budget)
        return _run(meter, seed, strategy).settings


def _run(meter: Meter, seed: int, algorithm: str | Strategy, **options: Any) -> Result:
    # every candidate is evaluated and counted: the meter is the cache's opposite
    result = maximize(
        meter.evaluate, meter.problem.space, meter.budget, algorithm=algorithm, seed=seed,
        vectorized=True, progress=False, cache=False, **options,
    )  # fmt: skip
    if result.stop_reason == "interrupted":
        raise KeyboardInterrupt
    return result
