"""The progress bar of a session."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyorder.session.loop import Session

_EVERY = 0.1  # seconds between updates


class Progress:
    """Shows how far a session is.

    Parameters
    ----------
    bar
        A tqdm progress bar.
    """

    def __init__(self, bar: Any) -> None:
        self._bar, self._shown = bar, time.monotonic()

    def show(self, session: Session, at_once: bool = False) -> None:
        """Update the bar, if that was long ago."""
        bar = self._bar
        if bar.disable or (not at_once and time.monotonic() - self._shown < _EVERY):
            return
        self._shown = time.monotonic()
        bar.update(session.evaluations - bar.n)
        archive, strategy, slots = session._archive, session._strategy, session._jobs.slots
        parts = [f"best {archive.best_value:.6g}"]
        parts += [f"{name} {value:.4g}" for name, value in strategy.facts().items()
                  if isinstance(value, int | float)]  # fmt: skip
        if slots > 1:
            parts.append(f"busy {len(session._running)}/{slots}")
        if session.failures:
            parts.append(f"failed {session.failures}")
        if archive.restarts:
            parts.append(f"restarts {len(archive.restarts)}")
        bar.set_postfix_str(", ".join(parts), refresh=False)


class NoBar:
    """In place of a progress bar that nobody would see: tqdm's has a thread and a lock."""

    disable = True

    def update(self, count: int) -> None:
        """Count nothing."""

    def set_postfix_str(self, text: str, refresh: bool = True) -> None:
        """Show nothing."""

    def __enter__(self) -> NoBar:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


def progress_bar(budget: int, shown: bool | None) -> Any:
    """A bar that counts evaluations; `shown` None: on a terminal, after two seconds."""
    if shown not in (True, False, None):
        raise ValueError(f"progress is {shown!r}, expected True, False or None")
    if not (sys.stderr.isatty() if shown is None else shown):
        return NoBar()
    from tqdm import tqdm  # which takes a while to import

    return tqdm(total=budget, unit="eval", delay=0 if shown else 2.0)
