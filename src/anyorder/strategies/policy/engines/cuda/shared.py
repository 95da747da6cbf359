"""`SharedCudaEngine`: the engine `cuda` for the shared network."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch

from anyorder.strategies.policy.engines.base import Codes, Floats, Policy
from anyorder.strategies.policy.engines.cuda.device import DeviceEngine, Tensor, host, not_empty
from anyorder.strategies.policy.engines.cuda.kernels import (
    arguments,
    shared,
    shared_training,
    shared_update,
)
from anyorder.strategies.policy.engines.cuda.kernels import orders as order_kernels
from anyorder.strategies.policy.engines.cuda.shapes import power_of_two
from anyorder.strategies.policy.model import Model
from anyorder.strategies.policy.networks import SharedNetwork
from anyorder.strategies.policy.rng import UIntArray

_PARAMETERS_AT_ONCE = 1024  # the number of initial parameters that a program draws
_SORTED = 2048  # the most variables that a program sorts
_SORTED_BY_A_WARP = 128  # the most variables that a single warp sorts
_KEYS_AT_ONCE = 1024  # the number of keys that a program writes if there are more variables
_CANDIDATES = 16  # the number of candidates that a program samples
_PREPARED = 256  # the number of variables whose constants a program computes
_BLOCK = 64  # the number of variables that go through the layers together
_BLOCK_MANY = 32  # the same, if they have more than two values
# Options of `sweep`. With four warps a block of 64 variables is as high as one product of a warp
# group, and two programs are on a multiprocessor; in other cases a block takes more registers or
# memory.
_SCHEDULE: dict[str, Any] = {"num_warps": 4, "num_stages": 2}
_SCHEDULE_OTHER: dict[str, Any] = {"num_warps": 8, "num_stages": 1}
_FEATURES, _UNITS = 128, 32  # read by a step, and by a program, of `full_contexts`
HALF_FROM = 256  # from so many variables on, products in training are of float16, for speed
_VARIABLES = 8  # the number of variables whose parameters a program updates
_READ_AT_ONCE = 5  # the number of candidates that it reads together
_ORDERS = {"random": order_kernels.RANDOM, "generation": order_kernels.AS_SAMPLED}


class SharedTables(NamedTuple):
    """The model: `coding.Coding` and the heads of `networks.SharedNetwork`."""

    cards: Tensor
    value_start: Tensor
    feature_start: Tensor  # (n + 1,)
    head_start: Tensor  # (n + 1,)
    floors: Tensor
    code_base: Tensor
    codes: Tensor
    hidden_value: Tensor


class SharedSizes(NamedTuple):
    """The sizes of the model."""

    n: int
    features: int
    row_length: int
    parameters: int
    logits: int


class SharedRows(NamedTuple):
    """The places of the parameters in training, in rows of P places; those of inputs come first."""

    second: int  # weights between the hidden layers, a row for each output
    heads: int  # weights of the heads
    biases: int  # of the hidden layers
    tops: int  # biases of the heads, P in a row
    total: int


class SharedWork(NamedTuple):
    """The memory of training.

    Rows have P places, a power of two, or S places, the fewest that make whole 16 bytes: the latter
    rows are most of what an epoch writes and reads.
    """

    w: Tensor  # (R, rows, P): parameters and moments, see `SharedRows`
    m: Tensor
    v: Tensor
    weights: Tensor  # (R, rows, P): parameters as factors; w itself if that is not float16
    deltas: Tensor  # (R, B, features): inputs minus those of hidden variables
    terms: Tensor  # (R, B, n, TERMS): constants of the objective
    contexts: Tensor  # (R, B, P): pre-activations of the first layer with all variables visible
    tops: Tensor  # (R, B, n, S): units of the last hidden layer, by place in the order
    sums: Tensor  # (R, B, n, S): slopes of each variable's contribution to the first layer
    places: Tensor  # (R, B, n): of each variable in the order
    slopes: Tensor  # (R, B, logits)
    biases: Tensor  # (R, B, 2, P): gradients of the hidden layers' biases
    lows: Tensor  # (R, B, n, S): units of the first of two hidden layers, if the second is trained
    falls: Tensor  # (R, B, n, S): slopes of the second's pre-activations, times `unit`; likewise
    middle: Tensor  # (R, B, P, P): gradients of the weights between them, if they are trained


class SharedCudaEngine(DeviceEngine):
    """The engine `cuda` for the shared network: many runs in one launch.

    It computes in float32; from `HALF_FROM` variables on, training uses factors of float16.

    It supports one or two hidden layers, and contexts that are prefixes of an order: neither
    dropout nor a known graph, and no training without orders.
    """

    def __init__(self, model: Model[SharedNetwork]) -> None:
        super().__init__(model)
        self.model = model
        coding, network = model.coding, model.network
        self._depth = len(network.widths) - 1
        self._tables = SharedTables(
            cards=self.put(coding.cards.astype(np.int32)),
            value_start=self.put(coding.value_start[:-1].astype(np.int32)),
            feature_start=self.put(coding.feature_start.astype(np.int32)),
            head_start=self.put(network.head_start.astype(np.int32)),
            floors=self.put(coding.floor.astype(np.float32)),
            code_base=self.put(not_empty(coding.code_base).astype(np.int32)),
            codes=self.put(coding.codes),
            hidden_value=self.put(not_empty(coding.hidden_value)),
        )
        logits = int(network.head_start[-1])
        self._sizes = SharedSizes(
            coding.n, coding.features, coding.values, network.parameters, logits
        )
        offsets, at = [], 0
        for inputs, outputs in network.shapes:
            offsets += [at, at + inputs * outputs]
            at += (inputs + 1) * outputs
        self._offsets = self.put(np.array(offsets, np.int64))
        self._widths = self.put(network.widths.astype(np.int32))
        self._pad = max(16, int(power_of_two(int(network.widths[1:].max()))))
        self._half = model.n >= HALF_FROM
        few = coding.cards.max() <= 2 and self._pad <= 128 and self._half  # registers that it takes
        most = _BLOCK if few else _BLOCK_MANY
        self._block = most if coding.n >= _BLOCK else 16
        self._shape: dict[str, Any] = {
            "HIDDEN": bool(coding.hidden_value.any()), "DEPTH": self._depth, "P": self._pad,
            "MAXF": int(np.diff(coding.feature_start).max(initial=0)),
            "H": int(network.widths[1]), "TOP": int(network.widths[-1]),
        }  # fmt: skip
        self._most = int(coding.outputs.max(initial=0))
        self._one_each = coding.features == coding.n and bool((coding.cards == 2).all())
        self._values = int(power_of_two(int(coding.cards.max()) - 1))
        if self._values > 1:
            self._values = int(power_of_two(int(coding.cards.max())))
        second = self._pad if self._depth == 2 else 0
        heads = coding.features + second
        biases = heads + logits
        tops = biases + self._depth
        self._rows = SharedRows(
            coding.features, heads, biases, tops, tops + 1 + logits // self._pad
        )
        self._wide = min(self._pad, -(-int(network.widths[1:].max()) // 16) * 16)  # whole 64 bytes
        self._stride = -(-int(network.widths[1:].max()) // 8) * 8  # whole 16 bytes
        self._schedule = _SCHEDULE if few else _SCHEDULE_OTHER
        self._middle = self._depth == 2 and bool(network.rates[1].any())
        # Slopes are at most about (|A| + beta) / B, and a few times that if ratios are above 1.
        scale = max(map(abs, model.config.utility)) + model.config.beta
        self._unit = 2.0 ** (8 - math.frexp(scale / model.config.population)[1])
        self._kept_work: SharedWork | None = None

    def conditionals(self, policy: Policy, points: Codes, keys: UIntArray | None = None) -> Floats:
        """Return the distribution of every variable given the ones before it, or all others."""
        runs, count, n = points.shape
        probs = torch.empty((runs, count, self.model.values), device=self.device)
        order = np.broadcast_to(np.arange(n), points.shape)
        if keys is not None:
            order = np.argsort(keys, axis=-1, kind="stable")
        self._walk(
            policy.theta, self.rows([0] * runs), self.put(np.ascontiguousarray(points, np.int32)),
            probs, self.put(order.astype(np.int32)), DRAW=False, OTHERS=keys is None,
        )  # fmt: skip
        return host(probs)

    def initialize(
        self, theta: Tensor, runs: Tensor, only_restarting: bool = False, first: int = 0
    ) -> None:
        """Initialize the parameters of all runs, or of the runs with the status RESTARTING."""
        blocks = -(-self.model.parameters // _PARAMETERS_AT_ONCE)
        if blocks:
            shared.initialize[(blocks, len(theta))](
                theta, runs, self._sizes, self._offsets, self._widths,
                ONLY_RESTARTING=only_restarting, FIRST=first, LAYERS=self._depth + 1,
                BLOCK=_PARAMETERS_AT_ONCE,
            )  # fmt: skip

    def draw(
        self, theta: Tensor, runs: Tensor, points: Tensor, probs: Tensor, drop: bool,
        given: Tensor = None,
    ) -> None:  # fmt: skip
        """Draw candidates (R, count, n) and their distributions (R, count, V), as `sample` does.

        `given`, (R, count, n), are places of the variables in the orders.
        """
        size, count, _ = points.shape
        if given is not None:
            orders = torch.argsort(given, dim=-1).to(torch.int32)
        elif self.model.config.generation_order == "fixed":
            orders = self._fixed_orders(size, count)
        else:
            orders = self._sort(runs, 1, count, order_kernels.SAMPLING.value, runs)
        self._walk(theta, runs, points, probs, orders, DRAW=True, OTHERS=False)

    def orders(
        self, runs: Tensor, count: int, stamps: Tensor = None, into: Tensor = None
    ) -> Tensor:
        """Return the orders under which `learn` trains, (R, epochs or 1, count, n)."""
        config, size = self.model.config, len(runs)
        if config.training_order == "fixed":
            return self._fixed_orders(size, count)
        else:
            kind = _ORDERS[config.training_order]
            epochs = config.epochs if kind is order_kernels.RANDOM else 1
            stamps = runs if stamps is None else stamps
            return self._sort(runs, epochs, count, kind.value, stamps, into)

    def given_orders(self, keys: UIntArray) -> Tensor:
        """Return the training orders of sort keys (R, B, n); they are the same in all epochs."""
        return self.put(np.argsort(keys, axis=-1, kind="stable").astype(np.int32)[:, None])

    def learn(
        self, policy: Policy, runs: Tensor, points: Tensor, old: Tensor, advantages: Tensor,
        weights: Tensor, orders: Tensor, drop: bool, most_steps: int = 0,
    ) -> None:  # fmt: skip
        """Do what `train` does; advantages and weights may be expanded views."""
        config, shape = self.model.config, self._shape
        size, count, n = points.shape
        kept = config.adam == "kept"
        data = arguments.Data(
            points, points, old, advantages, weights, count, *advantages.stride(), *weights.stride()
        )
        training = self._training(most_steps if kept else 0)
        work = self._work(size, count)
        pairs = [(policy.theta, work.w)]
        if kept:
            pairs += [(policy.m, work.m), (policy.v, work.v)]
        for flat, rows in pairs:
            self._arrange(flat, rows, back=False)
        if self._half:
            work.weights.copy_(work.w)
        parameters = arguments.Parameters(work.w, work.m, work.v, work.v)
        model, unit = (self._tables, self._sizes, self._rows), self._unit
        size_of = {name: shape[name] for name in ("DEPTH", "P")}
        widths = {name: shape[name] for name in ("H", "TOP")}
        half, block, most = {"HALF": self._half}, self._block, shape["MAXF"]
        log = config.objective == "log"
        stride, units = self._stride, min(_UNITS, self._pad)
        shared_training.prepare[(-(-n // _PREPARED), count, size)](
            runs, data, work, *model[:2], config.beta, unit, LOG=log, MAXF=most,
            VP=self._values, T=_PREPARED,
        )  # fmt: skip
        for epoch in range(config.epochs):
            order = (orders, epoch % orders.shape[1], orders.shape[1])
            shared_training.full_contexts[(-(-count // 16), self._pad // units, size)](
                runs, data, work, *model, P=self._pad, C=16, K=_FEATURES, U=units, num_stages=3
            )
            shared_training.sweep[(count, size)](
                runs, data, *order, work, *model, config.beta, unit,
                BERNOULLI=config.kl == "bernoulli", LOG=log, MIDDLE=self._middle,
                ONE_EACH=self._one_each, MAXF=most, VP=self._values, S=stride, T=block,
                **self._schedule, **size_of, **half,
            )  # fmt: skip
            if self._middle:
                shared_training.middle[(count, size)](
                    runs, data, work, self._sizes, unit, P=self._pad, S=stride, T=block,
                    num_warps=8,
                )  # fmt: skip
            shared_update.update_variables[(-(-n // _VARIABLES), size)](
                parameters, runs, data, work, epoch, training, *model, unit,
                HIDDEN=shape["HIDDEN"], KEPT=kept, WIDE=self._wide, MAXF=most, MAXO=self._most,
                S=stride, T=_VARIABLES, U=_READ_AT_ONCE, **size_of, **half,
            )  # fmt: skip
            shared_update.update_layers[(self._pad // 16, size)](
                parameters, runs, data, work, epoch, training, self._rows, MIDDLE=self._middle,
                KEPT=kept, T=16, U=_READ_AT_ONCE, **size_of, **widths, **half,
            )  # fmt: skip
        for flat, rows in pairs:
            self._arrange(flat, rows, back=True)

    def _arrange(self, flat: Tensor, rows: Tensor, back: bool) -> None:
        """Copy parameters (R, parameters) to the rows of training, or back."""
        network, at, size = self.model.network, 0, len(flat)
        first = (0, self._rows.second, self._rows.heads)
        ends = rows[:, self._rows.tops :].reshape(size, -1)
        for k, (inputs, outputs) in enumerate(network.shapes):
            last, end = k == self._depth, at + inputs * outputs
            begin = self._rows.heads if last else first[k]
            high, wide = (inputs, outputs) if k == 0 else (outputs, inputs)
            biases = ends[:, :outputs] if last else rows[:, self._rows.biases + k, :outputs]
            for one, other in (
                (flat[:, at:end].view(size, high, wide), rows[:, begin : begin + high, :wide]),
                (flat[:, end : end + outputs], biases),
            ):
                one.copy_(other) if back else other.copy_(one)
            at = end + outputs

    def memory_of(self, runs: int, budget: int) -> int:
        """Return approximately how many bytes `runs` runs take on the device."""
        model, config, pad = self.model, self.model.config, self._pad
        orders = config.epochs if config.training_order == "random" else 1
        wide = self._stride * (4 if self._middle else 2)  # rows of activations and slopes
        stored = model.n * (wide // 2 if self._half else wide)
        stored += (3 + (pad if self._middle else 0)) * pad
        words = model.parameters + 4 * self._rows.total * pad + config.population * stored
        words += config.population * (6 * model.n + self._sizes.features + self._sizes.logits)
        words += 6 * orders * config.population * model.n  # sorting takes keys and places as int64
        return int(runs * (4 * words + 9 * budget))

    def _walk(self, theta: Tensor, runs: Tensor, points: Tensor, probs: Tensor, orders: Tensor,
              **kind: bool) -> None:  # fmt: skip
        size, count, _ = points.shape
        shared.walk[(-(-count // _CANDIDATES), size)](
            points, probs, theta, runs, orders, self._tables, self._sizes, self._offsets, count,
            VP=self._values, C=_CANDIDATES, num_warps=8 if self._pad > 64 else 4, **kind,
            **self._shape,
        )  # fmt: skip

    def _fixed_orders(self, size: int, count: int) -> Tensor:
        n = self.model.n
        order = torch.arange(n, dtype=torch.int32, device=self.device)
        return order.expand(size, 1, count, n).contiguous()

    def _sort(
        self, runs: Tensor, epochs: int, count: int, kind: int, stamps: Tensor, into: Tensor = None
    ) -> Tensor:
        n, shape = self.model.n, (len(runs), epochs, count, self.model.n)
        grid, each = (epochs, count, len(runs)), self.model.config.order_per == "candidate"
        padded = max(16, int(power_of_two(n)))
        if into is None:
            into = torch.zeros(shape, dtype=torch.int32, device=self.device)
        if n <= _SORTED:
            order_kernels.sorted_orders[grid](
                into, runs, stamps, n, count, KIND=kind, PER_CANDIDATE=each, NP=padded,
                num_warps=max(1, min(8, padded // _SORTED_BY_A_WARP)),
            )  # fmt: skip
        else:
            keys = torch.zeros(shape, dtype=torch.int64, device=self.device)
            order_kernels.order_keys[grid](
                keys, runs, stamps, n, count, KIND=kind, PER_CANDIDATE=each,
                BLOCK=min(_KEYS_AT_ONCE, padded),
            )  # fmt: skip
            into.copy_(torch.argsort(keys, dim=-1, stable=True))
        return into

    def _work(self, size: int, count: int) -> SharedWork:
        """Return the memory of training, kept since a recorded generation uses its addresses."""
        n, pad, logits = self.model.n, self._pad, max(1, self._sizes.logits)
        if self._kept_work is None or self._kept_work.places.shape[:2] != (size, count):
            rows, each, none = (self._rows.total, pad), (count, n, self._stride), (1,)
            real, half = torch.float32, torch.float16 if self._half else torch.float32
            kinds = {
                "w": (rows, real), "m": (rows, real), "v": (rows, real),
                "weights": (rows if self._half else none, half),
                "deltas": ((count, max(1, self._sizes.features)), real),
                "terms": ((count, n, shared_training.TERMS.value), real),
                "contexts": ((count, pad), real), "tops": (each, half), "sums": (each, half),
                "places": ((count, n), torch.int32), "slopes": ((count, logits), real),
                "biases": ((count, 2, pad), real),
                "lows": (each if self._middle else none, half),
                "falls": (each if self._middle else none, half),
                "middle": ((count, pad, pad) if self._middle else none, real),
            }  # fmt: skip
            work = SharedWork(**{
                name: torch.zeros((size, *shape), device=self.device, dtype=kind)
                for name, (shape, kind) in kinds.items()
            })  # fmt: skip
            if not self._half:
                work = work._replace(weights=work.w)
            self._kept_work = work
        return self._kept_work
