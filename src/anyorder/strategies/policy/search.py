"""The strategy `policy`: Algorithm 1 of the paper, with tickets.

    propose   draws candidates from the policy, each in an order of its own
    learn     collects answers; every `population` answers are a generation, on which it trains

Each candidate stores the distributions from which it was drawn, so that the importance ratio of eq.
(8) is right however late its answer comes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import flag, integer
from anyorder._internal.checks import graph as checked_graph
from anyorder.archive import Archive
from anyorder.errors import OK
from anyorder.space import Space
from anyorder.strategies.base import Answer, Codes, Proposals, score
from anyorder.strategies.policy import stored
from anyorder.strategies.policy.absent import hide_absent, visible_digits
from anyorder.strategies.policy.advantage import advantages
from anyorder.strategies.policy.collapse import agreement, entropy, generations_in_a_row
from anyorder.strategies.policy.config import PRESETS, Config, resolve
from anyorder.strategies.policy.critic import Critic
from anyorder.strategies.policy.data import LEAST, groups
from anyorder.strategies.policy.engines import Batch, Draw, Policy, create, model_of
from anyorder.strategies.policy.influence import influence
from anyorder.strategies.policy.learned_order import LearnedOrder
from anyorder.strategies.policy.masks import apply_masks
from anyorder.strategies.policy.orders import sampling_keys
from anyorder.strategies.policy.penalty import NEUTRAL, Penalty
from anyorder.strategies.policy.rng import UIntArray
from anyorder.strategies.policy.stored import CRITIC, ORDER, PARAMETERS, Candidate, of_others
from anyorder.strategies.state import CHECKSUM, State, checksum_of


class PolicySearch:
    """Order-invariant RL-EDA: a policy trained on the ranks of the candidates it draws.

    Parameters
    ----------
    space
        The space to search.
    seed
        An integer from 0 to 2**64 - 1.
    config
        A preset ("default", "fast", "balanced", "paper", "paper-code") or a `Config`.
    engine
        "cuda", "cpu" or "reference"; "auto" takes the fastest that can run here.
    graph
        An n x n boolean matrix, True where variable i may depend on j, if this is known.
    stop_collapsed
        Whether to end once nearly all points of the population are equal. Otherwise a collapsed
        policy is restarted as the configuration says. A policy that draws only known points is
        restarted in any case, since it would train on them for ever.
    """

    name = "policy"
    influence_unit = "mean change of its probabilities"

    def __init__(
        self,
        space: Space,
        seed: int = 0,
        config: Config | str = "default",
        engine: str = "auto",
        graph: npt.ArrayLike | None = None,
        *,
        stop_collapsed: bool = False,
    ) -> None:
        self.space = space
        self.seed = integer("seed", seed, 0, 2**64 - 1)
        self.config = resolve(config)
        self.archive: Archive | None = None
        self.batch = self.config.population
        self.generation = 0  # trainings so far
        self.restarts = 0
        self.converged = False
        self._graph = None if graph is None else checked_graph(graph, len(space))
        self._model, self._digits = model_of(space, self.config, self._graph)
        self._engine = create(engine, self._model)
        values, learns = self.config.critic, self.config.generation_order == "learned"
        self._critic = None if values is None else Critic(self._model, self._engine.name)
        self._order = LearnedOrder(self._model, self._engine.name) if learns else None
        adaptive = self.config.kl_target is not None
        self._penalty = Penalty(self._engine, 1) if adaptive else None
        self._start()
        self._stop_collapsed = flag("stop_collapsed", stop_collapsed)
        self._age = 0  # trainings since the last restart
        self._drawn = 0  # the number of candidates drawn from this generation's policy
        self._next_ticket = 0
        # generations in a row in which nearly all points of the population were equal
        self._collapsed = 0
        self._diversity = 1.0
        self._open: dict[int, Candidate] = {}
        self._answered: list[Candidate] = []
        self._others: dict[bytes, Candidate] = {}  # points that others have measured, each once
        self._last_probs = np.empty((0, self._model.values), self._engine.dtype)

    def _start(self) -> None:
        if self._penalty is not None:
            self._penalty.restart([0])
        self._policy = self._engine.fresh([self.seed], [self.restarts])
        if self._critic is not None:
            self._critic_policy = self._critic.fresh([self.seed], [self.restarts])
        if self._order is not None:
            self._scores = self._order.fresh([self.seed], [self.restarts])

    @classmethod
    def arguments(cls, preset: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the constructor's arguments for a preset and the settings besides its name."""
        given = dict(settings)
        own = {key: given.pop(key) for key in _ARGUMENTS if key in given}
        return {**own, "config": resolve(preset or "default").replace(**given)}

    def settings(self) -> dict[str, Any]:
        """Return the fields of `Config`, the engine, the graph and `stop_collapsed`."""
        graph = None if self._graph is None else self._graph.astype(int).tolist()
        return {
            **self.config.to_dict(), "engine": self.engine, "graph": graph,
            "stop_collapsed": self._stop_collapsed,
        }  # fmt: skip

    @staticmethod
    def describe(settings: Mapping[str, Any]) -> str:
        """Return the preset that settings mean, or their changes to the default, and the engine.

        Settings may lack fields that are newer than they are.
        """
        rest = dict(settings)
        engine, graph = rest.pop("engine", None), rest.pop("graph", None)
        ends = rest.pop("stop_collapsed", False)
        preset = "default"
        changed: dict[str, Any] = {}
        for name, config in PRESETS.items():
            if not (other := _differences(rest, config)):
                preset, changed = name, {}
                break
            changed = changed or other  # the default comes first
        parts = [f"{key}={value}" for key, value in changed.items()]
        parts += [f"engine={engine}"] * (engine is not None) + ["graph=..."] * (graph is not None)
        return "+".join([f"policy:{preset}", *parts, *(["stop_collapsed=True"] if ends else [])])

    @property
    def engine(self) -> str:
        """The engine in use."""
        return self._engine.name

    @property
    def graph(self) -> npt.NDArray[np.bool_] | None:
        """The known interaction graph."""
        return self._graph

    @property
    def age(self) -> int:
        """The number of times that the policy has trained since its last restart."""
        return self._age

    @property
    def diversity(self) -> float:
        """The share of the last generation's values that differ from its best candidate's."""
        return self._diversity

    @property
    def entropy(self) -> float:
        """The mean entropy of the distributions from which the last candidates were drawn.

        It is normalised: 1 if all values are equally likely, 0 if one point is certain.
        Distributions of columns of groups count before masks.
        """
        return entropy(self._last_probs, self._model.cards)

    def facts(self) -> dict[str, Any]:
        """Return how far the policy has converged, and the first variables of a learned order."""
        found = {"diversity": round(self.diversity, 4), "entropy": round(self.entropy, 4)}
        if self._order is None:
            return found
        first = np.argsort(-self.order_scores, kind="stable")[:_SHOWN].tolist()
        names = self.space.names or range(len(self.space))
        return {**found, "order": [names[i] for i in first]}

    @property
    def order_scores(self) -> npt.NDArray[np.float64]:
        """The scores of the variables in a learned order: i is before j with odds exp(s_i - s_j).

        The score of a variable that is drawn digit by digit is the mean of its digits' scores.
        """
        if self._order is None:
            kind = self.config.generation_order
            raise ValueError(f"generation_order is {kind!r}, expected 'learned': it has no scores")
        owner, scores = self._digits.owner, np.asarray(self._scores.theta[0], np.float64)
        return np.asarray(np.bincount(owner, scores) / np.bincount(owner))

    # --- proposals ------------------------------------------------------------------------------

    def propose(self, count: int, given: Codes | None = None) -> Proposals:
        """Return candidates drawn from the current policy; none once the search has ended."""
        extra = 0 if given is None else len(given)
        if self._stop_collapsed and self.converged:
            count = extra
        if not count:
            return Proposals((), np.empty((0, len(self.space)), np.int32))
        rows = [(self.generation, self._drawn + k) for k in range(count)]
        keys = None if self._order is None else self._keys(rows)
        codes = np.empty((count, self._model.n), np.int32)
        probs = np.empty((count, self._model.values), self._engine.dtype)
        if given is not None and extra:
            codes[:extra] = visible_digits(self.space, self._digits, given)
            probs[:extra] = self._distributions(codes[:extra], self._keys(rows[:extra]))
        if count > extra:
            config = self.config
            draw = Draw(
                seeds=[self.seed],
                generations=[self.generation],
                first=[self._drawn + extra],
                drop=[config.drop_generation * config.drop_decay**self._age],
                count=count - extra,
                keys=None if keys is None else keys[None, extra:],
            )
            drawn, behaviour = self._engine.sample(self._policy, draw)
            if self.space.conditional:
                drawn, behaviour = hide_absent(
                    self.space, self._digits, self._engine, self._policy, draw, drawn, behaviour
                )
            codes[extra:], probs[extra:] = drawn[0], behaviour[0]
        tickets = range(self._next_ticket, self._next_ticket + count)
        for k, ticket in enumerate(tickets):
            own = None if keys is None else keys[k]
            self._open[ticket] = Candidate(ticket, *rows[k], codes[k], probs[k], own)
        self._last_probs = probs
        self._drawn += count
        self._next_ticket += count
        # the code of an absent variable is 0, as for every strategy
        return Proposals(tickets, self.space.canonical(self._digits.join(np.maximum(codes, 0))))

    def give_up(self, tickets: Sequence[int]) -> None:
        """Leave these candidates out of their generation."""
        for ticket in tickets:
            self._open.pop(ticket, None)

    # --- learning -------------------------------------------------------------------------------

    def learn(self, answers: Sequence[Answer]) -> None:
        """Collect answers; train whenever a generation is complete.

        Failed and rejected candidates rank below all others. Points proposed before the last
        restart are not trained on. Points of others are trained on once there are two generations
        of them.
        """
        for answer in answers:
            if answer.ticket is None:
                if answer.status == OK:
                    (codes,) = visible_digits(self.space, self._digits, answer.codes[None])
                    other = of_others(self._model, codes, answer.value)
                    self._others.setdefault(other.key, other)
            elif (candidate := self._open.pop(answer.ticket, None)) is not None:
                value = score(answer)
                candidate.value = np.nan if answer.status != OK and value == -np.inf else value
                candidate.known = answer.known
                self._answered.append(candidate)
        while len(self._answered) >= self.config.population:
            self._train()
        if len(self._others) >= LEAST * self.config.population:
            self._learn_others()

    def _train(self) -> None:
        """Do the rest of Algorithm 1: ranks, advantages (eq. 5), E epochs on eq. (8)."""
        size = self.config.population
        self._answered.sort(key=lambda candidate: candidate.ticket)
        group, self._answered = self._answered[:size], self._answered[size:]
        points = np.stack([candidate.codes for candidate in group])
        values = np.array([candidate.value for candidate in group])
        stamps = [(candidate.generation, candidate.index) for candidate in group]
        old = np.stack([candidate.probs for candidate in group])
        gain = self._advantages(points, values, stamps)
        late = [k for k, c in enumerate(group) if c.generation != self.generation]
        if late:
            old[late], ratio = self._anchor([group[k] for k in late])
            gain[late] *= ratio
        self._fit(points, old, gain, stamps)
        self._follow_collapse(points, values, all(candidate.known for candidate in group))

    def _advantages(
        self, points: Codes, values: npt.NDArray[np.float64], stamps: list[tuple[int, int]]
    ) -> npt.NDArray[np.float64]:
        """Return a generation's advantages, (size, n): from ranks, or from the trained critic."""
        if self._critic is None:
            ranked = advantages(values, self.config.utility, self.config.ties)
            return np.tile(ranked[:, None], (1, self._model.n))
        (gain,) = self._critic.advantages(
            self._critic_policy, [self.seed], [self.generation], points[None], values[None],
            np.array([stamps], np.int64),
        )  # fmt: skip
        return np.asarray(gain)

    def _fit(
        self,
        points: Codes,
        old: npt.NDArray[np.floating],
        gain: npt.NDArray[np.float64],
        stamps: list[tuple[int, int]],
    ) -> None:
        """Train E epochs on points with their advantages, (size, n)."""
        config = self.config
        batch = Batch(
            seeds=[self.seed],
            generations=[self.generation],
            points=points[None],
            old=old[None],
            advantages=gain[None],
            weights=(points[None] >= 0).astype(np.float64),
            drop=[config.drop_training * config.drop_decay**self._age],
            stamps=np.array([stamps], np.int64),
        )
        if self._penalty is not None:
            self._engine.train(self._policy, self._penalty.scale(batch, [0]))
            self._penalty.follow(self._policy, batch, [0])
        elif self._order is None:
            self._engine.train(self._policy, batch)
        else:
            self._order.train(self._policy, self._scores, batch)
        self.generation += 1
        self._age += 1
        self._drawn = 0

    def _learn_others(self) -> None:
        """Train on points that others have measured, as if the policy had drawn them."""
        size = self.config.population
        others, self._others = list(self._others.values()), {}
        values = np.array([candidate.value for candidate in others])
        for group in groups(values, size, (self.seed, self.generation)):
            points = np.stack([others[k].codes for k in group])
            stamps = [(self.generation, k) for k in range(size)]
            old = self._distributions(points, self._keys(stamps))
            self._fit(points, old, self._advantages(points, values[group], stamps), stamps)

    def _anchor(
        self, late: list[Candidate]
    ) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.float64]]:
        """Return today's distributions of candidates of earlier generations, and a correction.

        The KL term of eq. (8) keeps a step near the policy that it starts from. For a candidate
        that is answered late this is today's policy; the policy from which it was drawn would pull
        the current one back. So `old` becomes today's distribution under the candidate's own order,
        and the advantage is multiplied by pi_today / pi_birth: pi / pi_today * (pi_today /
        pi_birth) * A is the same importance-weighted term.
        """
        codes = np.stack([candidate.codes for candidate in late])
        keys = self._keys([(c.generation, c.index) for c in late])
        if self._order is not None:  # their orders were drawn with other scores than today's
            keys = np.array([c.keys for c in late])
        today = self._distributions(codes, keys)
        birth = np.stack([candidate.probs for candidate in late])
        places = self._model.value_start[:-1] + np.maximum(codes, 0)
        above, below = (apply_masks(self._model, probs, codes, keys) for probs in (today, birth))
        rows = np.arange(len(late))[:, None]
        return today, above[rows, places].astype(np.float64) / below[rows, places]

    def _keys(self, stamps: list[tuple[int, int]]) -> UIntArray | None:
        """Return sort keys of the orders of these generations and numbers; None without orders."""
        if self._order is not None:
            return self._order.keys(self._scores.theta[0], self.seed, stamps)
        return sampling_keys(self._model, self.seed, stamps)

    def _distributions(self, codes: Codes, keys: UIntArray | None) -> npt.NDArray[np.floating]:
        """Return today's distributions of points, under orders given by their sort keys."""
        every = None if keys is None else keys[None]
        probs: npt.NDArray[np.floating]
        (probs,) = self._engine.conditionals(self._policy, codes[None], every)
        return probs

    def _follow_collapse(self, points: Codes, values: npt.NDArray[np.float64], known: bool) -> None:
        """Count collapsed generations, and restart the policy after too many of them in a row."""
        if not (free := self._model.cards > 1).any():
            return
        share = agreement(points, values, free)
        self._diversity = 1.0 - share
        limit = self.config.restart_agreement
        self._collapsed = generations_in_a_row(self._collapsed, share, limit or _AGREEMENT)
        self.converged = self._collapsed >= self.config.restart_patience
        if self.converged and not self._stop_collapsed and (limit is not None or known):
            self.restarts += 1
            self._start()
            self._age = self._collapsed = 0
            self.converged = False
            # Candidates drawn before would pull the new policy back to where the old one was stuck.
            self._open.clear()
            self._answered.clear()

    # --- the learned dependencies ---------------------------------------------------------------

    def influence(self, points: int = 10) -> npt.NDArray[np.float64]:
        """Return how much variable i's distribution moves when variable j changes, (n, n).

        It is a mean over `points` candidates of the total variation, 0 to 1, between i's
        distributions before and after j takes another value. j is drawn first, unless the order is
        fixed.
        """
        count = integer("points", points, 1)
        draw = Draw([self.seed], [self.generation], [0], [0.0], count)
        if self._order is not None:
            draw = self._order.draw_orders(self._scores, draw)
        return influence(self._engine, self._policy, self._digits, draw)

    # --- state ----------------------------------------------------------------------------------

    def state(self) -> State:
        """Return parameters, counters, and the candidates that have not been trained on."""
        header = {name: getattr(self, name) for name in _COUNTERS}
        if self._penalty is not None:
            header["doublings"] = int(self._penalty.doublings[0])
        header |= {"seed": self.seed, "open": len(self._open), "others": len(self._others)}
        kept = [*self._open.values(), *self._answered, *self._others.values()]
        arrays = {
            **self._parameters(),
            "diversity": np.array(self._diversity),
            **stored.pack(kept, self._model, self._engine.dtype),
            "last_probs": self._last_probs.copy(),
        }
        header[CHECKSUM] = checksum_of(header, arrays)
        return {"header": np.array(json.dumps(header)), **arrays}

    def _parameters(self) -> dict[str, npt.NDArray[Any]]:
        """Return the parameters of the policy, of its critic and of its order, if it has them."""
        arrays = self._engine.export(self._policy)
        if self._critic is not None:
            twin = self._critic.engine.export(self._critic_policy)
            arrays |= {CRITIC + name: array for name, array in twin.items()}
        if self._order is not None:
            arrays |= {ORDER + name: array for name, array in self._scores.export().items()}
        return arrays

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Continue from a state; raise a ValueError if it is damaged or of another space."""
        counters = _COUNTERS if self._penalty is None else (*_COUNTERS, "doublings")
        numbers, arrays = stored.read(
            state, counters, self._parameters(), self._model, -1 if self.space.conditional else 0
        )
        if self._penalty is not None:
            self._penalty.doublings[0] = min(numbers["doublings"], 2 * NEUTRAL)
        self.seed, self._policy = numbers["seed"], self._engine.load(arrays)
        if self._critic is not None:
            twin = {name: arrays[CRITIC + name] for name in PARAMETERS}
            self._critic_policy = self._critic.engine.load(twin)
        if self._order is not None:
            kept_scores = {name: arrays[ORDER + name] for name in PARAMETERS}
            self._scores = Policy.load(kept_scores, np.float64)
        self._last_probs = arrays["last_probs"].astype(self._engine.dtype)
        for name in _COUNTERS:
            setattr(self, name, numbers[name])
        self.converged = self._collapsed >= self.config.restart_patience
        self._diversity = float(arrays["diversity"])
        kept = stored.unpack(arrays, self._engine.dtype)
        self._open = {candidate.ticket: candidate for candidate in kept[: numbers["open"]]}
        last = len(kept) - numbers["others"]
        self._answered = kept[numbers["open"] : last]
        self._others = {candidate.key: candidate for candidate in kept[last:]}


_AGREEMENT = Config().restart_agreement or 1.0  # of a collapsed policy that is never restarted
_ARGUMENTS = ("engine", "graph", "stop_collapsed")  # settings that are not fields of `Config`
_SHOWN = 5  # the number of variables of a learned order that are shown
_COUNTERS = ("generation", "restarts", "_age", "_drawn", "_next_ticket", "_collapsed")


def _differences(fields: Mapping[str, Any], config: Config) -> dict[str, Any]:
    """Return the fields that differ from those of a configuration."""
    usual = config.to_dict()
    return {key: value for key, value in fields.items() if value != usual.get(key)}
