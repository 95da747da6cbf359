"""Rules that stop a run, for `maximize(..., stop=[...])`.

A rule is called with the `Progress` of the run after every evaluation, and about once a second
while no evaluation ends. It returns None, or a reason, which ends the run and becomes its
`stop_reason`. Any function can be a rule:

    def enough(progress):
        return "enough failures" if progress.failures >= 10 else None

    ao.maximize(f, space, 1_000, stop=[enough, ao.stopping.Patience(200)])

Evaluations that are running when a rule stops the run are abandoned. A rule that has a state is an
object with `__call__`; `solve_many` gives each of its runs a copy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from anyorder._internal.checks import count, number, short
from anyorder._internal.checks import seconds as check_seconds


class Progress(Protocol):
    """The progress of a run.

    Attributes
    ----------
    direction
        "maximize" or "minimize".
    evaluations, failures
        The number of evaluations that have ended, and of those that gave no value. Evaluations that
        a study already had are included.
    best_value
        The best value so far, or for a noisy function the best mean; None before there is one. With
        several objectives it is the hypervolume if there is a reference point, else None.
    unimproved
        The number of evaluations that the strategy has learned since the best value, or the front,
        was last improved.
    seconds
        The seconds since the run began, or since it was resumed.
    converged
        Whether the strategy has settled on one point and does not expect to leave it.
    """

    @property
    def direction(self) -> str: ...  # noqa: D102  # the class says what each is
    @property
    def evaluations(self) -> int: ...  # noqa: D102
    @property
    def failures(self) -> int: ...  # noqa: D102
    @property
    def best_value(self) -> float | None: ...  # noqa: D102
    @property
    def unimproved(self) -> int: ...  # noqa: D102
    @property
    def seconds(self) -> float: ...  # noqa: D102
    @property
    def converged(self) -> bool: ...  # noqa: D102


__all__ = ["Converged", "Patience", "Progress", "Rule", "Seconds", "Target"]

Rule = Callable[[Progress], str | None]


class Target:
    """A rule that stops as soon as a value is at least as good as `value`: "target"."""

    def __init__(self, value: float) -> None:
        self.value = check_target("target", value)

    def __call__(self, progress: Progress) -> str | None:
        """Return "target" once the best value is good enough."""
        best = progress.best_value
        if best is None:
            return None
        reached = best >= self.value if progress.direction == "maximize" else best <= self.value
        return "target" if reached else None


class Patience:
    """A rule that stops after so many evaluations without improvement: "patience"."""

    def __init__(self, evaluations: int) -> None:
        self.evaluations = count("patience", evaluations)

    def __call__(self, progress: Progress) -> str | None:
        """Return "patience" once there was no improvement for long enough."""
        return "patience" if progress.unimproved >= self.evaluations else None


class Seconds:
    """A rule that stops after some time: "time"."""

    def __init__(self, seconds: float) -> None:
        self.seconds = check_seconds("seconds", seconds)

    def __call__(self, progress: Progress) -> str | None:
        """Return "time" once the time is over."""
        return "time" if progress.seconds >= self.seconds else None


class Converged:
    """A rule that stops once the strategy has settled on one point: "converged".

    It does not stop a strategy that then restarts, as the policy does by default.
    """

    def __call__(self, progress: Progress) -> str | None:
        """Return "converged" if the strategy has converged."""
        return "converged" if progress.converged else None


def ask_rules(rules: Sequence[Rule], progress: Progress) -> str | None:
    """Return the reason of the first rule that stops the run, or None."""
    for rule in rules:
        reason = rule(progress)
        if reason is None:
            continue
        if not isinstance(reason, str) or not reason:
            raise TypeError(
                f"stopping rule {short(rule)} returned {reason!r}, expected a reason as text, or "
                "None to go on"
            )
        return reason
    return None


def time_limit(rules: Sequence[Rule]) -> float | None:
    """Return the shortest time of any `Seconds` among the rules; None if there is none."""
    return min((rule.seconds for rule in rules if isinstance(rule, Seconds)), default=None)


def check_rules(what: str, value: Any) -> tuple[Rule, ...]:
    """Return the rules in a list, or a single rule, as a tuple."""
    listed = value if isinstance(value, list | tuple) else () if value is None else (value,)
    for k, rule in enumerate(listed):
        name = f"{what}[{k}]" if isinstance(value, list | tuple) else what
        if not callable(rule) or isinstance(rule, type):
            raise TypeError(
                f"{name} is {short(rule)}, expected a rule, such as anyorder.stopping.Seconds(60), "
                "or a function of the run's progress"
            )
    return tuple(listed)


def check_target(what: str, value: Any) -> float:
    """Return the value as a number, which may be infinite."""
    target = number(what, value)
    if math.isnan(target):
        raise ValueError(f"{what} is {value!r}, expected a number")
    return target
