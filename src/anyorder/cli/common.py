"""Tools that the commands share: errors in one line, output, figures, signals."""

from __future__ import annotations

import contextlib
import io
import logging
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, Protocol

import click

INTERRUPTED = 128 + signal.SIGINT  # the exit status after Ctrl-C


# --- output -------------------------------------------------------------------------------------


def printable(text: str) -> str:
    r"""Return text with control characters escaped: names and messages must not control a terminal.

    Line breaks and tabs are kept.
    """
    return "".join(
        one if one.isprintable() or one in "\n\t" else one.encode("unicode_escape").decode("ascii")
        for one in text
    )


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text that may contain a user's names or a program's messages."""
    click.echo(printable(text), err=err, nl=nl)


def escape_what_cannot_be_printed() -> None:
    """Escape characters that the encoding of the output lacks, such as that of a Windows pipe."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def align(rows: Mapping[str, str]) -> str:
    """Return names and values as lines with two columns."""
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())


class _TerminalHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        echo(self.format(record), err=True)


def log_to_terminal(context: click.Context) -> None:
    """Print the warnings of this library to stderr while a command runs."""
    logger, handler = logging.getLogger("anyorder"), _TerminalHandler(logging.WARNING)
    logger.addHandler(handler)
    context.call_on_close(lambda: logger.removeHandler(handler))


# --- errors -------------------------------------------------------------------------------------


@contextlib.contextmanager
def errors() -> Iterator[None]:
    """Report errors in one line: exit status 2 for wrong arguments, 1 for anything else."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise click.UsageError(_one_line(error)) from error
    except (RuntimeError, MemoryError, OSError, ImportError) as error:
        raise click.ClickException(_one_line(error)) from error


def _one_line(error: Exception) -> str:
    """Return the message of an error with its notes, such as the point at which it was raised."""
    notes = [note for note in getattr(error, "__notes__", ()) if "\n" not in note]
    return "; ".join([str(error), *notes])


class MainGroup(click.Group):
    """A group with printable error messages, and exit status 130 after Ctrl-C."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse the arguments."""
        with _printable_errors():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            with _printable_errors():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            echo("interrupted: left at once", err=True)
            sys.exit(INTERRUPTED)


@contextlib.contextmanager
def _printable_errors() -> Iterator[None]:
    try:
        yield
    except click.ClickException as error:
        error.message = printable(error.message)  # type: ignore[misc]
        raise


# --- figures ------------------------------------------------------------------------------------


class Drawable(Protocol):
    """An object that can be drawn as a figure."""

    def plot(self, path: str) -> Any:
        """Write the figure to a file."""


def check_folder(option: str, path: str | None) -> None:
    """Raise a ValueError if the folder of a file to be written does not exist."""
    if path is not None and not Path(path).absolute().parent.is_dir():
        raise ValueError(f"{option} {path}: there is no such folder")


def draw(result: Drawable, path: str | None) -> None:
    """Draw a result after it was printed, so that an error in the figure does not lose it."""
    if path is not None:
        try:
            result.plot(path)
        except (ValueError, ImportError, OSError) as error:
            raise click.ClickException(f"--output {path}: {error}") from error


# --- signals ------------------------------------------------------------------------------------


def exit_if_interrupted(stop_reason: str) -> None:
    """Exit with the status for Ctrl-C if that ended a run."""
    if stop_reason == "interrupted":
        sys.exit(INTERRUPTED)


@contextlib.contextmanager
def orderly_termination() -> Iterator[None]:
    """Unwind the stack on SIGTERM and SIGHUP, so that open files are closed.

    A signal that is ignored (`nohup`), or has another handler, is left alone.
    """
    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [getattr(signal, name) for name in names]
    ours = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in ours:
            signal.signal(number, _exit)
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)
