"""The progress of a session: a bar on a terminal and in a notebook, lines in the log elsewhere."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyorder.run.state import State

logger = logging.getLogger("anyorder")

_EVERY = 0.1  # seconds between updates of a bar
_LINE_EVERY = 10.0  # seconds between lines about improvements


class Display:
    """Shows the progress of a run.

    Parameters
    ----------
    bar
        A tqdm progress bar.
    """

    def __init__(self, bar: Any) -> None:
        self._bar, self._start = bar, time.monotonic()
        self._shown = self._start
        self._improved = 0  # the improvement that the last line reported

    def begin(self, state: State) -> None:
        """Log the settings of the run that begins, if there is no bar."""
        if self._bar.disable:
            space, study = state.archive.space, state.study
            kept = "" if study is None else f", study {study.path}"
            budget, limit = state.stopping.budget, state.stopping.time_limit
            limits = "no budget" if budget is None else f"budget {budget}"
            limits += "" if limit is None else f", at most {limit:g} s"
            logger.info(
                "%s of %d variables by %s, %s, seed %d%s",
                state.direction, len(space.columns), state.strategy.name, limits,
                state.proposer.seed, kept,
            )  # fmt: skip

    def show(self, state: State) -> None:
        """Update the bar, or log an improvement, if enough time has passed since the last one."""
        now = time.monotonic()
        if self._bar.disable:
            archive = state.archive
            if now - self._shown >= _LINE_EVERY and archive.improved != self._improved:
                self._shown, self._improved = now, archive.improved
                logger.info("%s%s", _state(state), self._time_left(state))
        elif now - self._shown >= _EVERY:
            self._update(state)

    def end(self, state: State, reason: str) -> None:
        """Show the final state."""
        if not self._bar.disable:
            self._update(state)
        else:
            seconds = time.monotonic() - self._start
            logger.info("stopped by %s after %.1f s: %s", reason, seconds, _state(state))

    def _time_left(self, state: State) -> str:
        """Return the time that is left as text; empty if it is not known."""
        done, budget = state.evaluations - state.resumed_at, state.stopping.budget
        left = []
        if state.deadline is not None:
            left.append(max(0.0, state.deadline - time.monotonic()))
        if budget is not None and done:
            each = (time.monotonic() - self._start) / done
            left.append(each * (budget - state.evaluations))
        return f", about {min(left):.0f} s left" if left else ""

    def _update(self, state: State) -> None:
        self._shown = time.monotonic()
        bar, slots = self._bar, state.jobs.slots
        bar.update(state.evaluations - bar.n)
        parts = [state.archive.describe()]
        if state.failures:
            parts.append(f"failed {state.failures}")
        if bar.detailed:
            facts = state.strategy.facts().items()
            parts += [f"{name} {x:.4g}" for name, x in facts if isinstance(x, int | float)]
            if slots > 1:
                parts.append(f"busy {len(state.running)}/{slots}")
            if state.archive.restarts:
                parts.append(f"restarts {len(state.archive.restarts)}")
        bar.set_postfix_str(", ".join(parts), refresh=False)


def count_of(evaluations: int, budget: int | None) -> str:
    """Return the number of evaluations, out of the budget if there is one, as text."""
    return (
        f"{evaluations} evaluations" if budget is None else f"{evaluations} of {budget} evaluations"
    )


def _state(state: State) -> str:
    """Return the progress of a session as text for the log."""
    failed = f", {state.failures} failed" if state.failures else ""
    return (
        f"{count_of(state.evaluations, state.stopping.budget)}{failed}, {state.archive.describe()}"
    )


class _Lines(logging.Handler):
    """A handler that prints the log to standard error, above a progress bar if there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        if "tqdm" in sys.modules:
            sys.modules["tqdm"].tqdm.write(text, file=sys.stderr)
        else:
            print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def show_log(progress: bool | str | None) -> Iterator[None]:
    """Print the log of this library to standard error, within a `with` statement.

    Nothing is printed if `progress` is False, or if the application has set up logging itself.
    """
    if progress is False or sys.stderr is None or logger.hasHandlers():
        yield
        return
    handler, level = _Lines(logging.INFO), logger.level
    handler.setFormatter(logging.Formatter("anyorder: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class NoBar:
    """A replacement for a progress bar that nobody would see: tqdm's has a thread and a lock."""

    disable = True

    def update(self, count: int) -> None:
        """Do nothing."""

    def set_postfix_str(self, text: str, refresh: bool = True) -> None:
        """Do nothing."""

    def __enter__(self) -> NoBar:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


def _is_watched() -> bool:
    """Return whether somebody sees a bar: on a terminal, in Jupyter, VS Code or Colab."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if hasattr(shell, "kernel"):
        return True
    if sys.stderr is None or not sys.stderr.isatty():
        return False
    try:  # terminals without a size, as in some containers, show no bar
        return os.get_terminal_size(sys.stderr.fileno()).lines > 0
    except (OSError, ValueError):
        return True


def progress_bar(budget: int | None, shown: bool | str | None) -> Any:
    """Return a bar that counts evaluations.

    If `shown` is None, the bar appears on a terminal and in a notebook, after two seconds.
    """
    if shown not in (True, False, None, "detailed"):
        raise ValueError(f"progress is {shown!r}, expected True, False, None or 'detailed'")
    if not (_is_watched() if shown is None else shown):
        return NoBar()
    with warnings.catch_warnings():  # without ipywidgets a notebook gets a bar of text
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm  # importing it takes a while
    bar = tqdm(total=budget, unit="eval", delay=0 if shown else 2.0)
    bar.detailed = shown == "detailed"
    return bar
