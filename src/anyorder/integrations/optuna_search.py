"""A search in a study of Optuna: it learns from trials, and proposes points that no trial has.

Optuna's conditions are known only from the parameters that trials suggested. A proposal that
follows the path of a finished trial to its end equals that trial, whatever its other parameters
are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from optuna.trial import FrozenTrial, TrialState

from anyorder.integrations.optuna_space import Parameters
from anyorder.optimizer import Optimizer

PROPOSAL = "anyorder:proposal"  # a system attribute of trials
CONSTRAINTS = "constraints"  # the system attribute that Optuna uses
_MOST_ANSWERS = 1_000  # so many proposals in a row may be finished trials


class Search:
    """A search over one set of parameters."""

    def __init__(self, make: Callable[[Parameters], Optimizer], parameters: Parameters) -> None:
        self.parameters = parameters
        self._optimizer = make(parameters)
        self._learned = 0  # the number of finished trials that have been learned
        # A node holds the name of the parameter that is suggested next, and for each entry what
        # follows; a leaf holds a value and a violation.
        self._paths: list[Any] = []

    def learn(self, finished: Sequence[FrozenTrial], maximized: bool) -> None:
        """Learn from the finished trials that have not been learned yet."""
        new = finished[self._learned :]
        if not new:
            return
        self._learned = len(finished)
        points = np.array([self._point(trial) for trial in new], np.int64)
        outcomes = [_outcome(trial, maximized) for trial in new]
        self._tell(points, outcomes)
        for trial, outcome in zip(new, outcomes, strict=True):
            self._keep_path(trial, outcome)

    def propose(self, open_trials: Sequence[FrozenTrial]) -> dict[str, float] | None:
        """Return a new point, in internal representation; None if there is none."""
        entries = map(self._entries, open_trials)
        points = [point for point in entries if None not in point]
        self._optimizer.elsewhere(np.array(points, np.int64) if points else [])
        for _ in range(_MOST_ANSWERS):
            asked = np.asarray(self._optimizer.ask(1), np.int64)
            if not len(asked):
                return None
            outcome = self._find(asked[0])
            if outcome is None:
                break
            self._tell(asked, [outcome])
        return self.parameters.values(asked[0])

    def find_rivals(
        self, values: dict[str, float], open_trials: Sequence[FrozenTrial]
    ) -> list[int]:
        """Return the numbers of the open trials that have the same point."""
        point = self.parameters.entries(values)
        return [trial.number for trial in open_trials if self._entries(trial) == point]

    def is_finished(self, values: dict[str, float]) -> bool:
        """Return whether a finished trial has this point."""
        return self._find(np.array(self.parameters.entries(values), np.int64)) is not None

    def _tell(self, points: npt.NDArray[np.int64], outcomes: list[tuple[float, float]]) -> None:
        values, violations = zip(*outcomes, strict=True)
        self._optimizer.tell(points, values, violations=violations, on_failure="worst")

    def _entries(self, trial: FrozenTrial) -> list[int | None]:
        """Return the entries of a trial's point, None for those that are not known."""
        values: dict[str, float] = dict(trial.system_attrs.get(PROPOSAL, {}))
        for given in (trial.system_attrs.get("fixed_params", {}), trial.params):
            values |= self._internal(given)
        return self.parameters.entries(values)

    def _internal(self, values: Mapping[str, Any]) -> dict[str, float]:
        known = self.parameters.distributions
        found = {}
        for name, value in values.items():
            if name in known:
                try:
                    found[name] = float(known[name].to_internal_repr(value))
                # a value of another distribution, or enqueued by mistake
                except (TypeError, ValueError):
                    continue
        return found

    def _point(self, trial: FrozenTrial) -> list[int]:
        """Return the point of a finished trial, with arbitrary values for what it lacks."""
        entries = self._entries(trial)
        if None not in entries:
            return [entry for entry in entries if entry is not None]
        rng = np.random.default_rng([self._optimizer.seed, trial.number])
        other = rng.integers(self.parameters.space.cardinalities)
        filled = np.asarray(self.parameters.space.decode(other[None].astype(np.int32)))[0].tolist()
        return [b if a is None else a for a, b in zip(entries, filled, strict=True)]

    # --- conditions -----------------------------------------------------------------------------

    def _keep_path(self, trial: FrozenTrial, outcome: tuple[float, float]) -> None:
        """Store the path of a trial's suggestions, if the path determines its value."""
        if trial.state == TrialState.FAIL:
            return  # it may have ended before its last parameter was suggested
        if not self._optimizer.archive.deterministic:
            return  # it may be evaluated again
        parameters, path = self.parameters, []
        for name, value in trial.params.items():
            if name in parameters.place:
                internal = float(parameters.distributions[name].to_internal_repr(value))
                if not parameters.by_name[name].contains(internal):
                    return
                path.append((parameters.place[name], parameters.by_name[name].entry(internal)))
            elif not trial.distributions[name].single():
                return
        node = self._paths
        for place, entry in path:
            if not node:
                node += [place, {}]
            if node[0] != place:
                return  # the order of parameters has changed
            node = node[1].setdefault(entry, [])
        if not node:
            node += [None, outcome]

    def _find(self, point: npt.NDArray[np.int64]) -> tuple[float, float] | None:
        """Return the outcome of the trial whose path a point follows to its end, or None."""
        node = self._paths
        while node and node[0] is not None:
            node = node[1].get(int(point[node[0]]), [])
        return node[1] if node else None


def _outcome(trial: FrozenTrial, maximized: bool) -> tuple[float, float]:
    """Return a value to maximise, NaN for a failure, and a violation."""
    if trial.state == TrialState.FAIL:
        return math.nan, 0.0
    attributes = trial.system_attrs
    constraints = list(attributes.get(CONSTRAINTS) or ())
    constraints += [v for k, v in attributes.items() if k.startswith(f"{CONSTRAINTS}:")]
    violation = sum(max(0.0, float(value)) for value in constraints)
    if trial.state == TrialState.PRUNED:  # it ranks by its last report, below all completed trials
        last = trial.last_step
        report = math.nan if last is None else trial.intermediate_values[last]
        loss = -report if maximized else report
        if math.isnan(loss):
            return math.nan, math.inf
        return math.nan, 1e3 + violation + math.copysign(math.log1p(abs(loss)), loss)
    value = float(trial.value)
    return (value if maximized else -value), violation
