"""`nevergrad:NAME`, for every name in nevergrad's registry.

Variables are `TransitionChoice`s, unordered ones with `ordered=False`: their values are explicit,
while those of a `Choice` are sampled, which makes a deterministic function random. Each optimiser
receives the budget and is driven by ask and tell, one point at a time. Some use no random numbers
(Cobyla): all their runs are equal.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np

from anyorder.bench.algorithms.library import Library
from anyorder.bench.algorithms.meter import Codes, Meter
from anyorder.bench.algorithms.naming import Settings, check_settings, peer, plain
from anyorder.space import Space

_PATIENCE = 50  # how often to wait 0.02 s for a thread to end


class Nevergrad(Library):
    """Optimisers of nevergrad's registry; they take no settings."""

    package = "nevergrad"

    def names(self) -> list[str]:
        """Return all names of the registry; the import takes seconds."""
        return sorted(_registry())

    def check(self, name: str, settings: Settings, space: Space | None) -> None:
        """Raise for any setting: the registry has an optimiser for each combination of settings.

        Some optimisers require a package that nevergrad itself does not, and report it only when
        they search.
        """
        check_settings(settings, [])
        missing = _missing_package(name)
        if missing is not None:
            raise ImportError(f"nevergrad:{name} requires {missing}: pip install {missing}")

    def search(self, name: str, settings: Settings, meter: Meter, seed: int) -> Settings:
        """Spend the meter's budget."""
        variables = _Variables(meter)
        variables.parameter.random_state = np.random.RandomState(seed)
        before = set(threading.enumerate())
        optimizer = _registry()[name](variables.parameter, budget=meter.budget, num_workers=1)
        try:
            while meter.left:
                candidate = optimizer.ask()
                optimizer.tell(candidate, -meter.value(variables.point(candidate.value)))
        finally:
            _stop(set(threading.enumerate()) - before)
        # a class, or one with settings of its own
        maker = _registry()[name]
        if isinstance(maker, type):
            return {"optimizer": maker.__name__}
        return {"optimizer": type(maker).__name__, **plain(maker.config())}


class _Variables:
    """The variables of a meter as a parameter of nevergrad.

    Equal variables are one choice with repetitions, as in nevergrad's documentation; variables of
    several kinds are a tuple of such choices.
    """

    def __init__(self, meter: Meter) -> None:
        ng = peer("nevergrad")
        kinds: dict[tuple[int, bool], list[int]] = {}
        for j, kind in enumerate(zip(meter.cardinalities, meter.ordered, strict=True)):
            kinds.setdefault(kind, []).append(j)
        self._columns = list(kinds.values())
        choices = [
            ng.p.TransitionChoice(range(values), repetitions=len(columns), ordered=ordered)
            for (values, ordered), columns in kinds.items()
        ]
        self.parameter = choices[0] if len(choices) == 1 else ng.p.Tuple(*choices)

    def point(self, value: Any) -> Codes:
        parts = [value] if len(self._columns) == 1 else value
        codes = np.empty(sum(map(len, self._columns)), dtype=np.int32)
        for columns, part in zip(self._columns, parts, strict=True):
            codes[columns] = part
        return codes


@functools.cache
def _missing_package(name: str) -> str | None:
    """Return the package that an optimiser requires if it is not installed, else None."""
    parameter = peer("nevergrad").p.TransitionChoice(range(2), repetitions=4)
    before = set(threading.enumerate())
    try:
        optimizer = _registry()[name](parameter, budget=100, num_workers=1)
        for _ in range(2):  # the first point may be nevergrad's own
            optimizer.tell(optimizer.ask(), 0.0)
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, ImportError):
            cause = cause.__cause__ or cause.__context__
        # other errors are reported better by a run
        return None if cause is None else cause.name or str(cause)
    finally:
        _stop(set(threading.enumerate()) - before)
    return None


def _registry() -> dict[str, Any]:
    # a name of version 1.0.12 ends in a space
    registry = peer("nevergrad").optimizers.registry
    return {name.strip(): optimizer for name, optimizer in registry.items()}


def _stop(threads: set[threading.Thread]) -> None:
    """End the threads in which nevergrad runs libraries that have no ask and tell.

    These threads wait for an answer, and the process would wait for them at its end. A library may
    take the first notice for a failed evaluation, and ask again.
    """
    for thread in threads:
        for _ in range(_PATIENCE):
            if not hasattr(thread, "stop") or not thread.is_alive():
                break
            thread.stop()
            thread.join(0.02)
