"""When a session stops, and why; and the messages about failed evaluations."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from anyorder._internal.checks import ProgramError
from anyorder.archive.candidate import Candidate
from anyorder.errors import FAILED, OK, STATUSES
from anyorder.run.evaluation.evaluators import Outcome
from anyorder.run.exhaustion import explain_exhaustion, is_exhausted
from anyorder.run.stopping import ask_rules
from anyorder.space import Space

if TYPE_CHECKING:
    from anyorder.run.state import State

logger = logging.getLogger("anyorder")


def stop_reason(state: State) -> str | None:
    """Return the reason to stop now, or None."""
    if state.interrupts.count and not state.running:
        return "interrupted"
    if state.replaying:
        return None
    reason = ask_rules(state.stopping.rules, state)
    if reason is not None:
        return reason
    if state.called_off:
        return "callback"
    if state.running:
        return None
    if state.room <= 0:
        return "budget"
    if not state.ready and is_exhausted(state):
        return "collapsed" if state.finished and state.strategy.converged else "exhausted"
    return None


def final_reason(state: State, reason: str) -> str:
    """Return the reason why a session has stopped; it is logged if it needs an explanation."""
    if reason == "exhausted":
        explain_exhaustion(state)
    archive = state.archive
    _warn_of_reference(state)
    if state.evaluations and state.failures == state.evaluations and not archive.has_value:
        last = max(archive.errors, default=None)
        shown = "" if last is None else f"; the last at {_point(state, last)}"
        logger.warning("every evaluation failed, %d in all%s", state.evaluations, shown)
        return reason if reason == "interrupted" else "failed"
    return reason


def _warn_of_reference(state: State) -> None:
    """Log a warning if the hypervolume is 0 because the reference point is too good."""
    objectives, values = state.archive.objectives, state.archive.front_values
    if objectives is None or objectives.reference is None or not len(values):
        return
    reference = np.array(objectives.reference) * objectives.signs
    if not (values > reference).all(axis=1).any():
        best = tuple((values.max(axis=0) * objectives.signs).tolist())
        logger.warning(
            "no evaluation is better than the reference %s in every objective, so the hypervolume "
            "is 0: the best values of each are %s", objectives.reference, best,
        )  # fmt: skip


def _point(state: State, row: int) -> str:
    """Return the point of a failed answer, and what went wrong, for a message."""
    archive = state.archive
    return f"{archive.space.brief(archive.codes[row])}: {archive.errors[row]}"


def failure(space: Space, job: Sequence[Candidate], k: int, outcome: Outcome) -> Exception:
    """Return the error that ends a run after candidate k of a job failed; it names the point."""
    where = space.brief(job[k].codes)
    if outcome.error is None:
        status = STATUSES[outcome.status or FAILED]
        return RuntimeError(f"an evaluation ended with {status!r} at {where}: {outcome.reason}")
    batch = f"a batch of {len(job)} points, the first of them " if len(job) > 1 else ""
    if outcome.status != OK:  # f raised it, for the whole job
        where = f"{batch}{space.brief(job[0].codes)}"
    advice = "; on_failure='worst' or 'skip' continues after a failure"
    if isinstance(outcome.error, ProgramError):  # no option lets it pass
        advice = ""
    outcome.error.add_note(f"while evaluating {where}{advice}")
    return outcome.error


def describe_lost(space: Space, lost: Sequence[Candidate]) -> str:
    """Return what was being evaluated, as text for an error that ends a run."""
    points = [space.brief(candidate.codes) for candidate in lost]
    more = f" and {len(points) - 3} more" if len(points) > 3 else ""
    return f", while evaluating {', '.join(points[:3])}{more}" if points else ""
