"""Optimizers for Nevergrad.

    import nevergrad as ng
    import anyorder.integrations.nevergrad  # registers AnyOrder, AnyOrderILS and AnyOrderPolicy

    best = ng.optimizers.registry["AnyOrder"](parametrization, budget=1000).minimize(f)

The search begins with the first `ask` or `tell`: its seed is drawn from the random state of the
parametrization, and constraints may be registered until then.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from anyorder._internal.checks import integer, require
from anyorder.optimizer import Optimizer
from anyorder.strategies.create import Algorithm

ng = require("nevergrad", "nevergrad", "AnyOrder requires Nevergrad")

from nevergrad.common.errors import InefficientSettingsWarning  # noqa: E402
from nevergrad.optimization import base  # noqa: E402
from nevergrad.parametrization import helpers  # noqa: E402
from nevergrad.parametrization import parameter as p  # noqa: E402
from nevergrad.parametrization.utils import float_penalty  # noqa: E402

from anyorder.integrations.nevergrad_space import Variables  # noqa: E402

LEVELS = 1023  # odd, so that the middle, where Nevergrad begins, is a level
_POINT = "anyorder"  # the key under which candidates store their points
_NO_VALUE = 5.0e20  # Nevergrad's replacement for NaN and for losses that are too large


class AnyOrderOptimizer(base.ConfiguredOptimizer):  # type: ignore[misc]
    """A search with anyorder, as an optimizer of Nevergrad with settings.

    Parameters
    ----------
    algorithm
        A name or an object, as in `anyorder.maximize`.
    levels
        The number of values of a continuous coordinate that are used: equally spaced between its
        bounds, or quantiles of the standardised space.
    """

    def __init__(self, *, algorithm: Algorithm | None = None, levels: int = LEVELS) -> None:
        integer("levels", levels, 2)
        super().__init__(Search, {"algorithm": algorithm, "levels": levels})


class Search(base.Optimizer):  # type: ignore[misc]
    """The search that an `AnyOrderOptimizer` makes for a parametrization."""

    def __init__(
        self,
        parametrization: int | p.Parameter,
        budget: int | None = None,
        num_workers: int = 1,
        *,
        algorithm: Algorithm | None = None,
        levels: int = LEVELS,
    ) -> None:
        super().__init__(parametrization, budget=budget, num_workers=num_workers)
        self._algorithm = algorithm
        self._variables = Variables(self.parametrization, levels)
        self._optimizer: Optimizer | None = None
        self._violation = 0.0  # that of the candidate whose loss is being told
        if self._variables.continuous:
            self._warn(
                f"anyorder searches a grid: {levels} values of each continuous coordinate",
                InefficientSettingsWarning,
            )

    def _begin(self) -> Optimizer:
        """Return the search; the first call begins it."""
        if self._optimizer is None:
            constrained = not self.parametrization.can_skip_constraints()
            self._optimizer = Optimizer(
                self._variables.space,
                int(self._rng.randint(2**32, dtype=np.uint32)),
                algorithm=self._algorithm,
                direction="minimize",
                deterministic=bool(self.parametrization.function.deterministic),
                constraint=self._cheap_violations if constrained else None,
            )
        return self._optimizer

    def _candidate(self, point: Mapping[str, Any]) -> p.Parameter:
        candidate = self.parametrization.spawn_child()
        self._variables.write(candidate, point)
        return candidate

    def _cheap_violations(self, point: Mapping[str, Any]) -> list[float]:
        """Return how much a point violates each registered constraint."""
        return [
            float(float_penalty(check(part.value)))
            for _, part in helpers.flatten(self._candidate(point))
            for check in part._constraint_checkers
        ]

    def _internal_ask_candidate(self) -> p.Parameter:
        """Return a new candidate, or a known one if there is no new one."""
        optimizer = self._begin()
        points = optimizer.ask(1)
        if not points:
            points = optimizer.ask(1, known="give")
        if not points:  # the strategy has ended, or waits for answers
            return self.parametrization.sample()
        candidate = self._candidate(points[0])
        candidate._meta[_POINT] = points[0]
        return candidate

    def tell(
        self,
        candidate: p.Parameter,
        loss: Any,
        constraint_violation: Any = None,
        penalty_style: Any = None,
    ) -> None:
        """Tell the loss of a candidate, and by how much it violates other constraints.

        Violations are not treated as Nevergrad treats them: a candidate with a violation ranks
        below all candidates without one, whatever its loss is. `penalty_style` has no effect on the
        search.
        """
        if constraint_violation is not None:
            self._violation = float(np.sum(np.maximum(constraint_violation, 0.0)))
            if math.isnan(self._violation):
                raise ValueError(
                    f"constraint_violation is {constraint_violation}, expected numbers"
                )
        try:
            super().tell(candidate, loss, constraint_violation, penalty_style)
        finally:
            self._violation = 0.0

    def _internal_tell_candidate(self, candidate: p.Parameter, loss: float) -> None:
        point = candidate._meta.get(_POINT) or self._variables.read(candidate)
        if point is not None:
            value = loss if loss < _NO_VALUE else math.nan
            self._begin().tell([point], [value], violations=[self._violation], on_failure="worst")


AnyOrder = AnyOrderOptimizer().set_name("AnyOrder", register=True)
AnyOrderILS = AnyOrderOptimizer(algorithm="ils").set_name("AnyOrderILS", register=True)
AnyOrderPolicy = AnyOrderOptimizer(algorithm="policy").set_name("AnyOrderPolicy", register=True)
