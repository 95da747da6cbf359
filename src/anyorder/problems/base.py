"""The base class of problems, and the check of their points."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anyorder.space import Space

Graph = NDArray[np.bool_]
Kernel = Callable[[Any], Any]  # maps torch tensors: points (P, m, n) to float64 values (P, m)

# Values are computed for this many variables at a time, so that memory stays bounded for any batch
# and a block stays in the cache.
_BLOCK = 1 << 17

# The same for an accelerator, which needs more work at once to be busy.
_DEVICE_BLOCK = 1 << 20


class Problem(ABC):
    """A function of integer vectors, to be maximised, with what is known about it.

    A subclass implements `_values`, and optionally `interaction_graph`, and `_kernel` for torch.

    Attributes
    ----------
    name : the name for `anyorder.problems.get`, e.g. ``nk:n=128,k=4,seed=3``.
    space : the space of its points, which has no names.
    seed : the seed of the instance, or None.
    optimum : the maximum, if it is known exactly.
    best_known : the best value that anyone has reported, at least the optimum if that is known.
    source : where `best_known` comes from.
    """

    direction: Literal["maximize"] = "maximize"

    def __init__(
        self,
        name: str,
        space: Space,
        *,
        seed: int | None = None,
        optimum: float | None = None,
        best_known: float | None = None,
        source: str | None = None,
    ) -> None:
        self.name = name
        self.space = space
        self.seed = seed
        self.optimum = optimum
        self.best_known = optimum if best_known is None else best_known
        self.source = source
        self._limits = np.asarray(space.cardinalities)
        self._lowest_limit = int(self._limits.min())
        self._kernels: dict[Any, Kernel] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # A subclass that changes only the function must not inherit a kernel that computes the old
        # one.
        if "_values" in vars(cls) and "_kernel" not in vars(cls):
            cls._kernel = Problem._kernel  # type: ignore[method-assign]

    def __getstate__(self) -> dict[str, Any]:
        # Kernels belong to this process and its devices; a copy makes its own kernels.
        return {**self.__dict__, "_kernels": {}}

    def __call__(self, point: ArrayLike) -> float:
        """Return the value of one point, an integer vector."""
        x = np.asarray(point)
        if x.ndim != 1:
            raise ValueError(
                f"{self.name}: a point of shape {x.shape}, expected ({len(self.space)},); "
                "use evaluate for a batch"
            )
        return float(self._values(self._check(x)[None])[0])

    @overload
    def evaluate(self, points: NDArray[Any]) -> NDArray[np.float64]: ...
    @overload
    def evaluate(self, points: Any) -> Any: ...
    def evaluate(self, points: Any) -> Any:
        """Return the values (...) of integer points (..., n), in floating point.

        A torch tensor gives a float64 tensor on its device, computed there; any other points give a
        NumPy array. Constants are copied to a device at the first call. Later calls neither copy
        nor synchronise, so they can be captured into a CUDA graph. Values out of range are
        therefore only checked on the CPU; on other devices the result is undefined. A problem
        without a torch kernel is computed by NumPy, through a copy on the host.
        """
        if is_tensor(points):
            self._check_tensor(points)
            return run_kernel(self._kernels, [self], points[None])[0]
        x = self._check(np.asarray(points))
        rows = x.reshape(-1, x.shape[-1])
        values = np.empty(len(rows))
        step = max(1, _BLOCK // x.shape[-1])
        for start in range(0, len(rows), step):
            values[start : start + step] = self._values(rows[start : start + step])
        return values.reshape(x.shape[:-1])

    @property
    def on_device(self) -> bool:
        """Whether a tensor is evaluated on its device, without a copy on the host."""
        own = getattr(type(self)._kernel, "__func__", None)
        return own is not getattr(Problem._kernel, "__func__", None)

    def interaction_graph(self) -> Graph | None:
        """Return which variables interact: a symmetric n x n matrix, or None if this is not known.

        Two variables without an edge act additively, whatever the values of the others are.
        """
        return None

    @abstractmethod
    def _values(self, points: NDArray[Any]) -> NDArray[np.float64]:
        """Return the values of checked points (m, n) of any integer type."""

    @classmethod
    def _kernel(
        cls, problems: Sequence[Self], runs: NDArray[np.intp], device: Any
    ) -> Kernel | None:
        """Return a function that evaluates these instances together on a torch device, or None.

        The instances have the same space. `runs` says which rows of a batch belong to which
        instance.

        The kernel receives points (P, m, n) of any integer type or bool, where slice p holds points
        of ``problems[runs[p]]``, and returns their values (P, m) as float64. All constants are
        moved to the device here: the kernel must neither copy from the host nor wait for the
        device. Return None if these instances cannot be evaluated together; a single instance
        always can.
        """
        if len(problems) > 1:
            return None

        def through_host(points: Any) -> Any:
            import torch

            return torch.from_numpy(problems[0].evaluate(points.cpu().numpy())).to(device)

        return through_host

    def _check_form(self, shape: tuple[int, ...], dtype: Any, integers: bool) -> None:
        if not shape or shape[-1] != len(self.space):
            raise ValueError(
                f"{self.name}: points of shape {shape}, expected (..., {len(self.space)})"
            )
        if not integers:
            raise TypeError(f"{self.name}: points of type {dtype}, expected integers")

    def _check_tensor(self, points: Any) -> None:
        integers = not (points.is_floating_point() or points.is_complex())
        self._check_form(tuple(points.shape), points.dtype, integers)
        if points.device.type == "cpu":
            self._check(points.numpy())

    def _check(self, points: NDArray[Any]) -> NDArray[Any]:
        self._check_form(points.shape, points.dtype, points.dtype.kind in "biu")
        if points.dtype.kind == "b":
            points = points.astype(np.int8)
        # Two passes without temporaries; the full comparison is only made if they leave a doubt.
        if points.size and (points.min() < 0 or points.max() >= self._lowest_limit):
            bad = np.argwhere((points < 0) | (points >= self._limits))
            if len(bad):
                where = tuple(bad[0])
                raise ValueError(
                    f"{self.name}: variable {where[-1]} is {points[where]}, "
                    f"expected 0 to {self._limits[where[-1]] - 1}"
                )
        return points

    def __repr__(self) -> str:
        return f"<problem {self.name}>"


def is_tensor(points: Any) -> bool:
    """Return whether the points are a torch tensor; torch is not imported."""
    return isinstance(points, getattr(sys.modules.get("torch"), "Tensor", ()))


def distinct(problems: Sequence[Problem]) -> tuple[list[Problem], NDArray[np.intp]]:
    """Return every instance once, and the position of each problem among them."""
    instances = {id(problem): problem for problem in problems}
    position = {key: i for i, key in enumerate(instances)}
    runs = np.array([position[id(problem)] for problem in problems], dtype=np.intp)
    return list(instances.values()), runs


def run_kernel(kernels: dict[Any, Kernel], problems: Sequence[Problem], points: Any) -> Any:
    """Return the values (P, ...) of a tensor (P, ..., n) whose slice p is for problems[p].

    `kernels` stores the kernel of these problems for each device.
    """
    import torch

    count, *batch, n = points.shape
    if points.device not in kernels:
        kernels[points.device] = _choose_kernel(problems, points.device)
    kernel = kernels[points.device]
    rows = points.reshape(count, math.prod(batch), n)
    block = _BLOCK if points.device.type == "cpu" else _DEVICE_BLOCK
    parts = rows.split(max(1, block // (count * n)), dim=1)
    return torch.cat([kernel(part) for part in parts], dim=1).reshape(points.shape[:-1])


def _choose_kernel(problems: Sequence[Problem], device: Any) -> Kernel:
    """Return the kernel of the problems' class, or a function that evaluates them one by one."""
    instances, runs = distinct(problems)
    kind = type(instances[0])
    if all(type(instance) is kind for instance in instances):
        kernel = kind._kernel(instances, runs, device)
        if kernel is not None:
            return kernel

    def one_by_one(points: Any) -> Any:
        import torch

        return torch.stack([p.evaluate(x) for p, x in zip(problems, points, strict=True)])

    return one_by_one
