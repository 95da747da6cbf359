"""A search algorithm for Ray Tune."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cloudpickle

from anyorder._internal.checks import choice, integer, optional, require
from anyorder.optimizer import Optimizer
from anyorder.strategies.create import Algorithm

require("ray.tune", "ray", "AnyOrderSearch requires Ray Tune")

from ray.tune.result import DEFAULT_METRIC  # noqa: E402
from ray.tune.search import UNDEFINED_METRIC_MODE, UNDEFINED_SEARCH_SPACE, Searcher  # noqa: E402
from ray.tune.search.variant_generator import assign_value  # noqa: E402

from anyorder.integrations.ray_space import Parameters  # noqa: E402


class AnyOrderSearch(Searcher):  # type: ignore[misc]
    """A search with anyorder, as `search_alg` of `ray.tune.TuneConfig`.

    Parameters
    ----------
    space
        A search space of Ray Tune; by default that of the tuner (`param_space`).
    metric, mode
        The metric to optimise, and "min" or "max"; by default those of the `TuneConfig`.
    points_to_evaluate
        Configurations to begin with.
    evaluated_rewards
        The values of these configurations, if they are known: they are learned, and not evaluated.
    algorithm
        The algorithm, as in `anyorder.maximize`.
    levels
        The number of values of a float that are used; equally spaced, for `loguniform` in the
        logarithm.
    deterministic
        If False, trials are noisy, and configurations may be repeated.
    seed
        An integer makes suggestions repeatable.
    """

    def __init__(
        self,
        space: Mapping[str, Any] | None = None,
        *,
        metric: str | None = None,
        mode: str | None = None,
        points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
        evaluated_rewards: Sequence[float] | None = None,
        algorithm: Algorithm | None = None,
        levels: int = 1025,
        deterministic: bool = True,
        seed: int | None = None,
    ) -> None:
        _check_objective(metric, mode)
        super().__init__(metric=metric, mode=mode)
        self._metric: str | None = metric
        self._mode: str | None = mode
        self._levels = integer("levels", levels, 2)
        self._seed = optional(integer)("seed", seed)
        self._algorithm, self._deterministic = algorithm, deterministic
        self._first = list(points_to_evaluate or [])
        self._rewards = None if evaluated_rewards is None else list(evaluated_rewards)
        if self._rewards is not None and len(self._rewards) != len(self._first):
            raise ValueError(
                f"there are {len(self._rewards)} evaluated_rewards, expected {len(self._first)}: "
                "one for each of points_to_evaluate"
            )
        self._config: dict[str, Any] | None = None
        self._open: dict[str, list[int]] = {}  # the points of trials that have not finished
        if space:
            self._set_space(space)

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: Mapping[str, Any], **spec: Any
    ) -> bool:
        """Take the settings of the `TuneConfig` unless they were given before."""
        _check_objective(metric, mode)
        if self._config is not None:
            return False
        self._metric, self._mode = metric or self._metric, mode or self._mode
        self._set_space(config)
        return True

    def _set_space(self, config: Mapping[str, Any]) -> None:
        """Set the search space; the search begins once the mode is known, too."""
        self._config = dict(copy.deepcopy(config))
        self._parameters = Parameters(self._config, self._levels)
        self._optimizer: Optimizer | None = None
        self._waiting = [self._parameters.read(point) for point in self._first]

    def _begin(self) -> Optimizer:
        """Return the search; the first call begins it."""
        if self._config is None:
            name = type(self).__name__
            raise RuntimeError(UNDEFINED_SEARCH_SPACE.format(cls=name, space="space"))
        if self._mode is None:
            text = UNDEFINED_METRIC_MODE.format(
                cls=type(self).__name__, metric=self._metric, mode=self._mode
            )
            raise RuntimeError(text)
        if self._optimizer is None:
            self._metric = self._metric or DEFAULT_METRIC
            self._optimizer = Optimizer(
                self._parameters.space, self._seed, algorithm=self._algorithm,
                direction="minimize" if self._mode == "min" else "maximize",
                deterministic=self._deterministic,
            )  # fmt: skip
            if self._rewards is not None:
                for (entries, _), reward in zip(self._waiting, self._rewards, strict=True):
                    self._tell(entries, reward)
                self._waiting = []
        return self._optimizer

    def suggest(self, trial_id: str) -> Any:
        """Return a configuration; None if trials must finish first, and FINISHED at the end."""
        optimizer = self._begin()
        given: dict[tuple[Any, ...], Any] = {}
        if self._waiting:
            entries, given = self._waiting.pop(0)
            optimizer.suggest(entries)
        points = optimizer.ask(1, known="give" if given else None)
        if not len(points):
            return None if self._open else Searcher.FINISHED
        self._open[trial_id] = points[0].tolist()
        config = copy.deepcopy(self._config)
        for path, value in (given or self._parameters.values(points[0])).items():
            assign_value(config, path, value)
        return config

    def on_trial_complete(
        self, trial_id: str, result: Mapping[str, Any] | None = None, error: bool = False
    ) -> None:
        """Learn the last value of a trial; an error, NaN, inf or no value is a failure."""
        entries = self._open.pop(trial_id, None)
        if entries is not None:
            self._tell(entries, None if error or not result else result.get(self._metric or ""))

    def add_evaluated_point(
        self,
        parameters: Mapping[str, Any],
        value: float,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: Sequence[float] | None = None,
    ) -> None:
        """Learn a configuration that was evaluated before."""
        self._begin()
        self._tell(self._parameters.read(parameters)[0], None if error else value)

    def _tell(self, entries: list[int], value: Any) -> None:
        number = math.nan if value is None else float(value)
        if not math.isfinite(number):
            number = math.nan
        self._begin().tell([entries], [number], on_failure="worst")

    def save(self, checkpoint_path: str) -> None:
        """Write the search to a file."""
        Path(checkpoint_path).write_bytes(cloudpickle.dumps(self.__dict__))

    def restore(self, checkpoint_path: str) -> None:
        """Continue a search that was written to a file."""
        self.__dict__.update(cloudpickle.loads(Path(checkpoint_path).read_bytes()))


def _check_objective(metric: Any, mode: Any) -> None:
    if isinstance(metric, list | tuple) or isinstance(mode, list | tuple):
        count = max(len(one) for one in (metric, mode) if isinstance(one, list | tuple))
        raise ValueError(f"there are {count} metrics, expected one: anyorder has one objective")
    if mode is not None:
        choice("mode", mode, ("min", "max"))
