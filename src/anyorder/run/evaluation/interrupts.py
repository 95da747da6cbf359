"""Ctrl-C: the first one stops after running work, the second one stops at once."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from collections.abc import Sized
from typing import Any

logger = logging.getLogger("anyorder")


class Interrupts:
    """A context in which the first Ctrl-C is only counted, and the second raises KeyboardInterrupt.

    Only the main thread can handle signals; in other threads this changes nothing.

    Parameters
    ----------
    message
        The message to log at the first Ctrl-C, which says what work is being finished.
    waiting
        That work, if it can be given; while it is empty, nothing is logged.
    always
        Whether to replace signal handlers other than Python's default, too.

    Attributes
    ----------
    count
        How often Ctrl-C was pressed.
    at_once
        Whether the first Ctrl-C raises KeyboardInterrupt, too. It is set while nothing is being
        done that should be finished.
    """

    def __init__(self, message: str, waiting: Sized | None = None, *, always: bool = False) -> None:
        self.count, self.at_once = 0, False
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
        if self.count > 1 or self.at_once:
            raise KeyboardInterrupt
        if self._waiting is None or len(self._waiting):
            with contextlib.suppress(RuntimeError):  # the signal interrupted another log message
                logger.warning("%s; press Ctrl-C again to stop at once", self._message)
