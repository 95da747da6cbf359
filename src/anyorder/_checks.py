"""Checks of what users pass, each in one place: errors name the value and what was expected.

A check takes the name of an argument and its value, and returns the value as it is used:
`integer("budget", budget, 1)`. `functools.partial(integer, minimum=1)` is a check of its own, as
option tables (`Config`, `session.options`, TOML files) hold them.
"""

from __future__ import annotations

import difflib
import importlib
import math
import numbers as _numbers
import operator
import os
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from typing import Any

import numpy as np
import numpy.typing as npt

Check = Callable[[str, Any], Any]

_brief = reprlib.Repr()
_brief.maxlist = _brief.maxtuple = _brief.maxdict = 6
_brief.maxstring = _brief.maxother = _brief.maxlong = 60
_LONGEST = 300  # characters of a value in a message


def short(value: object) -> str:
    """A value for a message: one line, and not a long one."""
    text = " ".join(_brief.repr(value).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


# --- single values ------------------------------------------------------------------------------


def integer(
    what: str, value: object, minimum: int | None = None, maximum: int | None = None
) -> int:
    """The value as an int within its bounds."""
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


def real(
    what: str,
    value: object,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    above: bool = False,
) -> float:
    """The value as a finite float from `low` to `high`; with `above`, `low` itself is excluded."""
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
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{what} is {short(value)}, expected True or False")
    return bool(value)


def choice(what: str, value: object, allowed: Collection[str]) -> str:
    """One of several words."""
    if not isinstance(value, str) or value not in allowed:
        hint = did_you_mean(value, allowed) if isinstance(value, str) else ""
        listed = " or ".join(map(repr, allowed)) if len(allowed) < 3 else ", ".join(allowed)
        expected = f"expected {listed}" if len(allowed) < 3 else f"expected one of {listed}"
        raise ValueError(f"{what} is {short(value)}{hint}, {expected}")
    return value


def function(what: str, value: object) -> Callable[..., Any]:
    """Something that can be called."""
    if not callable(value):
        raise TypeError(f"{what} is {short(value)}, expected a function")
    return value


def optional(check: Check) -> Check:
    """A check that lets None pass."""
    return lambda what, value: None if value is None else check(what, value)


def entries(check: Check, least: int = 0) -> Check:
    """A check of a tuple or list, entry by entry; the result is a tuple."""

    def checked(what: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, tuple | list):
            raise TypeError(f"{what} is {short(value)}, expected a tuple")
        if len(value) < least:
            raise ValueError(f"{what} is {short(value)}, expected at least {least} entries")
        return tuple(check(f"{what}[{k}]", entry) for k, entry in enumerate(value))

    return checked


# --- names --------------------------------------------------------------------------------------


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """For an error message about a name: which of the known ones it may have meant, or nothing."""
    spelled = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), spelled, n=1, cutoff=0.5)
    return f" (did you mean {spelled[near[0]]!r}?)" if near else ""


def unknown(what: str, given: object, known: Iterable[str], *, most: int = 40) -> ValueError:
    """The error for a name that does not exist; long lists of known names are left out."""
    known = list(known)
    hint = did_you_mean(given, known) if isinstance(given, str) else ""
    listed = f", expected one of {', '.join(known)}" if len(known) <= most else ""
    return ValueError(f"unknown {what} {short(given)}{hint}{listed}")


def known_names(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise for the first name that is not known."""
    known = list(known)
    for name in given:
        if name not in known:
            raise unknown(what, name, known)


# --- values of the user's function --------------------------------------------------------------


def number(what: str, value: Any) -> float:
    """The value as a float; None, like NaN, is a failure and becomes NaN."""
    if type(value) is float:
        return value
    if value is None:
        return math.nan
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)
    except OverflowError:
        raise ValueError(f"{what} is too large for a float: {str(value)[:20]}...") from None
    except (TypeError, ValueError):
        raise TypeError(f"{what} is {short(value)}, expected a number") from None


SEVERAL = "several objectives are not supported: use a weighted sum, or constraints on all but one"


def is_several(value: Any) -> bool:
    """Whether this is more than one number: a tuple, a list, a dict, an array of any library."""
    if isinstance(value, str | bytes) or not hasattr(value, "__len__"):
        return False
    try:
        return len(value) > 1
    except TypeError:  # an array without dimensions
        return False


def value_of(what: str, value: Any) -> float:
    """What the user's function returned for one point, as `number` gives it."""
    if type(value) is not float and is_several(value):
        raise TypeError(f"{what} is {short(value)}, expected one number: {SEVERAL}")
    return number(what, value)


def numbers(values: Any, expected: int, *, nan: bool = False) -> npt.NDArray[np.float64]:
    """One number for each candidate, a lone one for one; NaN only where it is allowed."""
    lone = not hasattr(values, "__len__") or getattr(values, "ndim", 1) == 0
    listed = [values] if lone or isinstance(values, str | bytes | Mapping | Set) else values
    if len(listed) != expected:
        # a tuple of arrays, or a tuple for one candidate
        several = len(listed) > 1 and (expected == 1 or all(map(is_several, listed)))
        hint = f" ({SEVERAL})" if several else ""
        raise ValueError(f"{len(listed)} values, expected {expected}: one for each candidate{hint}")
    if isinstance(listed, np.ndarray) and listed.ndim == 1 and listed.dtype.kind in "biuf":
        result = listed.astype(np.float64)
    else:
        result = np.array([value_of(f"value {k}", value) for k, value in enumerate(listed)], float)
    if not nan and np.isnan(result).any():
        raise ValueError(
            f"value {int(np.isnan(result).argmax())} is NaN or None, expected a number"
        )
    return result


def graph(matrix: npt.ArrayLike, n: int) -> npt.NDArray[np.bool_]:
    """An interaction graph: n x n, True and False."""
    array = np.asarray(matrix)
    if array.shape != (n, n):
        raise ValueError(f"graph has shape {array.shape}, expected ({n}, {n})")
    if array.dtype.kind not in "biu" or not np.isin(array, (0, 1)).all():
        raise ValueError(f"graph has {array.dtype} values, expected only True and False (1 and 0)")
    return array.astype(np.bool_)


# --- the installation ---------------------------------------------------------------------------


def require(module: str, extra: str, purpose: str) -> Any:
    """Import an optional dependency, or say which extra installs it.

    Parameters
    ----------
    module
        What to import.
    extra
        The extra of this package that installs it.
    purpose
        What it is needed for; begins the message ("figures require Matplotlib").
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        top = module.partition(".")[0]
        missing = isinstance(error, ModuleNotFoundError) and error.name == top
        state = "" if missing else f" ({top} does not import: {error})"
        raise ImportError(f"{purpose}: pip install 'anyorder[{extra}]'{state}", name=top) from error


def cores() -> int:
    """How many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# --- time ---------------------------------------------------------------------------------------

LONGEST_WAIT = 86_400.0  # seconds; the system calls behind a wait overflow at about 2e6


def seconds(what: str, value: object) -> float:
    """A time limit: a number of seconds above 0, at most 31 years."""
    return real(what, value, 0.0, 1e9, above=True)


def wait_time(remaining: float) -> float:
    """How long to wait at a time for something that is due in `remaining` seconds."""
    return min(max(0.0, remaining), LONGEST_WAIT)
