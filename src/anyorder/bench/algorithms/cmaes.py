"""`cmaes:CatCMAwM`, the optimiser of the library cmaes that supports categorical variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from anyorder._internal.checks import integer
from anyorder.bench.algorithms.library import Library
from anyorder.bench.algorithms.meter import Codes, Meter
from anyorder.bench.algorithms.naming import Settings, check_settings, peer
from anyorder.space import Space


class CMAES(Library):
    """CatCMAwM: unordered variables are its categories, ordered ones its integers."""

    package = "cmaes"

    def names(self) -> list[str]:
        """Return the name of the only algorithm."""
        return ["CatCMAwM"]

    def check(self, name: str, settings: Settings, space: Space | None) -> None:
        """Raise for a setting other than `population_size`."""
        peer("cmaes")
        check_settings(settings, ["population_size"])
        if "population_size" in settings:
            integer("population_size", settings["population_size"], 4)

    def search(self, name: str, settings: Settings, meter: Meter, seed: int) -> Settings:
        """Spend the meter's budget, or stop once the Gaussian has converged."""
        ordered = np.array(meter.ordered)
        cardinalities = np.array(meter.cardinalities)
        optimizer = peer("cmaes").CatCMAwM(
            z_space=[list(range(values)) for values in cardinalities[ordered]] or None,
            c_space=cardinalities[~ordered] if not ordered.all() else None,
            seed=seed,
            **settings,
        )
        while meter.left:
            evaluated = []
            for _ in range(min(optimizer.population_size, meter.left)):
                candidate = optimizer.ask()
                evaluated.append((candidate, -meter.value(_point(candidate, ordered))))
            if len(evaluated) == optimizer.population_size:  # it learns from whole populations only
                optimizer.tell(evaluated)
                if ordered.any() and optimizer.should_stop():
                    break
        return {"population_size": optimizer.population_size}


def _point(candidate: Any, ordered: np.ndarray[Any, np.dtype[np.bool_]]) -> Codes:
    codes = np.empty(len(ordered), dtype=np.int32)
    if ordered.any():
        codes[ordered] = np.rint(candidate.z)
    if not ordered.all():
        codes[~ordered] = candidate.c.argmax(axis=1)  # one row a variable, one-hot
    return codes
