"""`anyorder`, `anyorder:PRESET`, `baseline:NAME`."""

from __future__ import annotations

import inspect
from typing import Any

from anyorder import strategies as baselines
from anyorder._checks import unknown
from anyorder.bench.algorithms.meter import Meter
from anyorder.bench.algorithms.naming import Settings, check_settings, complete
from anyorder.optimize import maximize
from anyorder.problems.base import Problem
from anyorder.space import Space
from anyorder.strategies.policy.config import PRESETS, Config, resolve
from anyorder.strategies.policy.engines import ENGINES


class AnyOrder:
    """A preset with settings of `Config` changed; `engine`, and `graph=known`."""

    package = None

    def names(self) -> list[str]:
        """The presets; no name is the default one."""
        return ["", *PRESETS]

    def check(self, name: str, settings: Settings, space: Space | None) -> None:
        """Raise for a bad preset or setting."""
        engine = configured(name, settings)[1]
        if engine not in ("auto", *ENGINES):
            raise unknown("engine", engine, ["auto", *ENGINES])

    def search(self, name: str, settings: Settings, meter: Meter, seed: int) -> Settings:
        """Spend the meter's budget."""
        config, engine = configured(name, settings)
        known = settings.get("graph") == "known"
        result = maximize(
            meter.evaluate, meter.problem.space, meter.budget, seed=seed, config=config,
            engine=engine, vectorized=True, progress=False, cache=False,
            graph=known_graph(meter.problem) if known else None,
        )  # fmt: skip
        if result.stop_reason == "interrupted":
            raise KeyboardInterrupt
        graph = {"graph": "known"} if known else {}
        return {**result.config.to_dict(), "engine": result.engine, **graph}


def configured(name: str, settings: Settings) -> tuple[Config, str]:
    """The configuration that `anyorder:NAME` with these settings stands for, and its engine."""
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


class Baselines:
    """A baseline, with its keyword arguments as settings."""

    package = None

    def names(self) -> list[str]:
        """Those of the registry."""
        return list(baselines.registry)

    def check(self, name: str, settings: Settings, space: Space | None) -> None:
        """Raise for an unknown setting, or a value that the baseline rejects."""
        self._make(name, settings, space or Space.binary(64), seed=0, budget=1_000)

    def search(self, name: str, settings: Settings, meter: Meter, seed: int) -> Settings:
        """Spend the meter's budget, or stop when the baseline proposes nothing."""
        algorithm = self._make(name, settings, meter.problem.space, seed, meter.budget)
        while meter.left:
            candidates = algorithm.ask()[: meter.left]
            if not len(candidates):
                break
            algorithm.tell(candidates, meter.evaluate(candidates))
        return complete(baselines.registry[name], settings)

    def _make(
        self, name: str, settings: Settings, space: Space, seed: int, budget: int
    ) -> baselines.Baseline:
        maker = baselines.registry[name]
        known = [key for key in inspect.signature(maker).parameters if key not in ("space", "seed")]
        check_settings(settings, known)
        # a schedule depends on the budget
        schedule = {"budget": budget} if "budget" in known else {}
        return maker(space, seed=seed, **{**schedule, **settings})
