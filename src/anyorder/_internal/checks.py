"""Checks of what users pass, each in one place; errors name the value and what was expected.

A check takes the name of an argument and its value, and returns the value as it is used:
`integer("budget", budget, 1)`. `functools.partial(integer, minimum=1)` is again a check; option
tables (`Config`, `session.options`, TOML files) hold such checks.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import math
import numbers as _numbers
import operator
import os
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

Check = Callable[[str, Any], Any]
P = ParamSpec("P")
R = TypeVar("R")

_brief = reprlib.Repr()
_brief.maxlist = _brief.maxtuple = _brief.maxdict = 6
_brief.maxstring = _brief.maxother = _brief.maxlong = 60
_LONGEST = 300  # the most characters of a value that a message shows


def short(value: object) -> str:
    """Return a value as one short line for a message."""
    text = " ".join(_brief.repr(value).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


# --- single values ------------------------------------------------------------------------------


def integer(
    what: str, value: object, minimum: int | None = None, maximum: int | None = None
) -> int:
    """Return the value as an int within its bounds."""
    expected = "an integer" if minimum is None else f"an integer of at least {minimum}"
    if maximum is not None:
        expected = f"an integer from {minimum} to {maximum}"
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{what} is {short(value)}, expected {expected}") from None
    if isinstance(value, bool):
        raise TypeError(f"{what} is {value!r}, expected {expected}")
    low, high = minimum is not None and number < minimum, maximum is not None and number > maximum
    if low or high:
        raise ValueError(f"{what} is {short(number)}, expected {expected}")
    return number


def count(what: str, value: object, minimum: int = 1) -> int:
    """Return the value as an int of at least `minimum`; a whole float such as 1e3 is accepted."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return integer(what, value, minimum)


