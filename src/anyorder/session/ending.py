"""When a session stops, and why; and what is said about failed evaluations."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from anyorder.candidate import Candidate
from anyorder.errors import FAILED, OK, STATUSES
from anyorder.session.evaluators import Outcome
from anyorder.space import Space

if TYPE_CHECKING:
    from anyorder.session.loop import Session

logger = logging.getLogger("anyorder")

# A run in which so many candidates, or batches, in a row were known or rejected has ended.
_IDLE_CANDIDATES, _IDLE_BATCHES = 1_000, 100


def stop_reason(session: Session) -> str | None:
    """Why to stop now, if there is a reason."""
    stopping, archive = session._stopping, session._archive
    if session._interrupts.count and not session._running:
        return "interrupted"
    if session._replay is not None:
        return None
    if session._reached:
        return "target"
    if session._called_off:
        return "callback"
    patience, limit = stopping.patience, stopping.max_seconds
    if patience is not None and archive.evaluations - archive.improved >= patience:
        return "patience"
    if limit is not None and time.monotonic() - session._start >= limit:
        return "time"
    if stopping.stop_collapsed and session._strategy.converged:
        return "collapsed"
    if session._running:
        return None
    if session.evaluations >= stopping.budget:
        return "budget"
    if not session._ready and is_exhausted(session):
        return "exhausted"
    return None


def is_exhausted(session: Session) -> bool:
    """Whether no candidate that comes can be expected to be new."""
    if session._finished or _all_known(session):
        return True
    return session._idle >= max(_IDLE_CANDIDATES, _IDLE_BATCHES * session._strategy.batch)


def _all_known(session: Session) -> bool:
    archive, evaluation = session._archive, session._evaluation
    cached = evaluation.cache and evaluation.deterministic
    return cached and archive.distinct >= archive.space.points


def final_reason(session: Session, reason: str) -> str:
    """Why a session has stopped; logged where that needs an explanation."""
    if reason == "exhausted":
        _explain_exhaustion(session)
    archive = session._archive
    if session.evaluations and session.failures == session.evaluations and archive.best is None:
        last = max(archive.errors, default=None)
        shown = "" if last is None else f"; the last at {_point(session, last)}"
        logger.warning("every evaluation failed, %d in all%s", session.evaluations, shown)
        return reason if reason == "interrupted" else "failed"
    return reason


def _point(session: Session, row: int) -> str:
    """The point of a failed answer, and what went wrong."""
    archive = session._archive
    return f"{archive.space.brief(archive.codes[row])}: {archive.errors[row]}"


def failure(space: Space, job: Sequence[Candidate], k: int, outcome: Outcome) -> Exception:
    """The error that ends a run, which names the point: candidate k of a job has failed."""
    where = space.brief(job[k].codes)
    if outcome.error is None:
        status = STATUSES[outcome.status or FAILED]
        return RuntimeError(f"an evaluation ended with {status!r} at {where}: {outcome.reason}")
    batch = f"a batch of {len(job)} points, the first of them " if len(job) > 1 else ""
    if outcome.status != OK:  # raised by f, for the whole job
        where = f"{batch}{space.brief(job[0].codes)}"
    outcome.error.add_note(f"while evaluating {where}")
    return outcome.error


def lost(space: Space, jobs: Sequence[Sequence[Candidate]]) -> str:
    """For an error that ends a run: what was being evaluated."""
    points = [space.brief(candidate.codes) for job in jobs for candidate in job]
    more = f" and {len(points) - 3} more" if len(points) > 3 else ""
    return f" while evaluating {', '.join(points[:3])}{more}" if points else ""


def _explain_exhaustion(session: Session) -> None:
    """Log what "exhausted" means in this case."""
    reason = f"each of the last {session._idle} candidates was known or rejected"
    feasibility = session.optimizer.feasibility
    if _all_known(session):
        reason = "all points of the space are known"
    elif feasibility is not None and not feasibility.allowed:
        reason = feasibility.explain()
    elif session._finished:
        reason = f"{session._strategy.name} has finished"
    logger.warning("stopped after %d evaluations: %s", session.evaluations, reason)
