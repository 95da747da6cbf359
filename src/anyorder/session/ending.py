"""When a session stops, and why."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

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


def explain_exhaustion(session: Session) -> None:
    """Log what "exhausted" means in this case."""
    reason = f"each of the last {session._idle} candidates was known or rejected"
    if _all_known(session):
        reason = "all points of the space are known"
    elif session._finished:
        reason = f"{session._strategy.name} has finished"
    logger.warning("stopped after %d evaluations: %s", session.evaluations, reason)
