"""The options of a run, each defined once: its default, its check, and where it may be set.

`Evaluation` says how to evaluate, and `Stopping` when to stop. The checks of `maximize`, the keys
of TOML files, the settings that a study stores and the options of the command line are derived from
their fields. `maximize` documents what each option means.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from anyorder._internal.checks import (
    Check,
    choice,
    count,
    flag,
    function,
    integer,
    optional,
    seconds,
    short,
)
from anyorder.errors import ON_FAILURE
from anyorder.run.stopping import (
    Patience,
    Rule,
    Seconds,
    Target,
    check_rules,
    check_target,
    time_limit,
)

EXECUTORS = ("threads", "ray")  # executors that are given by name
_EXECUTORS = "expected an Executor, a Client, 'threads' or 'ray'"


def _executor(what: str, value: Any) -> Any:
    if value is None or callable(getattr(value, "submit", None)):
        return value
    if not isinstance(value, str):
        raise TypeError(f"{what} is {short(value)}, which has no `submit`: {_EXECUTORS}")
    return choice(what, value, EXECUTORS)


def _option(default: Any, check: Check, *, kept: bool = False, file: bool = False) -> Any:
    """Return a dataclass field with its check.

    Parameters
    ----------
    default, check
        The default, and the check of a value.
    kept
        Whether a study stores the option, because a resumed run must have the same value.
    file
        Whether the TOML file of `anyorder run` may set it.
    """
    metadata = {"check": check, "kept": kept, "file": file}
    return dataclasses.field(default=default, metadata=metadata)


class _Checked:
    """A dataclass that checks every field when an object is made."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = field.metadata["check"](field.name, getattr(self, field.name))
            object.__setattr__(self, field.name, value)


@dataclass(frozen=True, kw_only=True)
class Evaluation(_Checked):
    """How to evaluate; `maximize` documents the options."""

    vectorized: bool = _option(False, flag)
    batch: int | None = _option(None, optional(partial(integer, minimum=1)), file=True)
    executor: Any = _option(None, _executor)  # noqa: RUF009  # a field
    workers: int | None = _option(None, optional(partial(integer, minimum=1)), file=True)
    asynchronous: bool = _option(False, flag, kept=True, file=True)
    timeout: float | None = _option(None, optional(seconds), file=True)
    retries: int = _option(0, partial(integer, minimum=0), file=True)
    on_failure: str = _option("raise", partial(choice, allowed=ON_FAILURE), kept=True, file=True)
    constraint: Callable[[Any], Any] | None = _option(None, optional(function))  # noqa: RUF009
    cache: bool = _option(True, flag, kept=True, file=True)
    deterministic: bool = _option(True, flag, kept=True, file=True)
    confirm: int | None = _option(None, optional(partial(integer, minimum=0)), kept=True, file=True)
    verify: bool = _option(True, flag, file=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        elsewhere = (
            self.executor is not None or self.workers is not None or self.timeout is not None
        )
        if self.vectorized and elsewhere:
            raise ValueError(
                "vectorized=True evaluates a batch in one call in this process, which excludes "
                "workers, executor and timeout"
            )
        if self.asynchronous and self.batch is not None:
            raise ValueError(
                f"batch is {self.batch} with asynchronous=True, which evaluates one by one"
            )
        if self.confirm and self.deterministic:
            raise ValueError(f"confirm is {self.confirm}, which requires deterministic=False")
        if self.asynchronous and not elsewhere:
            raise ValueError("asynchronous=True requires workers= or executor=")

    @property
    def in_processes(self) -> bool:
        """Return whether this library starts processes in which to evaluate."""
        return self.executor is None and (self.workers is not None or self.timeout is not None)


@dataclass(frozen=True, kw_only=True)
class Stopping(_Checked):
    """When to stop; `maximize` documents the options."""

    budget: int | None = _option(1, optional(count), file=True)
    target: float | None = _option(None, optional(check_target), file=True)
    max_seconds: float | None = _option(None, optional(seconds), file=True)
    patience: int | None = _option(None, optional(count), file=True)
    stop: Any = _option((), check_rules)  # noqa: RUF009  # a field

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.budget is None and not (self.max_seconds or self.patience or self.stop):
            raise TypeError(
                "budget is missing, expected how many evaluations to spend; or max_seconds="
            )

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that stop the run, other than its budget."""
        rules: list[Rule] = []
        if self.target is not None:
            rules.append(Target(self.target))
        if self.patience is not None:
            rules.append(Patience(self.patience))
        if self.max_seconds is not None:
            rules.append(Seconds(self.max_seconds))
        return (*rules, *self.stop)

    @cached_property
    def time_limit(self) -> float | None:
        """The seconds after which the run is stopped; None for no time limit."""
        return time_limit(self.rules)


def option_names(kind: type[Any]) -> tuple[str, ...]:
    """Return the names of the options of `Evaluation` or `Stopping`."""
    return tuple(field.name for field in dataclasses.fields(kind))


def select(kind: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are options of `Evaluation` or `Stopping`."""
    return {name: given[name] for name in option_names(kind) if name in given}


def file_checks() -> dict[str, Check]:
    """Return the options that a TOML file may set, with their checks."""
    fields = (*dataclasses.fields(Evaluation), *dataclasses.fields(Stopping))
    return {field.name: field.metadata["check"] for field in fields if field.metadata["file"]}


def study_options(evaluation: Evaluation) -> dict[str, Any]:
    """Return the options that a study stores; of a constraint only whether there is one."""
    fields = [field.name for field in dataclasses.fields(Evaluation) if field.metadata["kept"]]
    values = {name: getattr(evaluation, name) for name in fields}
    return {**values, "constraint": evaluation.constraint is not None}
