"""The format of `Optimizer.state_dict`: a header in JSON, and arrays by part."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from anyorder._checks import choice, flag, integer
from anyorder._version import __version__
from anyorder.candidate import Candidate
from anyorder.errors import DAMAGE
from anyorder.space import Space
from anyorder.strategies.base import Strategy
from anyorder.strategies.create import recreate, settings_of
from anyorder.strategies.policy.engines import why_not
from anyorder.strategies.policy.search import PolicySearch

if TYPE_CHECKING:
    from anyorder.optimizer import Optimizer

FORMAT, VERSION = "anyorder-optimizer", 2


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


def prefixed(prefix: str, arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a part under names of their own."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def without_prefix(prefix: str, state: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a part; `prefixed` undone."""
    start = f"{prefix}."
    return {name[len(start) :]: np.asarray(state[name]) for name in state if name.startswith(start)}


def points_in(state: Mapping[str, Any], name: str, space: Space) -> npt.NDArray[np.int32]:
    """An array of points, if they are of the space."""
    points = np.asarray(state[name])
    if points.dtype.kind != "i" or points.ndim != 2 or points.shape[1] != len(space):
        raise ValueError(f"{name!r} is damaged or of another space")
    if ((points < 0) | (points >= space.cardinalities)).any():
        raise ValueError(f"{name!r} has points outside the space")
    return points.astype(np.int32)


def read_header(state: Mapping[str, Any]) -> dict[str, Any]:
    """The header, if it is one of this format."""
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
    """What a state says about itself, without the space."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "library": __version__,
        "algorithm": optimizer.strategy.name,
        "settings": settings_of(optimizer.strategy),
        "engine": optimizer.engine,
        "direction": optimizer.direction,
        "deterministic": optimizer.archive.deterministic,
        "seed": optimizer.seed,
    }


def arrays_of(optimizer: Optimizer) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a state."""
    strategy, space = optimizer.strategy, optimizer.space
    graph = strategy.graph if isinstance(strategy, PolicySearch) else None
    waiting = [candidate for queue in optimizer._open.values() for candidate in queue]
    tickets = [(c.ticket, c.generation) for c in waiting]
    return {
        "graph": np.zeros((0, 0), np.bool_) if graph is None else graph.copy(),
        "open_points": matrix([c.codes for c in waiting], space),
        "open_tickets": np.array(tickets, np.int64).reshape(-1, 2),
        **optimizer._search_state(),
        **prefixed("archive", optimizer.archive.state()),
    }


def matrix(points: Sequence[npt.NDArray[np.int32]], space: Space) -> npt.NDArray[np.int32]:
    """Points, or none, as a matrix."""
    return np.array(points, np.int32).reshape(-1, len(space))


def rebuilt(
    kind: type[Optimizer],
    space: Space,
    header: Mapping[str, Any],
    state: Mapping[str, Any],
    engine: str | None,
    algorithm: Strategy | None,
    constraint: Callable[[Any], Any] | None,
) -> Optimizer:
    """The optimiser of a header and arrays."""
    if constraint is None and any(name.startswith("feasibility.") for name in state):
        raise ValueError("the state is of an optimiser with a constraint: pass constraint=")
    with refusing_damage("the state's header"):
        seed = integer("seed", header["seed"], 0, 2**64 - 1)
        graph = np.asarray(state["graph"])
        strategy = algorithm or recreate(
            header["algorithm"], header["settings"], space, seed,
            engine=engine or header["engine"] or "auto", graph=graph if graph.size else None,
        )  # fmt: skip
        direction = choice("direction", header["direction"], ("maximize", "minimize"))
        deterministic = flag("deterministic", header["deterministic"])
        optimizer = kind._of(space, seed, strategy, direction, deterministic, constraint)
    with refusing_damage("the state"):
        optimizer.archive.restore(without_prefix("archive", state))
        optimizer._restore_search(state)
        points = points_in(state, "open_points", space)
        tickets = np.asarray(state["open_tickets"])
        if tickets.shape != (len(points), 2) or tickets.dtype != np.int64:
            raise ValueError("open candidates are damaged")
        keys = optimizer.archive.packing.pack(points)
        for row, key, entry in zip(points, keys, tickets.tolist(), strict=True):
            ticket, generation = entry
            optimizer._open.setdefault(key, []).append(Candidate(ticket, row, key, generation))
    return optimizer


def unpickled(
    kind: type[Optimizer], space: Space, header: dict[str, Any], *parts: Any
) -> Optimizer:
    """The optimiser of a pickle, on another engine if its own cannot run here."""
    arrays, strategy, constraint = parts
    engine = header["engine"]
    if engine is not None and why_not(engine) is not None:
        engine = "auto"
    return rebuilt(kind, space, header, arrays, engine, strategy, constraint)
