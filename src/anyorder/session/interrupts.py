"""Ctrl-C: once to stop when what is under way has finished, twice to leave at once."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from collections.abc import Sized
from typing import Any

logger = logging.getLogger("anyorder")


class Interrupts:
    """Within it, the first Ctrl-C is only counted and the second raises KeyboardInterrupt.

    Only the main thread can handle signals: in another one nothing changes.

    Parameters
    ----------
    message
        What the first Ctrl-C logs: which work is being finished.
    waiting
        What that is, if it can be told: while it is empty, nothing is logged.
    always
        Also in place of a handler that is not Python's own, which otherwise keeps its place.

    Attributes
    ----------
    count
        How often Ctrl-C was pressed.
    """

    def __init__(self, message: str, waiting: Sized | None = None, *, always: bool = False) -> None:
        self.count = 0
        self._message, self._waiting, self._always = message, waiting, always

    def __enter__(self) -> Interrupts:
        self._had = signal.getsignal(signal.SIGINT)
        self._ours = threading.current_thread() is threading.main_thread() and (
            self._always or self._had is signal.default_int_handler
        )
        if self._ours:
            signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._ours:
            signal.signal(signal.SIGINT, self._had)

    def _interrupt(self, number: int, frame: Any) -> None:
        self.count += 1
        if self.count > 1:
            raise KeyboardInterrupt
        if self._waiting is None or len(self._waiting):
            with contextlib.suppress(RuntimeError):  # in the middle of another message
                logger.warning("%s; Ctrl-C again leaves at once", self._message)
