"""Ask and tell: the only stateful class of the search."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder._checks import graph as checked_graph
from anyorder._checks import integer, numbers
from anyorder._version import __version__
from anyorder.space import Space
from anyorder.strategies.policy.advantage import advantages
from anyorder.strategies.policy.candidates import Candidate, Codes, Waiting
from anyorder.strategies.policy.config import Config, resolve
from anyorder.strategies.policy.engines import Batch, Draw, create, make_model
from anyorder.strategies.policy.orders import order_keys
from anyorder.strategies.policy.rng import ORDER_G

FORMAT, VERSION = "anyorder-optimizer", 1


class Optimizer:
    """Order-invariant RL-EDA as ask and tell.

    `ask` draws candidates from the policy; `tell` takes their values, any number at a time and in
    any order. Whenever `config.population` answers are in, the policy trains on them. Each
    candidate keeps the distributions it was drawn from, so answers that come late are weighed
    rightly. The same calls with the same seed give the same candidates, with any number of threads.
    Not to be used from several threads at once.

    Parameters
    ----------
    space
        Where to search.
    seed
        An integer from 0 to 2**64 - 1; None draws one (see `.seed`).
    config
        A preset ("default", "text", "authors") or a `Config`.
    engine
        "cuda", "cpu" or "reference"; "auto" takes the fastest that can run here for one run of
        this size, and logs why (logger "anyorder", INFO).
    direction
        "maximize" or "minimize".
    graph
        An n x n boolean matrix, True where variable i may depend on j, if that is known.
    """

    def __init__(
        self,
        space: Space,
        seed: int | None = None,
        config: Config | str = "default",
        engine: str = "auto",
        *,
        direction: str = "maximize",
        graph: npt.ArrayLike | None = None,
    ) -> None:
        if not isinstance(space, Space):
            raise TypeError(f"space must be a Space, got {space!r}")
        if direction not in ("maximize", "minimize"):
            raise ValueError(f"direction must be 'maximize' or 'minimize', got {direction!r}")
        self.space = space
        self.seed = secrets.randbits(32) if seed is None else integer("seed", seed, 0, 2**64 - 1)
        self.config = resolve(config)
        self.direction = direction
        known = None if graph is None else checked_graph(graph, len(space))
        layout = make_model(space.cardinalities, space.ordered, self.config, known)
        self._engine = create(engine, layout)
        self._layout = layout
        self._sign = 1.0 if direction == "maximize" else -1.0
        self._policy = self._engine.fresh([self.seed], [0])

        self._generation = 0  # trainings so far
        self._age = 0  # trainings of this policy, since it was started afresh
        self._drawn = 0  # candidates drawn from this generation's policy
        self._asked = 0  # candidates handed out
        self._told = 0  # values taken
        self._collapsed = 0  # generations in a row that the population has been nearly one point
        self._restarts: list[int] = []
        self._diversity = 1.0
        self._suggested: list[Codes] = []
        self._waiting = Waiting()
        self._best: Codes | None = None
        self._best_value = -np.inf
        self._last_probs: npt.NDArray[np.floating] | None = None
        self._stays_collapsed = False  # whoever drives stops then, and wants the policy as it is

    # --- what can be seen -----------------------------------------------------------------------

    @property
    def engine(self) -> str:
        """The engine in use."""
        return self._engine.name

    @property
    def best(self) -> Any:
        """The best candidate told so far, the first of equals; None before any."""
        return None if self._best is None else self.space.one(self._best)

    @property
    def best_value(self) -> float:
        """Its value; the worst infinity before any."""
        return self._sign * self._best_value

    @property
    def told(self) -> int:
        """How many values have been told."""
        return self._told

    @property
    def generation(self) -> int:
        """How often the policy has trained."""
        return self._generation

    @property
    def restarts(self) -> tuple[int, ...]:
        """After how many told values the policy was started afresh, each time."""
        return tuple(self._restarts)

    @property
    def diversity(self) -> float:
        """Share of the last generation's values that differ from its best candidate's."""
        return self._diversity

    @property
    def entropy(self) -> float:
        """How undecided the policy is, from 1 (all values alike) to 0 (one point).

        The mean entropy of the distributions that the last candidates were drawn from.
        """
        most = float(np.log(self.space.cardinalities).sum())
        if self._last_probs is None or most == 0:
            return 1.0
        p = self._last_probs.astype(np.float64)
        return float(-(p * np.log(np.maximum(p, 1e-300))).sum() / (len(p) * most))

    def influence(self, points: int = 10) -> npt.NDArray[np.float64]:
        """How much the distribution of variable i moves when variable j changes, an n x n array.

        Entry [i, j] is a mean over `points` candidates of the policy: the total variation, 0 to 1,
        between i's distributions before and after j takes another value, the others keeping theirs.
        j is drawn first, so that all may see it; in a fixed order it keeps its place. It is 0 where
        i = j, where i never sees j, and where either has one value only. Changes nothing.
        """
        count, layout = integer("points", points, 1), self._layout
        (codes,), _ = self._engine.sample(
            self._policy, Draw([self.seed], [self._generation], [0], [0.0], count)
        )
        rows = range(count)
        keys = [order_keys(layout, self.seed, ORDER_G, self._generation, row) for row in rows]
        ranks = 1 + np.argsort(np.argsort(keys, axis=1, kind="stable"), axis=1).astype(np.uint32)
        free = np.flatnonzero(layout.cards > 1)
        moves = np.zeros((layout.n, layout.n))
        for some in np.array_split(free, -(-len(free) // 16)) if len(free) else ():
            # axes: which variable changes, before and after, candidate, variable
            points_of = np.tile(codes, (len(some), 2, 1, 1))
            orders = np.tile(ranks, (len(some), 2, 1, 1))
            for k, j in enumerate(some):
                step = 1 + np.arange(count) % (layout.cards[j] - 1)  # all other values in turn
                points_of[k, 1, :, j] = (codes[:, j] + step) % layout.cards[j]
                if self.config.generation_order != "fixed":
                    orders[k, :, :, j] = 0
            probs = self._engine.conditionals(
                self._policy, points_of.reshape(1, -1, layout.n), orders.reshape(1, -1, layout.n)
            ).reshape(len(some), 2, count, -1)
            distance = np.abs(np.diff(probs.astype(np.float64), axis=1)).mean(axis=(1, 2)) / 2
            moves[:, some] = np.add.reduceat(distance, layout.value_start[:-1], axis=1).T
        if layout.graph is not None:
            moves *= layout.graph
        np.fill_diagonal(moves, 0.0)
        return moves

    # --- ask and tell ---------------------------------------------------------------------------

    def ask(self, n: int | None = None) -> Any:
        """Candidates to evaluate: a generation, or any number `n`.

        A list of dicts for a named space, else an integer matrix with a row per candidate. Asking
        again before telling draws more from the same policy.
        """
        return self.space.decode(
            self._draw(self.config.population if n is None else integer("n", n, 1))
        )

    def _draw(self, count: int) -> Codes:
        """`ask`, as codes."""
        first = self._suggested[:count]
        codes = np.empty((count, len(self.space)), np.int32)
        probs = np.empty((count, self._layout.values), self._engine.dtype)
        if first:
            rows = range(self._drawn, self._drawn + len(first))
            keys = [
                order_keys(self._layout, self.seed, ORDER_G, self._generation, row) for row in rows
            ]
            codes[: len(first)] = first
            probs[: len(first)] = self._engine.conditionals(
                self._policy, np.stack(first)[None], np.stack(keys)[None]
            )[0]
        if count > len(first):
            config = self.config
            draw = Draw(
                seeds=[self.seed],
                generations=[self._generation],
                first=[self._drawn + len(first)],
                drop=[config.drop_generation * config.drop_decay**self._age],
                count=count - len(first),
            )
            drawn, behaviour = self._engine.sample(self._policy, draw)
            codes[len(first) :], probs[len(first) :] = drawn[0], behaviour[0]
        for k in range(count):
            self._waiting.add(
                Candidate(self._asked + k, self._generation, self._drawn + k, codes[k], probs[k])
            )
        del self._suggested[:count]
        self._last_probs = probs
        self._drawn += count
        self._asked += count
        return codes

    def _undraw(self, count: int) -> None:
        """Take back the last draws, none of which has been told: they will be drawn again."""
        self._drawn -= count
        self._asked -= count
        self._waiting.forget(self._asked)

    def _redraw(self, codes: Codes) -> None:
        """Put other points in the place of the last ones drawn, as if they had been suggested."""
        self._undraw(len(codes))
        self._suggested[:0] = list(codes)
        self._draw(len(codes))

    def suggest(self, candidate: Any) -> None:
        """Put a point of your own into what `ask` gives next, ahead of what the policy draws.

        It is evaluated and trained on like any other; its behaviour distribution is what the policy
        gives each of its values.
        """
        codes = self._encode(candidate)
        if len(codes) != 1:
            raise ValueError(f"suggest takes one candidate, got {len(codes)}")
        self._suggested.append(codes[0])

    def tell(self, candidates: Any, values: Any, *, on_failure: str = "raise") -> None:
        """Report values: of any candidates asked, in any order, or of points never asked.

        Points that were never asked count for `best` only. One candidate and one number will do as
        well as a batch. Infinities are values like others. A bad argument changes nothing.

        Parameters
        ----------
        candidates
            Any of what `ask` gave, or other points of the space.
        values
            A number for each.
        on_failure
            What NaN (or None) means: "raise" a ValueError; "worst": rank the candidate below every
            success; "skip": leave it out of its generation.
        """
        if on_failure not in ("raise", "worst", "skip"):
            raise ValueError(f"on_failure must be raise, worst or skip; got {on_failure!r}")
        codes = self._encode(candidates)
        told = numbers(values, len(codes), nan=on_failure != "raise")
        self._take(codes, told, skip=on_failure == "skip")

    def _take(self, codes: Codes, values: npt.NDArray[np.float64], skip: bool = False) -> None:
        """`tell`, as codes and checked values."""
        for row, value in zip(codes, self._sign * values, strict=True):
            if value > self._best_value or (self._best is None and not np.isnan(value)):
                self._best, self._best_value = row.copy(), float(value)
            candidate = self._waiting.answer(row)
            if candidate is not None and not (skip and np.isnan(value)):
                candidate.value = float(value)
                self._waiting.answered.append(candidate)
        self._told += len(codes)
        while len(self._waiting.answered) >= self.config.population:
            self._train_generation()

    def _train_generation(self) -> None:
        size, n, config = self.config.population, len(self.space), self.config
        group = self._waiting.take(size)
        points = np.stack([candidate.codes for candidate in group])
        values = np.array([candidate.value for candidate in group])
        advantage = advantages(values, config.utility, config.ties)
        old = np.stack([candidate.probs for candidate in group])
        gain = np.tile(advantage[:, None], (1, n))
        late = [k for k, c in enumerate(group) if c.generation != self._generation]
        if late:
            old[late], ratio = self._anchored([group[k] for k in late])
            gain[late] *= ratio
        batch = Batch(
            seeds=[self.seed],
            generations=[self._generation],
            points=points[None],
            old=old[None],
            advantages=gain[None],
            weights=np.ones((1, size, n)),
            drop=[config.drop_training * config.drop_decay**self._age],
            stamps=np.array([[(c.generation, c.index) for c in group]], np.int64),
        )
        self._engine.train(self._policy, batch)
        self._generation += 1
        self._age += 1
        self._drawn = 0
        self._restart_if_collapsed(points, values)

    def _anchored(
        self, late: list[Candidate]
    ) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.float64]]:
        """For candidates of earlier generations: today's policy, and what that does to eq. (8).

        The KL term is there to keep a step near the policy it starts from. That of a candidate that
        comes late is today's, not the one it was drawn from, which would pull the policy back. So
        `old` becomes today's distribution, under the candidate's own order, and the advantage is
        multiplied by today's probability over that of its birth: pi / pi_today * (pi_today /
        pi_birth) A is the same importance-weighted term.
        """
        codes = np.stack([candidate.codes for candidate in late])
        keys = [
            order_keys(self._layout, self.seed, ORDER_G, candidate.generation, candidate.index)
            for candidate in late
        ]
        today = self._engine.conditionals(self._policy, codes[None], np.stack(keys)[None])[0]
        birth = np.stack([candidate.probs for candidate in late])
        places = self._layout.value_start[:-1] + codes
        rows = np.arange(len(late))[:, None]
        ratio = today[rows, places].astype(np.float64) / birth[rows, places]
        return today, ratio

    def _restart_if_collapsed(self, points: Codes, values: npt.NDArray[np.float64]) -> None:
        free = self.space.cardinalities > 1
        if not free.any():
            return
        best = points[np.argmax(np.where(np.isnan(values), -np.inf, values))]
        agreement = float((points[:, free] == best[free]).mean())
        self._diversity = 1.0 - agreement
        limit = self.config.restart_agreement
        if limit is None:
            return
        self._collapsed = self._collapsed + 1 if agreement >= limit else 0
        if self._collapsed >= self.config.restart_patience and not self._stays_collapsed:
            self._restarts.append(self._told)
            self._policy = self._engine.fresh([self.seed], [len(self._restarts)])
            self._age = self._collapsed = 0
            # what was drawn before would pull the fresh policy back to where it was stuck: answers
            # that are still to come count for the incumbent only
            self._waiting = Waiting()

    def _encode(self, candidates: Any) -> Codes:
        """Codes of a batch, or of a lone candidate: a dict, or a vector of plain integers."""
        single = isinstance(candidates, Mapping)
        if not self.space.named and isinstance(candidates, Sequence | np.ndarray):
            single = len(candidates) > 0 and all(np.isscalar(entry) for entry in candidates)
        return self.space.encode([candidates] if single else candidates)

    # --- state ----------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:  # copies go the way of a state
        return type(self).from_state, (self.state_dict(),)

    def state_dict(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, as a dict of NumPy arrays: `np.savez(path, **state)` keeps it.

        `from_state` continues bit for bit. There is nothing pickled in it.
        """
        header = {
            "format": FORMAT,
            "version": VERSION,
            "library": __version__,
            "space": self.space.to_dict(),
            "config": self.config.to_dict(),
            "engine": self.engine,
            "direction": self.direction,
            "seed": self.seed,
            **{name: getattr(self, f"_{name}") for name in _COUNTERS},
            "restarts": self._restarts,
        }
        n, graph = len(self.space), self._layout.graph
        best = np.zeros((0, n), np.int32) if self._best is None else self._best[None]
        return {
            "header": np.array(json.dumps(header)),
            **self._engine.export(self._policy),
            "graph": np.zeros((0, 0), np.bool_) if graph is None else graph.copy(),
            "best": best.copy(),
            "scalars": np.array([self._best_value, self._diversity]),
            "suggested": np.array(self._suggested, np.int32).reshape(-1, n),
            **self._waiting.to_arrays(n, self._layout.values, self._engine.dtype),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], engine: str | None = None) -> Optimizer:
        """The optimiser that `state_dict` described; `engine` moves it to another engine."""
        header = _read_header(state)
        arrays = {}
        for name in _KINDS:
            if name not in state:
                raise ValueError(f"the state has no {name!r}: it is truncated")
            arrays[name] = np.asarray(state[name])
            if arrays[name].dtype.kind not in _KINDS[name]:
                raise ValueError(f"the state's {name!r} holds {arrays[name].dtype}: it is damaged")
        graph = arrays["graph"] if arrays["graph"].size else None
        try:
            self = cls(
                Space.from_dict(header["space"]),
                integer("seed", header["seed"], 0, 2**64 - 1),
                Config.from_dict(header["config"]),
                engine or header["engine"],
                direction=header["direction"],
                graph=graph,
            )
            for name in _COUNTERS:
                setattr(self, f"_{name}", integer(name, header[name], 0))
            self._restarts = [integer("restarts", told, 0) for told in header["restarts"]]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"the state's header is damaged: {error}") from error
        self._restore(arrays)
        return self

    def _restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        n, kept = len(self.space), len(arrays["stamps"]) if arrays["stamps"].ndim else 0
        expected = {name: array.shape for name, array in self._engine.export(self._policy).items()}
        expected |= {
            "best": (min(1, arrays["best"].shape[0] if arrays["best"].ndim else 0), n),
            "scalars": (2,),
            "suggested": (len(arrays["suggested"]) if arrays["suggested"].ndim else 0, n),
            "codes": (kept, n),
            "probs": (kept, self._layout.values),
            "stamps": (kept, 3),
            "values": (kept,),
            "pending": (),
        }
        for name, shape in expected.items():
            if arrays[name].shape != shape:
                raise ValueError(
                    f"the state's {name!r} has shape {arrays[name].shape}, expected {shape}: "
                    "it is damaged or of another space"
                )
        cards = self.space.cardinalities
        sound = {
            "theta": np.isfinite(arrays["theta"]).all(),
            "probs": ((arrays["probs"] > 0) & (arrays["probs"] <= 1)).all(),
            "stamps": (arrays["stamps"] >= 0).all(),
            "pending": 0 <= int(arrays["pending"]) <= kept,
            **{
                name: ((arrays[name] >= 0) & (arrays[name] < cards)).all()
                for name in ("best", "suggested", "codes")
            },
        }
        for name, good in sound.items():
            if not good:
                raise ValueError(f"the state's {name!r} has values that cannot be: it is damaged")
        self._policy = self._engine.load(arrays)
        self._best = arrays["best"][0].astype(np.int32) if len(arrays["best"]) else None
        self._best_value, self._diversity = (float(value) for value in arrays["scalars"])
        self._suggested = [row.astype(np.int32) for row in arrays["suggested"]]
        self._waiting = Waiting.from_arrays(arrays, self._engine.dtype)


_COUNTERS = ("generation", "age", "drawn", "asked", "told", "collapsed")
_KINDS = {  # a state's arrays, and the kinds of number in each
    "theta": "f", "adam_m": "f", "adam_v": "f", "adam_steps": "i", "graph": "b", "best": "i",
    "scalars": "f", "suggested": "i", "codes": "i", "probs": "f", "stamps": "i", "values": "f",
    "pending": "i",
}  # fmt: skip


def _read_header(state: Mapping[str, Any]) -> dict[str, Any]:
    try:
        header = json.loads(str(state["header"]))
        form, version = header["format"], header["version"]
    except (KeyError, TypeError, ValueError) as error:
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
