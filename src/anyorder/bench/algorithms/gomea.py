"""`gomea:LinkageTree` and other linkage models, by their class names in `gomea.linkage`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import flag, integer
from anyorder.bench.algorithms.library import Library
from anyorder.bench.algorithms.meter import Meter
from anyorder.bench.algorithms.naming import Settings, check_settings, peer
from anyorder.space import Space

# Settings of the linkage models, and of GOMEA. StaticLinkageTree and Custom are left out: they
# require knowledge of the problem.
_MODELS: dict[str, tuple[str, ...]] = {
    "LinkageTree": ("filtered", "maximum_set_size"),
    "Univariate": (),
    "BlockMarginalProduct": ("block_size",),
    "Full": (),
}
_GOMEA = ("base_population_size", "max_number_of_populations", "IMS_subgeneration_factor")


class GOMEA(Library):
    """The discrete GOMEA of the library gomea; all variables must have the same number of values.

    It sees points and values only, nothing of the problem's structure.
    """

    package = "gomea"

    def names(self) -> list[str]:
        """Return the linkage models that require no knowledge of the problem."""
        return list(_MODELS)

    def check(self, name: str, settings: Settings, space: Space | None) -> None:
        """Raise for a bad setting, and for a space of different variables."""
        peer("gomea")
        check_settings(settings, [*_MODELS[name], *_GOMEA])
        for key, value in settings.items():
            # the library does not check its settings: it crashes or never ends
            if key == "filtered":
                flag(key, value)
            else:
                integer(key, value, 1)
        if space is not None:
            free = [int(values) for values in space.cardinalities if values > 1]
            sizes = set(free)
            if name == "LinkageTree" and len(free) < 3:
                # the library would then hang in its first generations
                raise ValueError(f"there are {len(free)} variables, expected at least 3")
            if len(sizes) > 1 or max(sizes, default=0) > 127:
                raise ValueError(
                    f"variables have {sorted(sizes)} values, expected the same number for all, "
                    "up to 127"
                )

    def search(self, name: str, settings: Settings, meter: Meter, seed: int) -> Settings:
        """Spend the meter's budget, or stop once all populations have converged."""
        gomea = peer("gomea")

        class Fitness(gomea.fitness.BBOFitnessFunctionDiscrete):  # type: ignore[misc, name-defined]
            def objective_function(self, _: int, variables: npt.NDArray[np.int8]) -> float:
                return meter.value(variables)

        of_model = {key: value for key, value in settings.items() if key in _MODELS[name]}
        of_gomea = {key: value for key, value in settings.items() if key in _GOMEA}
        fitness = Fitness(len(meter.free), alphabet_size=meter.cardinalities[0])
        # a variable of its own: made within the call below it would be freed while in use
        model = getattr(gomea.linkage, name)(**of_model)
        algorithm = gomea.DiscreteGOMEA(
            fitness=fitness,
            linkage_model=model,
            max_number_of_evaluations=meter.budget,
            random_seed=seed,
            **of_gomea,
        )
        algorithm.run()
        return settings
