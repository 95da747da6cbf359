"""The engine `cuda`: Triton kernels, one program per variable and run.

    common.py  arithmetic, the random stream, eq. (8) at the outputs
    small.py   fresh parameters, training orders; ranks, incumbents and restarts for many runs
    sample.py  candidates, in one kernel
    train.py   all epochs with the parameters in registers: up to 24 units and 768 inputs
    stream.py  the same for any network, with the parameters in memory

`CudaEngine` below has the protocol's verbs on NumPy arrays, and under each a method on tensors that
never waits for the device: `many/device.py` is made of those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import triton

from anyorder.strategies.policy.engines.base import Batch, Codes, Draw, Floats, Policy
from anyorder.strategies.policy.engines.cuda import bookkeeping as small
from anyorder.strategies.policy.engines.cuda import common, sample, stream, train
from anyorder.strategies.policy.layout import Layout
from anyorder.strategies.policy.rng import UIntArray, drop_threshold

Tensor = Any

_PARAMETERS_AT_ONCE = 1024  # of a program that draws fresh ones
_KEYS_AT_ONCE = 32  # of a program that ranks them
# Of Adam: `common.reciprocals` multiplies two, and smaller gradients have no square in float32.
_LEAST_EPS = 1e-18
# Weights that a sampling program reads at once. A whole network that is no larger is read before it
# is needed, one up to the second number when it is: that leaves room for more programs.
_SAMPLE_TILE, _WHOLE = 4096, 32768
_MOST_INPUTS = 8192
_MOST_VALUES = 8  # of a variable whose network is trained in registers
# How `train.py` cuts a first layer into tiles: warps, lots of a warp, inputs of a lot, lots that
# share a tile; and the most units. Of what fits into the registers, the fastest.
_TILES = {
    (1, 2, 16, 2): train.MOST_UNITS,
    (1, 4, 16, 4): train.MOST_FOLDED,
    (2, 2, 16, 2): train.MOST_UNITS,
    (2, 4, 16, 4): train.MOST_FOLDED,
    (4, 2, 16, 2): train.MOST_UNITS,
    (4, 3, 16, 4): train.MOST_FOLDED,
    (4, 2, 32, 2): train.MOST_UNITS,
    (8, 3, 16, 4): train.MOST_FOLDED,
    (8, 2, 32, 2): train.MOST_UNITS,
    (8, 3, 32, 4): train.MOST_FOLDED,
}
_ORDERS = {"random": small.RANDOM, "generation": small.AGAIN, "fixed": small.FIXED}


@dataclass(frozen=True)
class _Group:
    """Variables of one number of logits: 1 for two values, else as many as values.

    Beyond `_MOST_VALUES` it is the next power of two, so that there are few kernels to compile.
    """

    logits: int
    variables: Tensor

    @property
    def places(self) -> int:
        """A power of two that holds them."""
        return int(_power(self.logits))


@dataclass(frozen=True)
class Orders:
    """Ranks of variables in training orders, and how far it is to the next run's and epoch's.

    `keys` is what they were made of.
    """

    ranks: Tensor
    keys: Tensor
    a_run: int
    an_epoch: int


class CudaEngine:
    """The engine `cuda`: float32, many runs in one launch.

    A run gives the same alone and in any batch: how a network is cut into tiles depends on the
    space and the configuration only.
    """

    name = "cuda"
    dtype: np.dtype[Any] = np.dtype(np.float32)

    def __init__(self, layout: Layout) -> None:
        if max(layout.n, layout.features) > _MOST_INPUTS:
            raise ValueError(
                f"the space has {layout.n} variables with {layout.features} inputs, expected at "
                f"most {_MOST_INPUTS} of each for engine='cuda'; engine='cpu' has no such limit"
            )
        self.layout = layout
        self.device = torch.device("cpu" if common.INTERPRETED.value else "cuda")
        config = layout.config
        self._depth = len(layout.widths) - 1
        self._tables = {
            # (a constant has no network, but one is read ahead for it all the same: any will do)
            "begins": self._put(np.where(layout.outputs > 0, layout.theta_start[:-1], 0)),
            "value_start": self._put(layout.value_start[:-1].astype(np.int32)),
            "feature_start": self._put(layout.feature_start[:-1].astype(np.int32)),
            "outputs": self._put(layout.outputs.astype(np.int32)),
            "floors": self._put(layout.floor.astype(np.float32)),
            "owner": self._put(_at_least_one(layout.owner).astype(np.int32)),
            "code_base": self._put(_at_least_one(layout.code_base).astype(np.int32)),
            "codes": self._put(layout.codes),
            "hidden_value": self._put(_at_least_one(layout.hidden_value)),
            "widths": self._put(layout.widths.astype(np.int32)),
            "graph": self._put(
                np.zeros(1, np.int8) if layout.graph is None else layout.graph.astype(np.int8)
            ),
        }
        many = layout.outputs > _MOST_VALUES
        logits = np.where(many, _power(layout.outputs), layout.outputs)
        self._groups = [
            _Group(int(size), self._put(np.flatnonzero(logits == size).astype(np.int32)))
            for size in np.unique(logits[logits > 0])
        ]
        self._inputs = max(32, _power(layout.features))  # with padding
        self._one_each = layout.features == layout.n and bool((layout.cards == 2).all())
        self._unordered = config.training_order == "none" or layout.features == 0
        self._coefficient_table: Tensor = None

    # --- the protocol, on NumPy arrays ----------------------------------------------------------

    def fresh(self, seeds: Sequence[int], restarts: Sequence[int]) -> Policy:
        """A policy with initial parameters for each run."""
        runs = self.rows(seeds)
        runs[:, common.RESTARTS.value] = self._put(np.array(restarts, np.int64))
        theta = torch.empty((len(seeds), self.layout.parameters), device=self.device)
        kept = self.layout.parameters if self.layout.config.adam == "kept" else 0
        m = torch.zeros((len(seeds), kept), device=self.device)
        self.start(theta, runs)
        return Policy(theta, m, torch.zeros_like(m), np.zeros(len(seeds), np.int64))

    def export(self, policy: Policy) -> dict[str, npt.NDArray[Any]]:
        """The policy as arrays to store."""
        theta, m, v = (_host(x) for x in (policy.theta, policy.m, policy.v))
        return Policy(theta, m, v, policy.steps).export()

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Policy:
        """The inverse of `export`."""
        policy = Policy.load(arrays, self.dtype)
        theta, m, v = (self._put(x) for x in (policy.theta, policy.m, policy.v))
        return Policy(theta, m, v, policy.steps)

    def sample(self, policy: Policy, draw: Draw) -> tuple[Codes, Floats]:
        """Candidates and the distributions they were drawn from."""
        runs = self.rows(draw.seeds, draw.generations)
        runs[:, common.FIRST.value] = self._put(np.array(draw.first, np.int64))
        runs[:, common.DROPS_G.value] = self._thresholds(draw.drop)
        shape = (len(draw.seeds), draw.count)
        points = torch.empty((*shape, self.layout.n), dtype=torch.int32, device=self.device)
        probs = torch.empty((*shape, self.layout.values), device=self.device)
        self.draw(policy.theta, runs, points, probs, any(p > 0 for p in draw.drop))
        return _host(points), _host(probs)

    def conditionals(self, policy: Policy, points: Codes, keys: UIntArray | None = None) -> Floats:
        """The distribution of every variable given those before it, or all others."""
        layout, tables = self.layout, self._tables
        runs, count, n = points.shape
        probs = torch.ones((runs, count, layout.values), device=self.device)
        ranks = np.zeros((runs, count, self._inputs), np.int32)
        if keys is not None and layout.features:
            order = np.argsort(keys, axis=-1, kind="stable")
            place = np.empty_like(order)
            np.put_along_axis(place, order, np.broadcast_to(np.arange(n), order.shape), -1)
            ranks[..., : layout.features] = place[..., layout.owner]
        seen = stream.OTHERS if keys is None or not layout.features else stream.EARLIER
        stored, at = self._put(ranks.astype(np.int16)), self._put(np.ascontiguousarray(points))
        for group in self._groups:
            shape = self._stream_shape(16, group)
            blocks = -(-count // 16)
            programs = len(group.variables) * runs * blocks
            scratch = torch.empty(
                programs * (self._depth + 1) * 16 * shape["HP"], device=self.device
            )
            stream.conditionals[(len(group.variables), runs, blocks)](
                policy.theta, probs, at, stored, scratch, group.variables, tables["begins"],
                tables["value_start"], tables["feature_start"], tables["outputs"],
                tables["floors"], tables["owner"], tables["code_base"], tables["codes"],
                tables["hidden_value"], tables["widths"], tables["graph"], n, layout.features,
                layout.values, count, layout.parameters, count, DEPTH=self._depth, SEEN=seen.value,
                GRAPH=layout.graph is not None, FP=self._inputs, OP=group.places, **shape,
            )  # fmt: skip
        return _host(probs)

    def train(self, policy: Policy, batch: Batch) -> None:
        """E epochs of Adam on eq. (8) for every variable."""
        runs = self.rows(batch.seeds, batch.generations)
        runs[:, common.DROPS_T.value] = self._thresholds(batch.drop)
        runs[:, common.STEPS.value] = self._put(policy.steps.astype(np.int64))
        self.learn(
            policy,
            runs,
            self._put(np.ascontiguousarray(batch.points, np.int32)),
            self._put(np.ascontiguousarray(batch.old, np.float32)),
            self._put(np.ascontiguousarray(batch.advantages, np.float32)),
            self._put(np.ascontiguousarray(batch.weights, np.float32)),
            self.orders(runs, batch.points.shape[1], self._put(batch.stamps.astype(np.int64))),
            any(p > 0 for p in batch.drop),
            most_steps=int(policy.steps.max(initial=0)),
        )
        if self.layout.config.adam == "kept":
            policy.steps += self.layout.config.epochs

    # --- the same on tensors --------------------------------------------------------------------

    def rows(self, seeds: Sequence[int], generations: Sequence[int] | None = None) -> Tensor:
        """The array `runs` of the kernels: see `common.py`."""
        rows = np.zeros((len(seeds), common.FIELDS.value), np.int64)
        rows[:, common.SEED.value] = np.array(seeds, np.uint64).view(np.int64)
        if generations is not None:
            rows[:, common.GENERATION.value] = generations
        return self._put(rows)

    def start(self, theta: Tensor, runs: Tensor, only_afresh: bool = False) -> None:
        """Fresh parameters of all runs, or of those whose status asks for them."""
        layout, tables = self.layout, self._tables
        if layout.parameters == 0:
            return
        blocks = -(-int(np.diff(layout.theta_start).max()) // _PARAMETERS_AT_ONCE)
        small.start[(layout.n, blocks, len(theta))](
            theta, runs, tables["begins"], tables["outputs"], tables["widths"], layout.n,
            layout.parameters, ONLY_AFRESH=only_afresh, DEPTH=self._depth,
            BLOCK=_PARAMETERS_AT_ONCE,
        )  # fmt: skip

    def draw(self, theta: Tensor, runs: Tensor, points: Tensor, probs: Tensor, drop: bool) -> None:
        """`sample`, into candidates (R, count, n) and distributions (R, count, V)."""
        layout, config, tables = self.layout, self.layout.config, self._tables
        size, count, n = points.shape
        places = max((group.places for group in self._groups), default=1)
        wide, padded = _power(max(layout.widths[1:], default=1)), max(16, _power(n))
        widest = max(self._inputs, wide if self._depth > 1 else 1, places)
        size_1 = wide * max(self._inputs, places)
        whole = self._depth == 1 and layout.parameters > 0 and size_1 <= _WHOLE
        units = max(1, min(wide, _SAMPLE_TILE // widest))
        scratch = torch.empty(size * count * (2 * padded + 2 * wide), device=self.device)
        width = int(layout.widths[1]) if self._depth else 0
        copy = theta
        if whole:
            copy = torch.empty(size * n * layout.features * width, device=self.device)
            small.turned[(n, size)](
                copy, theta, runs, tables["begins"], n, layout.parameters, F=layout.features,
                WIDTH=width, HP=wide, BLOCK=64,
            )  # fmt: skip
        sample.sample[(count, size)](
            points, probs, scratch, theta, copy, runs, tables["begins"], tables["value_start"],
            tables["outputs"], tables["floors"], tables["owner"], tables["code_base"],
            tables["codes"], tables["hidden_value"], tables["widths"], tables["graph"], n,
            layout.values, layout.parameters, F=layout.features,
            WIDTH=width, ONE_EACH=self._one_each,
            FIXED=config.generation_order == "fixed",
            PER_CANDIDATE=config.order_per == "candidate", GRAPH=layout.graph is not None,
            DROP=drop, DEPTH=self._depth, FP=self._inputs, HP=wide, NP=padded, OP=places,
            UNITS=units, WHOLE=whole, AHEAD=whole and size_1 <= _SAMPLE_TILE,
            ZERO=not layout.hidden_value.any(),
            BLOCK=max(4, min(_KEYS_AT_ONCE, 4096 // padded)),
            num_warps=4 * max(1, size_1 // (2 * _SAMPLE_TILE)) if whole else 4,
        )  # fmt: skip

    def orders(
        self, runs: Tensor, count: int, stamps: Tensor = None, into: Orders | None = None
    ) -> Orders:
        """The orders that `learn` trains under; they depend on seeds and generations only."""
        config, layout, size = self.layout.config, self.layout, len(runs)
        if self._unordered:
            nothing = torch.empty(1, dtype=torch.int16, device=self.device)
            return Orders(nothing, nothing, 0, 0)
        kind = _ORDERS[config.training_order]
        epochs = config.epochs if kind is small.RANDOM else 1
        shape, padded = (size, epochs, count), max(16, _power(layout.n))
        if into is None:
            step = count * self._inputs
            into = Orders(
                torch.empty((*shape, self._inputs), dtype=torch.int16, device=self.device),
                torch.empty((*shape, padded), dtype=torch.uint32, device=self.device),
                epochs * step,
                step if epochs > 1 else 0,
            )
        small.training_ranks[(epochs, count, size)](
            into.ranks, into.keys, runs, runs if stamps is None else stamps,
            self._tables["owner"], layout.n, layout.features, count, KIND=kind.value,
            PER_CANDIDATE=config.order_per == "candidate",
            ALL=bool((np.diff(layout.feature_start) > 0).all()), FP=self._inputs, NP=padded,
            BLOCK=max(4, min(_KEYS_AT_ONCE, 4096 // self._inputs)),
        )  # fmt: skip
        return into

    def learn(
        self, policy: Policy, runs: Tensor, points: Tensor, old: Tensor, advantages: Tensor,
        weights: Tensor, orders: Orders, drop: bool, most_steps: int = 0,
    ) -> None:  # fmt: skip
        """`train`; advantages and weights may be expanded views."""
        layout, config, tables = self.layout, self.layout.config, self._tables
        size, count, n = points.shape
        kept = config.adam == "kept"
        shared = (orders.ranks, self._coefficients(most_steps if kept else 0))
        rank_run, rank_step = orders.a_run, orders.an_epoch
        strides = (*advantages.stride(), *weights.stride())
        beta1, beta2 = config.adam_beta1, config.adam_beta2
        betas = (beta1, beta2, 1.0 - beta1, 1.0 - beta2)
        m, v = policy.m, policy.v
        for group in self._groups:
            grid = (len(group.variables), size)
            shape = self._register_shape(count, group)
            if shape is not None:
                train.train[grid](
                    policy.theta, m, v, runs, points, old, advantages, weights, *shared,
                    group.variables, tables["begins"], tables["value_start"],
                    tables["feature_start"], tables["floors"], tables["owner"],
                    tables["code_base"], tables["codes"], tables["graph"], n, layout.features,
                    layout.values, count, config.epochs, layout.parameters, layout.features,
                    rank_run, rank_step, *strides, float(layout.hidden_value[0]), config.beta,
                    *betas, HIDDEN=int(layout.widths[1]), D=group.logits,
                    ORDERED=not self._unordered, GRAPH=layout.graph is not None, DROP=drop,
                    BERNOULLI=config.kl == "bernoulli", KEPT=kept, **shape,
                )  # fmt: skip
                continue
            shape = self._stream_shape(max(16, _power(count)), group)
            if not kept and m.shape[1] == 0:
                m, v = torch.empty_like(policy.theta), torch.empty_like(policy.theta)
            scratch = torch.empty(
                grid[0] * size * (2 * self._depth + 2) * shape["C"] * shape["HP"],
                device=self.device,
            )
            stream.train[grid](
                policy.theta, m, v, runs, points, old, advantages, weights, *shared,
                scratch, group.variables, tables["begins"], tables["value_start"],
                tables["feature_start"], tables["outputs"], tables["floors"], tables["owner"],
                tables["code_base"], tables["codes"], tables["hidden_value"],
                tables["widths"], tables["graph"], n, layout.features, layout.values, count,
                config.epochs, layout.parameters, rank_run, rank_step, *strides, config.beta,
                *betas, DEPTH=self._depth,
                SEEN=(stream.OTHERS if self._unordered else stream.EARLIER).value,
                GRAPH=layout.graph is not None, DROP=drop, BERNOULLI=config.kl == "bernoulli",
                KEPT=kept, FP=self._inputs, OP=group.places, **shape,
            )  # fmt: skip

    def memory_of(self, runs: int, budget: int) -> int:
        """About how many bytes that many runs take on the device."""
        layout, config = self.layout, self.layout.config
        copies = 3 if config.adam == "kept" or "memory" in self.path(config.population) else 1
        copies += self._depth == 1  # the first layer, turned
        orders = config.epochs if config.training_order == "random" else 1
        population = config.population
        rows = 2 * population * (layout.values + layout.n + self._inputs + 1024)
        for group in self._groups:
            if self._register_shape(population, group) is None:
                shape = self._stream_shape(max(16, int(_power(population))), group)
                rows += (2 * self._depth + 2) * len(group.variables) * shape["C"] * shape["HP"]
        words = copies * layout.parameters + rows
        words += orders * population * (self._inputs // 2 + int(_power(layout.n)))
        return int(runs * (4 * words + 9 * budget))

    def runs_that_fit(self, runs: int, budget: int) -> int:
        """How many runs go onto the device together, of so many; MemoryError if not even one."""
        if self.device.type != "cuda":
            return runs
        free, total = torch.cuda.mem_get_info()
        room = int(0.85 * (free + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()))
        one = self.memory_of(1, budget)
        if one > room:
            raise MemoryError(
                f"one run of {self.layout.n} variables and hidden layers "
                f"{self.layout.config.hidden} takes about {one / 2**30:.1f} GiB on the GPU, which "
                f"has {room / 2**30:.1f} of {total / 2**30:.1f} free; no run fits. Smaller hidden "
                "layers, a smaller population and fewer epochs need less, and engine='cpu' has the "
                "machine's memory."
            )
        return min(runs, room // one, 65535)

    def path(self, count: int) -> tuple[str, ...]:
        """Which kernel trains each group of variables: "registers" or "memory"."""
        shapes = [self._register_shape(count, group) for group in self._groups]
        return tuple("memory" if shape is None else "registers" for shape in shapes)

    # --- shapes and tables ----------------------------------------------------------------------

    def _register_shape(self, count: int, group: _Group) -> dict[str, int] | None:
        """How `train.py` cuts a network into tiles, or None where it cannot."""
        layout = self.layout
        hidden = set(layout.hidden_value.tolist())
        fits = (
            self._depth in (1, 2)
            and layout.features > 0
            and len(hidden) == 1
            and hidden | set(layout.codes.tolist()) <= {-1.0, 0.0, 1.0}
            and float(layout.rates.max()) <= train.MOST_RATE
            and count <= 32
            and group.logits <= _MOST_VALUES
        )
        if not fits:
            return None
        frozen = 0
        if self._depth == 2:
            if layout.rates[1].any() or layout.widths[2] > train.MOST_FROZEN:
                return None
            frozen = int(layout.widths[2])
        tiles = _tiles(layout.features, int(layout.widths[1]))
        if tiles is None:
            return None
        return {
            **tiles, "FROZEN": frozen, "C": max(16, _power(count)), "FP": self._inputs,
            "num_warps": tiles["W"],
        }  # fmt: skip

    def _stream_shape(self, rows: int, group: _Group) -> dict[str, int]:
        widest = max(*self.layout.widths[1:].tolist(), group.places, 16)
        return {"C": rows, "T": 32, "U": 32, "HP": int(_power(widest)), "num_warps": 4}

    def _coefficients(self, most_steps: int) -> Tensor:
        """What Adam multiplies and adds at every step: each layer's two rates, and eps.

        With M = m / (1 - beta1), V = v / (1 - beta2) and k = sqrt((1 - beta2^t) / (1 - beta2)), a
        step is rate * k (1 - beta1) / (1 - beta1^t) * M / (sqrt(V) + k eps).
        """
        config, layout = self.layout.config, self.layout
        need = most_steps + config.epochs
        if self._coefficient_table is None or len(self._coefficient_table) < need:
            beta1, beta2 = config.adam_beta1, config.adam_beta2
            t = np.arange(1, 2 * need if most_steps else need + 1, dtype=np.float64)
            k = np.sqrt(-np.expm1(t * np.log(beta2)) / (1 - beta2)) if beta2 else np.ones_like(t)
            scale = k * (1 - beta1) / (-np.expm1(t * np.log(beta1)) if beta1 else 1.0)
            eps = np.maximum(k * layout.adam_eps, _LEAST_EPS)
            table = [*(scale * rate for rate in layout.rates.ravel()), eps]
            self._coefficient_table = self._put(np.stack(table, axis=1).astype(np.float32))
        return self._coefficient_table

    def _thresholds(self, drop: Sequence[float]) -> Tensor:
        return self._put(np.array([drop_threshold(p) for p in drop], np.int64))

    def _put(self, array: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)


def _tiles(inputs: int, units: int) -> dict[str, int] | None:
    """The smallest of `_TILES` that holds a first layer."""
    for (warps, lots, size, fold), most_units in _TILES.items():
        if inputs <= warps * lots * size and units <= most_units:
            return {"W": warps, "L": lots, "T": size, "FOLD": fold}
    return None


def _host(tensor: Tensor) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = tensor.detach().cpu().numpy()
    return array


def _power(size: Any) -> Any:
    """The least power of two that is not less, of an integer or of each entry of an array."""
    if isinstance(size, np.ndarray):
        return np.array([triton.next_power_of_2(max(1, int(entry))) for entry in size])
    return triton.next_power_of_2(max(1, int(size)))


def _at_least_one(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A kernel wants somewhere to point to."""
    return array if len(array) else np.zeros(1, array.dtype)
