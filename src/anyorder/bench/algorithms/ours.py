"""The strategies of this library: the policy by preset, and all others by name."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from anyorder._internal.checks import unknown
from anyorder.bench.algorithms.library import Library
from anyorder.bench.algorithms.meter import Meter
from anyorder.bench.algorithms.naming import Settings
from anyorder.optimize import maximize
from anyorder.policy.specification import Policy
from anyorder.problems.base import Problem
from anyorder.result import Result
from anyorder.space import Space
from anyorder.strategies import registry
from anyorder.strategies.create import Algorithm, create_named
from anyorder.strategies.policy.config import PRESETS, Config, resolve
from anyorder.strategies.policy.engines import ENGINES


class Presets(Library):
    """The policy, by preset, with settings of `Config`; also `engine`, and `graph=known`."""

    used = ("numpy", "numba")

    def names(self) -> list[str]:
        """Return the names of the presets; without a name the default preset is meant."""
        return ["", *PRESETS]

    def check(self, name: str, settings: Settings, space: Space | None) -> None:
        """Raise for a bad preset or setting."""
        engine = configure(name, settings)[1]
        if engine not in ("auto", *ENGINES):
            raise unknown("engine", str(engine), ["auto", *ENGINES])

    def search(self, name: str, settings: Settings, meter: Meter, seed: int) -> Settings:
        """Spend the meter's budget."""
        config, engine = configure(name, settings)
        known = settings.get("graph") == "known"
        graph = known_graph(meter.problem) if known else None
        settings = _run(meter, seed, Policy(config, engine, graph)).settings
        del settings["stop_collapsed"], settings["graph"]
        return {**settings, "graph": "known"} if known else settings

    def choose_engine(self, settings: Settings, engine: str) -> Settings:
        """Return settings with an engine, if they do not set one."""
        return {"engine": engine, **settings}

    def engine(self, settings: Settings) -> str:
        """Return the engine that settings ask for."""
        return str(settings.get("engine", "auto"))

    def meaning(self, name: str, settings: Settings) -> tuple[Hashable | Settings, ...]:
        """Return a key with the configuration, the engine, and whether the graph is known."""
        return *configure(name, settings), "graph" in settings

    def still(self, name: str, settings: Settings, configuration: Mapping[str, Any]) -> bool:
        """Return whether the preset with these settings is still the configuration of a run."""
        fields = {key: x for key, x in configuration.items() if key not in ("engine", "graph")}
        try:
            return Config.from_dict(fields) == configure(name, settings)[0]
        except (TypeError, ValueError):  # the configuration has settings of another version
            return False


def configure(name: str, settings: Settings) -> tuple[Config, str]:
    """Return the configuration that `policy:NAME` with these settings means, and its engine."""
    rest = dict(settings)
    engine, graph = rest.pop("engine", "auto"), rest.pop("graph", "known")
    if graph != "known":
        raise ValueError(f"graph is {graph!r}, expected 'known': the problem's own")
    return resolve(name or "default").replace(**rest), engine


def known_graph(problem: Problem) -> Any:
    """Return the interaction graph of a problem; raise a ValueError if it has none."""
    graph = problem.interaction_graph()
    if graph is None:
        raise ValueError(f"graph is 'known', but {problem.name} does not know its graph")
    return graph


class Others(Library):
    """Any other strategy, with its keyword arguments as settings."""

    def names(self) -> list[str]:
        """Return the names of all registered strategies except the policy."""
        return [name for name in registry.names() if name != "policy"]

    def check(self, name: str, settings: Settings, space: Space | None) -> None:
        """Raise for an unknown setting, or a value that the strategy does not accept."""
        create_named(*_parts(name), settings, space or Space.binary(64), seed=0, budget=1_000)

    def search(self, name: str, settings: Settings, meter: Meter, seed: int) -> Settings:
        """Spend the meter's budget, or stop when the strategy has finished."""
        strategy = create_named(*_parts(name), settings, meter.problem.space, seed, meter.budget)
        return _run(meter, seed, strategy, strategy.batch).settings


def _parts(name: str) -> tuple[str, str]:
    """Return the name of a strategy and its preset."""
    own, _, preset = name.partition(":")
    return own, preset


def _run(meter: Meter, seed: int, algorithm: Algorithm, batch: int | None = None) -> Result:
    # every candidate is evaluated and counted, so there is no cache
    result = maximize(
        meter.evaluate, meter.problem.space, meter.budget, algorithm=algorithm, seed=seed,
        vectorized=True, batch=batch, progress=False, cache=False,
    )  # fmt: skip
    if result.stop_reason == "interrupted":
        raise KeyboardInterrupt
    return result
