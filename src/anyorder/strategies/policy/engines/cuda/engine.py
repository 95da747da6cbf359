"""`CudaEngine`: the engine `cuda` for separate networks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from anyorder.strategies.policy.engines.base import Codes, Floats, Policy
from anyorder.strategies.policy.engines.cuda.device import (
    DeviceEngine,
    Tensor,
    host,
    not_empty,
    places_of,
)
from anyorder.strategies.policy.engines.cuda.kernels import (
    arguments,
    general,
    initial,
    registers,
    sample,
)
from anyorder.strategies.policy.engines.cuda.kernels import orders as order_kernels
from anyorder.strategies.policy.engines.cuda.shapes import (
    MAX_VALUES,
    Group,
    first_layer_shape,
    general_shape,
    padded_inputs,
    power_of_two,
    register_shape,
    stored_size,
)
from anyorder.strategies.policy.model import Model
from anyorder.strategies.policy.networks import SeparateNetworks
from anyorder.strategies.policy.rng import UIntArray

_PARAMETERS_AT_ONCE = 1024  # the number of initial parameters that a program draws
_KEYS_AT_ONCE = 32  # the number of sort keys that a program compares with all others
# Weights that a sampling program reads at once. Networks up to the first size are read before they
# are needed; those up to the second size when they are, which leaves room for more programs.
_SAMPLE_TILE, _WHOLE = 4096, 32768
_MOST_HELD = 1024  # a default network with at most so many inputs is read in one piece
_MAX_INPUTS = 8192
_ROWS = 16  # the number of candidates of a program that computes conditionals
_ORDERS = {
    "random": order_kernels.RANDOM,
    "generation": order_kernels.AS_SAMPLED,
    "fixed": order_kernels.FIXED,
}


@dataclass(frozen=True)
class Orders:
    """The ranks of variables in training orders.

    Attributes
    ----------
    ranks, keys
        `(R, epochs, B, F)` and `(R, epochs, B, n)`, padded: the ranks, and the keys they rank.
    run_stride, epoch_stride
        The distances between consecutive runs and epochs; 0 if all epochs have the same orders.
    """

    ranks: Tensor
    keys: Tensor
    run_stride: int
    epoch_stride: int


class CudaEngine(DeviceEngine):
    """The engine `cuda`: float32, many runs in one launch."""

    def __init__(self, model: Model[SeparateNetworks]) -> None:
        config, coding, network = model.config, model.coding, model.network
        if max(coding.n, coding.features) > _MAX_INPUTS:
            raise ValueError(
                f"the space has {coding.n} variables with {coding.features} inputs, expected at "
                f"most {_MAX_INPUTS} of each for engine='cuda'; engine='cpu' has no such limit"
            )
        super().__init__(model)
        self.model = model
        self._depth = len(network.widths) - 1
        self._tables = arguments.Tables(
            # (a constant has no network, but one is read ahead for it anyway: any network will do)
            begins=self.put(np.where(coding.outputs > 0, network.theta_start[:-1], 0)),
            value_start=self.put(coding.value_start[:-1].astype(np.int32)),
            feature_start=self.put(coding.feature_start[:-1].astype(np.int32)),
            outputs=self.put(coding.outputs.astype(np.int32)),
            floors=self.put(coding.floor.astype(np.float32)),
            owner=self.put(not_empty(coding.owner).astype(np.int32)),
            code_base=self.put(not_empty(coding.code_base).astype(np.int32)),
            codes=self.put(coding.codes),
            hidden_value=self.put(not_empty(coding.hidden_value)),
            widths=self.put(network.widths.astype(np.int32)),
            graph=self.put(
                np.zeros(1, np.int8) if model.graph is None else model.graph.astype(np.int8)
            ),
        )
        self._sizes = arguments.Sizes(coding.n, coding.features, coding.values, network.parameters)
        many = coding.outputs > MAX_VALUES
        logits = np.where(many, power_of_two(coding.outputs), coding.outputs)
        self._groups = [
            Group(int(size), self.put(np.flatnonzero(logits == size).astype(np.int32)))
            for size in np.unique(logits[logits > 0])
        ]
        self._inputs = padded_inputs(model)
        self._one_each = coding.features == coding.n and bool((coding.cards == 2).all())
        self._unordered = config.training_order == "none" or coding.features == 0
        self._squares = model.loss == "squares"
        self._gibbs = config.generation_order == "gibbs"

    def conditionals(self, policy: Policy, points: Codes, keys: UIntArray | None = None) -> Floats:
        """Return the distribution of every variable given the ones before it, or all others."""
        coding, (runs, count, _) = self.model.coding, points.shape
        probs = torch.ones((runs, count, self.model.values), device=self.device)
        stored: Tensor = None
        if keys is not None and coding.features:
            ranks = np.zeros((runs, count, self._inputs), np.int16)
            ranks[..., : coding.features] = places_of(keys)[..., coding.owner]
            stored = self.put(ranks)
        rows, at = self.rows([0] * runs), self.put(np.ascontiguousarray(points))
        self.estimate(policy.theta, rows, at, probs, stored)
        return host(probs)

    def initialize(
        self, theta: Tensor, runs: Tensor, only_restarting: bool = False, first: int = 0
    ) -> None:
        """Initialize parameters, see `DeviceEngine`."""
        model = self.model
        if model.parameters == 0:
            return
        blocks = -(-int(np.diff(model.network.theta_start).max()) // _PARAMETERS_AT_ONCE)
        initial.initialize[(model.n, blocks, len(theta))](
            theta, runs, self._tables, self._sizes, ONLY_RESTARTING=only_restarting, FIRST=first,
            DEPTH=self._depth, BLOCK=_PARAMETERS_AT_ONCE,
        )  # fmt: skip

    def draw(
        self, theta: Tensor, runs: Tensor, points: Tensor, probs: Tensor, drop: bool,
        given: Tensor = None,
    ) -> None:  # fmt: skip
        """Draw candidates (R, count, n) and their distributions (R, count, V), as `sample` does.

        With given orders, `given` are the places (R, count, n) of the variables in them.
        """
        model, config = self.model, self.model.config
        size, count, n = points.shape
        places = max((group.places for group in self._groups), default=1)
        wide, padded = (
            power_of_two(max(model.network.widths[1:], default=1)),
            max(16, power_of_two(n)),
        )
        widest = max(self._inputs, wide if self._depth > 1 else 1, places)
        size_1 = wide * max(self._inputs, places)
        sweeps = config.gibbs_sweeps if self._gibbs else 1
        whole = self._depth == 1 and model.parameters > 0 and size_1 <= _WHOLE
        large = 4 if self._inputs > _MOST_HELD else 1  # more warps for more units at once
        units = max(1, min(wide, large * _SAMPLE_TILE // widest))
        scratch = torch.empty(size * count * (2 * padded + 2 * wide), device=self.device)
        width = int(model.network.widths[1]) if self._depth else 0
        copy = theta
        if whole:
            copy = torch.empty(size * n * model.coding.features * width, device=self.device)
            initial.transpose_first_layer[(n, size)](
                copy, theta, runs, self._tables, self._sizes, F=model.coding.features,
                WIDTH=width, HP=wide, BLOCK=64,
            )  # fmt: skip
        sample.sample[(count, size)](
            points, probs, scratch, theta, copy, points if given is None else given, runs,
            self._tables, self._sizes, sweeps, F=model.coding.features, WIDTH=width,
            ONE_EACH=self._one_each, FIXED=config.generation_order in ("fixed", "gibbs"),
            GIVEN=given is not None, PER_CANDIDATE=config.order_per == "candidate",
            GIBBS=sweeps > 1, GRAPH=model.graph is not None, DROP=drop, DEPTH=self._depth,
            FP=self._inputs, HP=wide, NP=padded, OP=places, UNITS=units, WHOLE=whole,
            AHEAD=whole and size_1 <= _SAMPLE_TILE,
            ZERO=not model.coding.hidden_value.any(),
            BLOCK=max(4, min(_KEYS_AT_ONCE, 4096 // padded)),
            num_warps=4 * max(1, size_1 // (2 * _SAMPLE_TILE)) if whole else 4 * large,
        )  # fmt: skip
        if self._gibbs:  # compute the distributions given the final values of all others
            self.estimate(theta, runs, points, probs)

    def estimate(
        self, theta: Tensor, runs: Tensor, points: Tensor, probs: Tensor, ranks: Tensor = None
    ) -> None:
        """Write `conditionals` of candidates (R, count, n) into distributions (R, count, V).

        `ranks`, (R, count, padded F), are as in `Orders`; without them every variable sees all
        others. For a critic, estimates are written instead of distributions; entries of constants
        are not changed.
        """
        size, count, _ = points.shape
        all_others = ranks is None or self.model.coding.features == 0
        blocks = -(-count // _ROWS)
        for group in self._groups:
            shape = general_shape(self.model, _ROWS, group)
            scratch = torch.empty(size * self._estimate_words(count, group), device=self.device)
            general.conditionals[(len(group.variables), size, blocks)](
                theta, probs, runs, points, points if ranks is None else ranks, scratch,
                self._tables, self._sizes, group.variables, count, DEPTH=self._depth,
                SEEN=(general.OTHERS if all_others else general.EARLIER).value,
                GRAPH=self.model.graph is not None, SQUARES=self._squares, FP=self._inputs,
                OP=group.places, **shape,
            )  # fmt: skip

    def _estimate_words(self, count: int, group: Group) -> int:
        """Return the size of `estimate`'s scratch memory for one run."""
        programs = len(group.variables) * -(-count // _ROWS)
        width = general_shape(self.model, _ROWS, group)["HP"]
        return programs * (self._depth + 1) * _ROWS * width

    def orders(
        self, runs: Tensor, count: int, stamps: Tensor = None, into: Orders | None = None,
        order: str | None = None,
    ) -> Orders:  # fmt: skip
        """Return the orders under which `learn` trains, or those of another `training_order`.

        They only depend on seeds and generations.
        """
        model, config, size = self.model, self.model.config, len(runs)
        if self._unordered:
            nothing = torch.empty(1, dtype=torch.int16, device=self.device)
            return Orders(nothing, nothing, 0, 0)
        kind = _ORDERS[order or config.training_order]
        if kind is order_kernels.AS_SAMPLED and config.generation_order == "fixed":
            kind = order_kernels.FIXED
        epochs = config.epochs if kind is order_kernels.RANDOM else 1
        shape, padded = (size, epochs, count), max(16, power_of_two(model.n))
        if into is None:
            step = count * self._inputs
            into = Orders(
                torch.empty((*shape, self._inputs), dtype=torch.int16, device=self.device),
                torch.empty((*shape, padded), dtype=torch.uint32, device=self.device),
                epochs * step,
                step if epochs > 1 else 0,
            )
        order_kernels.training_ranks[(epochs, count, size)](
            into.ranks, into.keys, runs, runs if stamps is None else stamps,
            self._tables, self._sizes, count, KIND=kind.value,
            PER_CANDIDATE=config.order_per == "candidate",
            ALL=bool((np.diff(model.coding.feature_start) > 0).all()), FP=self._inputs, NP=padded,
            BLOCK=max(4, min(_KEYS_AT_ONCE, 4096 // self._inputs)),
        )  # fmt: skip
        return into

    def given_orders(self, keys: UIntArray) -> Orders:
        """Return the training orders of sort keys (R, B, n); they are the same in all epochs."""
        model, (size, count, _) = self.model, keys.shape
        ranks = np.full((size, count, self._inputs), order_kernels.ALWAYS_SEEN.value, np.int32)
        top = order_kernels.TOP.value
        ranks[..., : model.coding.features] = places_of(keys)[..., model.coding.owner] + top
        stored = self.put(ranks.astype(np.uint16).view(np.int16))
        return Orders(stored, stored, count * self._inputs, 0)

    def learn(
        self, policy: Policy, runs: Tensor, points: Tensor, old: Tensor, advantages: Tensor,
        weights: Tensor, orders: Orders, drop: bool, most_steps: int = 0,
    ) -> None:  # fmt: skip
        """Do what `train` does; advantages and weights may be expanded views."""
        model, config = self.model, self.model.config
        size, count, _ = points.shape
        kept = config.adam == "kept"
        data = arguments.Data(
            points, points, old, advantages, weights, count, *advantages.stride(), *weights.stride()
        )
        ranks = arguments.Ranks(orders.ranks, orders.run_stride, orders.epoch_stride)
        training = self._training(most_steps if kept else 0)
        parameters = arguments.Parameters(policy.theta, policy.m, policy.v, policy.v)
        kind = {
            "GRAPH": model.graph is not None, "DROP": drop, "KEPT": kept,
            "BERNOULLI": config.kl == "bernoulli", "LOG": config.objective == "log",
            "SQUARES": self._squares,
        }  # fmt: skip
        for group in self._groups:
            grid = (len(group.variables), size)
            shape = register_shape(model, count, group)
            if shape is not None:
                tiles = policy.v
                if shape["STORED"]:
                    tiles = torch.empty(grid[0] * size * stored_size(shape), device=self.device)
                registers.train[grid](
                    parameters._replace(tiles=tiles), runs, data, ranks, training, self._tables,
                    self._sizes, group.variables, float(model.coding.hidden_value[0]),
                    model.coding.features,
                    HIDDEN=int(model.network.widths[1]), D=group.logits,
                    ORDERED=not self._unordered, **kind, **shape,
                )  # fmt: skip
                continue
            shape = general_shape(model, max(16, power_of_two(count)), group)
            shape |= first_layer_shape(model)
            if shape["READY"] and data.inputs is points:
                data = data._replace(inputs=self.ready_inputs(points))
            if not kept and parameters.m.shape[1] == 0:  # moments are in memory there
                m, v = torch.empty_like(policy.theta), torch.empty_like(policy.theta)
                parameters = parameters._replace(m=m, v=v)
            seen = general.OTHERS if self._unordered else general.EARLIER
            self._train_in_memory(
                group, parameters, runs, data, ranks, training, SEEN=seen.value, **kind, **shape
            )

    def _train_in_memory(
        self, group: Group, parameters: arguments.Parameters, runs: Tensor, data: arguments.Data,
        ranks: arguments.Ranks, training: arguments.Training, **shape: int,
    ) -> None:  # fmt: skip
        grid, rows = (len(group.variables), len(runs)), 2 * self._depth + 2
        scratch = torch.empty(
            grid[0] * grid[1] * rows * shape["C"] * shape["HP"], device=self.device
        )
        general.train[grid](
            parameters, runs, data, ranks, training, self._tables, self._sizes, group.variables,
            scratch, DEPTH=self._depth, FP=self._inputs, OP=group.places, **shape,
        )  # fmt: skip

    def ready_inputs(self, points: Tensor) -> Tensor:
        """Return the inputs (R, B, F padded) of candidates before masking."""
        size, count, _ = points.shape
        inputs = torch.empty((size, count, self._inputs), device=self.device)
        general.ready_inputs[(count, size)](
            inputs, points, self._tables, self._sizes, FP=self._inputs,
            BLOCK=min(1024, self._inputs),
        )  # fmt: skip
        return inputs

    def memory_of(self, runs: int, budget: int) -> int:
        """Return approximately how many bytes `runs` runs take on the device."""
        model, config = self.model, self.model.config
        learned = config.training_order == "learned"  # moments from one epoch to the next
        kept = config.adam == "kept" or learned or "memory" in self.path(config.population)
        copies = 3 if kept else 1
        copies += self._depth == 1  # the first layer, transposed
        orders = config.epochs if config.training_order == "random" else 1
        population = config.population
        rows = 2 * population * (model.values + model.n + self._inputs + 1024)
        for group in self._groups:
            shape = register_shape(self.model, population, group)
            if shape is not None:
                rows += len(group.variables) * stored_size(shape)
            if shape is None or learned:
                shape = general_shape(self.model, max(16, int(power_of_two(population))), group)
                rows += (2 * self._depth + 2) * len(group.variables) * shape["C"] * shape["HP"]
        if learned:  # relaxed sorts, the noise of all epochs, and vectors
            rows += population * model.n * (3 * model.n + 2 * config.epochs + 16)
        words = copies * model.parameters + rows
        # networks like these a second time, or smaller ones if there are many values
        if config.critic is not None:
            words, orders = 2 * words, orders + 1
        words += orders * population * (self._inputs // 2 + int(power_of_two(model.n)))
        if self._gibbs or config.critic is not None:
            words += sum(self._estimate_words(population, group) for group in self._groups)
        return int(runs * (4 * words + 9 * budget))

    def path(self, count: int) -> tuple[str, ...]:
        """Return which kernel trains each group of variables: "registers" or "memory"."""
        shapes = [register_shape(self.model, count, group) for group in self._groups]
        return tuple("memory" if shape is None else "registers" for shape in shapes)