def real(
    what: str,
    value: object,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    above: bool = False,
) -> float:
    """Return the value as a finite float in [low, high], or in (low, high] if `above` is set."""
    bounds = []
    if low > -math.inf:
        bounds.append(f"above {low:g}" if above else f"of at least {low:g}")
    if high < math.inf:
        bounds.append(f"of at most {high:g}")
    expected = " ".join(["a finite number", " and ".join(bounds)]).strip()
    if isinstance(value, bool) or not isinstance(value, _numbers.Real):
        raise TypeError(f"{what} is {short(value)}, expected {expected}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    inside = (low < number if above else low <= number) and number <= high
    if not inside or not math.isfinite(number):
        raise ValueError(f"{what} is {short(value)}, expected {expected}")
    return number


def flag(what: str, value: object) -> bool:
    """Return the value, which must be True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{what} is {short(value)}, expected True or False")
    return bool(value)


def choice(what: str, value: object, allowed: Collection[str]) -> str:
    """Return the value, which must be one of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        hint = did_you_mean(value, allowed) if isinstance(value, str) else ""
        listed = " or ".join(map(repr, allowed)) if len(allowed) < 3 else ", ".join(allowed)
        expected = f"expected {listed}" if len(allowed) < 3 else f"expected one of {listed}"
        raise ValueError(f"{what} is {short(value)}{hint}, {expected}")
    return value


def function(what: str, value: object) -> Callable[..., Any]:
    """Return the value, which must be callable."""
    if not callable(value):
        raise TypeError(f"{what} is {short(value)}, expected a function")
    return value


def path(what: str, value: object) -> Path:
    """Return the path of a file as an absolute path."""
    try:
        name = os.fspath(value)  # type: ignore[call-overload]
    except TypeError:
        raise TypeError(f"{what} is {short(value)}, expected the path of a file") from None
    return Path(os.fsdecode(name)).absolute()


def optional(check: Check) -> Check:
    """Return a check that also accepts None."""
    return lambda what, value: None if value is None else check(what, value)


def entries(check: Check, least: int = 0) -> Check:
    """Return a check that applies `check` to each entry of a tuple or list and returns a tuple."""

    def checked(what: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, tuple | list):
            raise TypeError(f"{what} is {short(value)}, expected a tuple")
        if len(value) < least:
            raise ValueError(f"{what} is {short(value)}, expected at least {least} entries")
        return tuple(check(f"{what}[{k}]", entry) for k, entry in enumerate(value))

    return checked


# --- names --------------------------------------------------------------------------------------


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint for an error message that suggests the most similar known name, or ""."""
    spelled = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), spelled, n=1, cutoff=0.5)
    return f" (did you mean {spelled[near[0]]!r}?)" if near else ""


_OF_THE_POLICY = ("config", "engine", "graph", "stop_collapsed")


def refuse_unknown(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise a TypeError if there are keyword arguments that a function does not have."""
    known = list(known)
    unexpected = [name + _hint(name, known) for name in sorted(set(given) - set(known))]
    if unexpected:
        raise TypeError(f"{what} got unexpected arguments: {', '.join(unexpected)}")


def _hint(name: str, known: Iterable[str]) -> str:
    if name in _OF_THE_POLICY:
        return f" (of the policy: algorithm=anyorder.policy.Policy({name}=...))"
    return did_you_mean(name, known)


def suggesting_names(called: Callable[P, R]) -> Callable[P, R]:
    """Make a function, or `__init__`, suggest the right name for a misspelt keyword argument."""
    names = [*inspect.signature(called).parameters]
    what = called.__qualname__.removesuffix(".__init__")

    @functools.wraps(called)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        refuse_unknown(what, kwargs, names)
        return called(*args, **kwargs)

    return checked


def unknown(what: str, given: object, known: Iterable[str], *, most: int = 40) -> ValueError:
    """Return the error for an unknown name; more than `most` known names are not listed."""
    known = list(known)
    hint = did_you_mean(given, known) if isinstance(given, str) else ""
    listed = f", expected one of {', '.join(known)}" if len(known) <= most else ""
    return ValueError(f"unknown {what} {short(given)}{hint}{listed}")


def known_names(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise a ValueError for the first name that is not known."""
    known = list(known)
    for name in given:
        if name not in known:
            raise unknown(what, name, known)


# --- values of the user's function --------------------------------------------------------------


def number(what: str, value: Any) -> float:
    """Return the value as a float; None, like NaN, means a failure and becomes NaN."""
    if type(value) is float:
        return value
    if value is None:
        return math.nan
    try:
        if getattr(value, "size", 0) == 1 and hasattr(value, "item"):  # an array of any library
            value = value.item()
        if isinstance(value, str | bytes | complex):  # float() would drop the imaginary part
            raise TypeError
        return float(value)
    except OverflowError:
        raise ValueError(f"{what} is too large for a float: {str(value)[:20]}...") from None
    except (TypeError, ValueError):
        raise TypeError(f"{what} is {short(value)}, expected a number") from None


SEVERAL = "several objectives are for anyorder.optimize(f, space, directions=('max', 'min'))"


def is_several(value: Any) -> bool:
    """Return whether a value holds several numbers: a tuple, a list, a dict or an array."""
    if isinstance(value, str | bytes) or not hasattr(value, "__len__"):
        return False
    try:
        return len(value) > 1
    except TypeError:  # an array without dimensions holds one number
        return False


def value_of(what: str, value: Any) -> float:
    """Return what the user's function gave for one point, converted by `number`."""
    if type(value) is not float and is_several(value):
        raise TypeError(f"{what} is {short(value)}, expected one number: {SEVERAL}")
    return number(what, value)


class ProgramError(ValueError):
    """A mistake in the user's program, such as a wrong number of values; it is always raised."""


def numbers(
    values: Any, expected: int, *, nan: bool = False, what: str = "value"
) -> npt.NDArray[np.float64]:
    """Return the values of `expected` candidates as floats.

    A single number is accepted for one candidate, and NaN only if `nan` is set.
    """
    lone = not hasattr(values, "__len__") or getattr(values, "ndim", 1) == 0
    listed = [values] if lone or isinstance(values, str | bytes | Mapping | Set) else values
    if len(listed) != expected:
        # a tuple of arrays, or a tuple for one candidate
        several = len(listed) > 1 and (expected == 1 or all(map(is_several, listed)))
        hint = f" ({SEVERAL})" if several else ""
        raise ProgramError(
            f"{len(listed)} {what}s, expected {expected}: one for each candidate{hint}"
        )
    if isinstance(listed, np.ndarray) and listed.ndim == 1 and listed.dtype.kind in "biuf":
        result = listed.astype(np.float64)
    else:
        result = np.array([value_of(f"{what} {k}", value) for k, value in enumerate(listed)], float)
    if not nan and np.isnan(result).any():
        raise ValueError(
            f"{what} {int(np.isnan(result).argmax())} is NaN or None, expected a number"
        )
    return result


def graph(matrix: npt.ArrayLike, n: int) -> npt.NDArray[np.bool_]:
    """Return an interaction graph as an n x n array of booleans."""
    array = np.asarray(matrix)
    if array.shape != (n, n):
        raise ValueError(f"graph has shape {array.shape}, expected ({n}, {n})")
    if array.dtype.kind not in "biu" or not np.isin(array, (0, 1)).all():
        raise ValueError(f"graph has {array.dtype} values, expected only True and False (1 and 0)")
    return array.astype(np.bool_)


# --- the installation ---------------------------------------------------------------------------


def require(module: str, extra: str, purpose: str) -> Any:
    """Import an optional dependency; if it is missing, the error says which extra installs it.

    Parameters
    ----------
    module
        The module to import.
    extra
        The extra of this package that installs it.
    purpose
        What the module is needed for; begins the message ("figures require Matplotlib").
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        top = module.partition(".")[0]
        missing = isinstance(error, ModuleNotFoundError) and error.name == top
        state = "" if missing else f" ({top} does not import: {error})"
        raise ImportError(f"{purpose}: pip install 'anyorder[{extra}]'{state}", name=top) from error


def cores() -> int:
    """Return the number of cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# --- time ---------------------------------------------------------------------------------------

LONGEST_WAIT = 86_400.0  # seconds; the system calls behind a wait overflow at about 2e6


def seconds(what: str, value: object) -> float:
    """Return a time limit: a number of seconds above 0 and at most 31 years."""
    return real(what, value, 0.0, 1e9, above=True)


def wait_time(remaining: float) -> float:
    """Return how long to wait at once for an event that is due in `remaining` seconds."""
    return min(max(0.0, remaining), LONGEST_WAIT)
