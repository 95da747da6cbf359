"""The format of `Optimizer.state_dict`: a header in JSON, and arrays by part."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import choice, flag, integer
from anyorder._version import __version__
from anyorder.archive.candidate import Candidate, Queues
from anyorder.archive.objectives import Objectives
from anyorder.errors import DAMAGE
from anyorder.proposer import Proposer, add_prefix, matrix, points_in, remove_prefix
from anyorder.space import Space
from anyorder.strategies.base import Strategy
from anyorder.strategies.create import Algorithm, create, recreate

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


def header_of(proposer: Proposer) -> dict[str, Any]:
    """Return what a state says about itself, without the space."""
    archive, several = proposer.archive, proposer.archive.objectives
    return {
        **({} if several is None else {"objectives": several.to_json()}),
        "format": FORMAT,
        "version": VERSION,
        "library": __version__,
        "algorithm": proposer.strategy.name,
        "settings": proposer.strategy.settings(),
        "direction": archive.direction,
        "deterministic": archive.deterministic,
        "seed": proposer.seed,
    }


def arrays_of(proposer: Proposer, asked: Queues) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a state; `asked` are the candidates that were asked and not told."""
    waiting = [candidate for queue in asked.values() for candidate in queue]
    tickets = [(c.ticket, c.generation, c.known) for c in waiting]
    return {
        "open_points": matrix([c.codes for c in waiting], proposer.space),
        "open_tickets": np.array(tickets, np.int64).reshape(-1, 3),
        **proposer.state(),
        **add_prefix("archive", proposer.archive.state()),
    }


def rebuild(
    space: Space,
    header: Mapping[str, Any],
    state: Mapping[str, Any],
    algorithm: Algorithm | None,
    constraint: Callable[[Any], Any] | None,
) -> tuple[Proposer, Queues]:
    """Return the proposer of a header and arrays, and its candidates asked and not told."""
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
        proposer = Proposer(space, seed, strategy, direction, deterministic, constraint, objectives)
    with refusing_damage("the state"):
        proposer.archive.restore(remove_prefix("archive", state))
        proposer.restore(state)
        points = points_in(state, "open_points", space)
        tickets = np.asarray(state["open_tickets"])
        if (
            tickets.shape != (len(points), 3)
            or tickets.dtype != np.int64
            or not np.isin(tickets[:, 2], (0, 1)).all()
        ):
            raise ValueError("open candidates are damaged")
        asked: Queues = {}
        keys = proposer.archive.packing.pack(points)
        for row, key, entry in zip(points, keys, tickets.tolist(), strict=True):
            ticket, generation, known = entry
            candidate = Candidate(ticket, row, key, generation, known=bool(known))
            asked.setdefault(key, []).append(candidate)
    return proposer, asked


def _check_settings(strategy: Strategy, settings: Mapping[str, Any]) -> None:
    """Refuse a strategy whose settings are not those of a state."""
    for name, value in json.loads(json.dumps(strategy.settings())).items():
        if name in settings and name not in _MAY_DIFFER and value != settings[name]:
            raise ValueError(
                f"the state is of {strategy.name} with {name}={settings[name]!r}, expected that "
                f"of algorithm=, {value!r}"
            )
