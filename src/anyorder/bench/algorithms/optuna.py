"""`optuna:TPE` and the other samplers of `optuna.samplers`, by class name without "Sampler"."""

from __future__ import annotations

import inspect
from typing import Any

from anyorder.bench.algorithms.library import Library
from anyorder.bench.algorithms.meter import Meter
from anyorder.bench.algorithms.naming import Settings, check_settings, complete, peer
from anyorder.space import Space

# These samplers require more than a space, or are base classes.
_LEFT_OUT = ("Base", "BaseGA", "Grid", "PartialFixed")
# These samplers do not support categories, and would sample them at random.
_NUMERIC = ("CmaEs", "QMC")
# Packages that samplers import only when they run.
_NEEDS = {"CmaEs": ("cmaes",), "GP": ("scipy", "torch"), "QMC": ("scipy",)}


class Optuna(Library):
    """Samplers of Optuna, with their keyword arguments as settings.

    Unordered variables are categorical, ordered ones integers; for CmaEs and QMC all are integers.
    """

    package = "optuna"

    def names(self) -> list[str]:
        """Return all samplers that require nothing but the space."""
        found = [n.removesuffix("Sampler") for n in dir(_samplers()) if n.endswith("Sampler")]
        return [name for name in found if name not in _LEFT_OUT]

    def check(self, name: str, settings: Settings, space: Space | None) -> None:
        """Raise for an unknown setting, or a value that the sampler rejects."""
        for package in _NEEDS.get(name, ()):
            peer(package, f"optuna:{name}")
        _sampler(name, settings, 0)

    def search(self, name: str, settings: Settings, meter: Meter, seed: int) -> Settings:
        """Spend the meter's budget, in one study in memory."""
        optuna = peer("optuna")
        names = [f"x{j}" for j in range(len(meter.free))]
        kinds = list(zip(names, meter.cardinalities, meter.ordered, strict=True))

        def objective(trial: Any) -> float:
            point = [
                trial.suggest_int(label, 0, values - 1)
                if ordered or name in _NUMERIC
                else trial.suggest_categorical(label, range(values))
                for label, values, ordered in kinds
            ]
            return meter.value(point)

        verbosity = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        try:
            study = optuna.create_study(
                direction="maximize", sampler=_sampler(name, settings, seed)
            )
            study.optimize(objective, n_trials=meter.budget)
        finally:
            optuna.logging.set_verbosity(verbosity)
        return complete(getattr(_samplers(), f"{name}Sampler"), settings)


def _samplers() -> Any:
    return peer("optuna").samplers


def _sampler(name: str, settings: Settings, seed: int) -> Any:
    maker = getattr(_samplers(), f"{name}Sampler")
    known = [key for key in inspect.signature(maker).parameters if key != "seed"]
    check_settings(settings, known)
    return maker(seed=seed, **settings)
