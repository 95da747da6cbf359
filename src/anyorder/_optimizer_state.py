"""The format of `Optimizer.state_dict`: a header in JSON, and arrays by part."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import choice, flag, integer
from anyorder._version import __version__
from anyorder.archive.candidate import Candidate
from anyorder.archive.objectives import Objectives
from anyorder.errors import DAMAGE
from anyorder.space import Space
from anyorder.strategies.base import Strategy
from anyorder.strategies.create import Algorithm, create, recreate

if TYPE_CHECKING:
    from anyorder.optimizer import Optimizer

FORMAT, VERSION = "anyorder-optimizer", 3
_MAY_DIFFER = ("engine", "budget", "stop_collapsed")  # settings that a search may continue without


@contextlib.contextmanager
def refusing_damage(what: str) -> Iterator[None]:
    """Turn whatever damaged contents lead to into a ValueError that says so."""
    try:
        yield
    except KeyError as error:
        raise ValueError(f"the state is truncated: it has no {error}") from error
    except MemoryError as error:
        raise ValueError(f"{what} is damaged, or needs more memory than there is") from error
    except DAMAGE as error:
        raise ValueError(f"{what} is damaged: {error}") from error


def add_prefix(prefix: str, arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a part under names of their own."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def remove_prefix(prefix: str, state: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a part; `add_prefix` undone."""
    start = f"{prefix}."
    return {name[len(start) :]: np.asarray(state[name]) for name in state if name.startswith(start)}


def points_in(state: Mapping[str, Any], name: str, space: Space) -> npt.NDArray[np.int32]:
    """Return an array of points, if they are of the space."""
    points = np.asarray(state[name])
    if points.dtype.kind != "i" or points.ndim != 2 or points.shape[1] != len(space):
        raise ValueError(f"{name!r} is damaged or of another space")
    if ((points < 0) | (points >= space.cardinalities)).any():
        raise ValueError(f"{name!r} has points outside the space")
    return points.astype(np.int32)


def read_header(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the header, if it is one of this format."""
    try:
        header = json.loads(str(state["header"]))
        form, version = header["format"], header["version"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            "this is not the state of an anyorder.Optimizer, or it is truncated"
        ) from error
    if form != FORMAT:
        raise ValueError(f"the state is a {form!r}, expected {FORMAT!r}")
    if version != VERSION:
        raise ValueError(
            f"the state has version {version!r} (anyorder {header.get('library')}); "
            f"this is anyorder {__version__}, which reads version {VERSION}"
        )
    return dict(header)


def header_of(optimizer: Optimizer) -> dict[str, Any]:
    """Return what a state says about itself, without the space."""
    several = optimizer.objectives
    return {
        **({} if several is None else {"objectives": several.to_json()}),
        "format": FORMAT,
        "version": VERSION,
        "library": __version__,
        "algorithm": optimizer.strategy.name,
        "settings": optimizer.strategy.settings(),
        "direction": optimizer.direction,
        "deterministic": optimizer.archive.deterministic,
        "seed": optimizer.seed,
    }


def arrays_of(optimizer: Optimizer) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a state."""
    space = optimizer.space
    waiting = [candidate for queue in optimizer._open.values() for candidate in queue]
    tickets = [(c.ticket, c.generation, c.known) for c in waiting]
    return {
        "open_points": matrix([c.codes for c in waiting], space),
        "open_tickets": np.array(tickets, np.int64).reshape(-1, 3),
        **optimizer._search_state(),
        **add_prefix("archive", optimizer.archive.state()),
    }


def matrix(points: Sequence[npt.NDArray[np.int32]], space: Space) -> npt.NDArray[np.int32]:
    """Return points, or none, as a matrix."""
    return np.array(points, np.int32).reshape(-1, len(space))


def rebuild(
    kind: type[Optimizer],
    space: Space,
    header: Mapping[str, Any],
    state: Mapping[str, Any],
    algorithm: Algorithm | None,
    constraint: Callable[[Any], Any] | None,
) -> Optimizer:
    """Return the optimiser of a header and arrays."""
    if constraint is None and any(name.startswith("feasibility.") for name in state):
        raise ValueError("the state is of an optimiser with a constraint: pass constraint=")
    with refusing_damage("the state's header"):
        seed = integer("seed", header["seed"], 0, 2**64 - 1)
        objectives = Objectives.from_json(header.get("objectives"))
        if algorithm is None:
            strategy = recreate(header["algorithm"], header["settings"], space, seed)
        else:
            strategy = create(algorithm, space, seed, several=objectives is not None)
            _check_settings(strategy, header["settings"])
        direction = choice("direction", header["direction"], ("maximize", "minimize"))
        deterministic = flag("deterministic", header["deterministic"])
        optimizer = kind._of(
            space, seed, strategy, direction, deterministic, constraint, objectives
        )
    with refusing_damage("the state"):
        optimizer.archive.restore(remove_prefix("archive", state))
        optimizer._restore_search(state)
        points = points_in(state, "open_points", space)
        tickets = np.asarray(state["open_tickets"])
        if (
            tickets.shape != (len(points), 3)
            or tickets.dtype != np.int64
            or not np.isin(tickets[:, 2], (0, 1)).all()
        ):
            raise ValueError("open candidates are damaged")
        keys = optimizer.archive.packing.pack(points)
        for row, key, entry in zip(points, keys, tickets.tolist(), strict=True):
            ticket, generation, known = entry
            candidate = Candidate(ticket, row, key, generation, known=bool(known))
            optimizer._open.setdefault(key, []).append(candidate)
        optimizer._stop_waiting(list(optimizer._open))  # for others, who are not part of the state
    return optimizer


def _check_settings(strategy: Strategy, settings: Mapping[str, Any]) -> None:
    """Refuse a strategy whose settings are not those of a state."""
    for name, value in json.loads(json.dumps(strategy.settings())).items():
        if name in settings and name not in _MAY_DIFFER and value != settings[name]:
            raise ValueError(
                f"the state is of {strategy.name} with {name}={settings[name]!r}, expected that "
                f"of algorithm=, {value!r}"
            )


def unpickle(kind: type[Optimizer], space: Space, header: dict[str, Any], *parts: Any) -> Optimizer:
    """Return the optimiser of a pickle, on another engine if its own cannot run here."""
    arrays, strategy, constraint = parts
    try:
        return rebuild(kind, space, header, arrays, strategy, constraint)
    except (ImportError, RuntimeError):
        settings = {key: x for key, x in header["settings"].items() if key != "engine"}
        header = {**header, "settings": settings}
        return rebuild(kind, space, header, arrays, strategy, constraint)
