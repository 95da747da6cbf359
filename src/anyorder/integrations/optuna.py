"""A sampler for Optuna.

    study = optuna.create_study(sampler=AnyOrderSampler(seed=0))

The space is the union of the parameters of all finished trials. All state is in the study; the only
addition are the proposals, in the system attributes of trials, so that other processes know which
points running trials are evaluating.
"""

from __future__ import annotations

import logging
import math
import secrets
import threading
from collections.abc import Callable, Sequence
from typing import Any

from anyorder._internal.checks import flag, function, integer, optional, require
from anyorder.optimizer import Optimizer
from anyorder.strategies.create import Algorithm

optuna = require("optuna", "optuna", "AnyOrderSampler requires Optuna")

from optuna.distributions import BaseDistribution  # noqa: E402
from optuna.samplers import BaseSampler, RandomSampler  # noqa: E402
from optuna.study import Study, StudyDirection  # noqa: E402
from optuna.trial import FrozenTrial, TrialState  # noqa: E402

from anyorder.integrations.optuna_search import CONSTRAINTS, PROPOSAL, Search  # noqa: E402
from anyorder.integrations.optuna_space import MOST_VALUES, Parameter, Parameters  # noqa: E402

logger = logging.getLogger("anyorder.optuna")

# so many proposals in a row may be ones that another process makes at the same time
_MOST_RACES = 10


class AnyOrderSampler(BaseSampler):  # type: ignore[misc]
    """Search with anyorder in a study of Optuna.

    Parameters
    ----------
    seed
        An integer from 0 to 2**64 - 1; None draws one.
    algorithm
        A name or an object, as in `anyorder.maximize`.
    levels
        The number of values of a float without a step that are used.
    deterministic
        If False, values are noisy, and a point may be evaluated again.
    constraints_func
        A function that returns the constraints of a finished trial; each is satisfied if at most 0.
    """

    def __init__(
        self,
        seed: int | None = None,
        *,
        algorithm: Algorithm | None = None,
        levels: int = 1025,
        deterministic: bool = True,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
    ) -> None:
        seed = secrets.randbits(32) if seed is None else integer("seed", seed, 0, 2**64 - 1)
        self._seed, self._algorithm = seed, algorithm
        self._levels = integer("levels", levels, 2, MOST_VALUES)
        self._deterministic = flag("deterministic", deterministic)
        self._constraints_func = optional(function)("constraints_func", constraints_func)
        self._random = RandomSampler(seed % 2**32)
        self._said: set[str] = set()
        self._forget(None)
        self._lock = threading.RLock()

    def _forget(self, study: Any) -> None:
        """Forget everything, and begin a study."""
        self._study = study
        self._seen: dict[str, BaseDistribution] = {}
        self._finished: list[FrozenTrial] = []  # in the order in which they were found
        self._found: set[int] = set()  # the numbers of finished trials, from `_first` on
        self._first = 0  # all trials with smaller numbers are finished
        self._search: Search | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the search: a copy learns from the study again."""
        state = self.__dict__.copy()
        for name in ("_lock", "_study", "_search", "_finished", "_found", "_first", "_seen"):
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the settings."""
        self.__dict__.update(state)
        self._forget(None)
        self._lock = threading.RLock()

    # --- what Optuna calls ----------------------------------------------------------------------

    def reseed_rng(self) -> None:
        """Draw other random numbers than copies of this sampler do."""
        with self._lock:
            self._random.reseed_rng()
            self._seed, self._search = secrets.randbits(32), None

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return all parameters of finished trials that have several values, but not too many."""
        _refuse_several(study)
        with self._lock:
            self._read(study)
            found = {}
            for name, distribution in self._seen.items():
                if distribution.single():
                    continue
                if Parameter(distribution, self._levels).size > MOST_VALUES:
                    self._say(name, "has more than 2**31 values")
                else:
                    found[name] = distribution
            return found

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return a point to evaluate."""
        _refuse_several(study)
        if not search_space:
            return {}
        with self._lock:
            if self._search is None or self._search.parameters.distributions != search_space:
                self._search = Search(self._optimizer, Parameters(search_space, self._levels))
            values = self._propose(study, trial, self._search)
            if values is None:  # all points are known, or are being evaluated
                sample = self._random.sample_independent
                return {n: sample(study, trial, n, d) for n, d in search_space.items()}
            return self._search.parameters.external(values)

    def _propose(self, study: Study, trial: FrozenTrial, search: Search) -> dict[str, float] | None:
        """Store a proposal in the study, and return it; None if there is no new point.

        Two processes that read the study at the same time may propose the same point. Both see this
        once both have stored it, and propose other points: the later trial takes the next but one.
        """
        values: dict[str, float] | None = None
        for _ in range(_MOST_RACES):
            others = [other for other in self._read(study) if other.number != trial.number]
            search.learn(self._finished, _is_maximized(study))
            if values is not None:
                rivals = search.find_rivals(values, others)
                if not rivals and not search.is_finished(values):
                    break
                if rivals and min(rivals) < trial.number:
                    search.propose(others)
            values = search.propose(others)
            if values is None:
                break
            study._storage.set_trial_system_attr(trial._trial_id, PROPOSAL, values)
        return values

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return a random value of a parameter that no finished trial has."""
        _refuse_several(study)
        with self._lock:
            if self._finished and param_name not in self._seen:
                self._say(param_name, "is new")
            return self._random.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Store the constraints of a trial where Optuna expects them."""
        if self._constraints_func is None or state not in (TrialState.COMPLETE, TrialState.PRUNED):
            return
        found = tuple(float(value) for value in self._constraints_func(trial))
        if any(map(math.isnan, found)):
            raise ValueError(f"constraints_func returned {found}, expected numbers")
        study._storage.set_trial_system_attr(trial._trial_id, CONSTRAINTS, found)

    # --- the study ------------------------------------------------------------------------------

    def _say(self, name: str, why: str) -> None:
        if why not in self._said:
            self._said.add(why)
            logger.info("parameter %r %s: it is sampled at random", name, why)

    def _optimizer(self, parameters: Parameters) -> Optimizer:
        return Optimizer(
            parameters.space,
            self._seed,
            algorithm=self._algorithm,
            deterministic=self._deterministic,
        )

    def _read(self, study: Study) -> list[FrozenTrial]:
        """Find the trials that have finished, and return those that have not."""
        identity = study._storage, study._study_id
        if self._study is None or self._study[0] is not identity[0] or self._study != identity:
            self._forget(identity)
        open_trials = []
        trials = study._storage.get_all_trials(study._study_id, deepcopy=False)
        for trial in trials[self._first :]:
            if not trial.state.is_finished():
                open_trials.append(trial)
            elif trial.number not in self._found:
                self._found.add(trial.number)
                self._finished.append(trial)
                self._seen.update(trial.distributions)
        while self._first in self._found:
            self._found.discard(self._first)
            self._first += 1
        return open_trials


def _is_maximized(study: Study) -> bool:
    return bool(study.direction == StudyDirection.MAXIMIZE)


def _refuse_several(study: Study) -> None:
    if len(study.directions) > 1:
        raise ValueError(
            f"the study has {len(study.directions)} objectives, expected one: AnyOrderSampler has "
            "a single objective"
        )
