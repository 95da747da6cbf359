"""A small L-BFGS within bounds, for smooth functions that cost more than the algorithm itself.

Nocedal and Wright, "Numerical Optimization" (2006), algorithm 7.4. Bounds are kept by projection.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Function = Callable[[Floats], tuple[float, Floats]]  # returns value and gradient

_MEMORY = 8  # the number of steps from which the curvature is estimated
_DECREASE = 1e-4  # the least decrease of a step, as a share of what the slope promises
_HALVINGS = 12  # how often a step is halved before it is given up
_FIRST = 1.0  # the length of the first step at most
_CLOSE = 1e-3  # it ends when the gradient is at most this large


def minimise(
    function: Function, start: Floats, low: Floats, high: Floats, iterations: int
) -> Floats:
    """Return the best point after at most `iterations` iterations."""
    x = np.clip(start, low, high)
    value, gradient = function(x)
    steps: list[Floats] = []
    changes: list[Floats] = []
    for _ in range(iterations):
        stuck = ((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0))
        downhill = np.where(stuck, 0.0, -gradient)
        if np.abs(downhill).max(initial=0.0) < _CLOSE:
            break
        direction = np.where(stuck, 0.0, _direction(downhill, steps, changes))
        slope = float(gradient @ direction)
        if slope >= 0:
            direction, slope = downhill, -float(downhill @ downhill)
            steps, changes = [], []
        length = 1.0 if steps else min(1.0, _FIRST / float(np.abs(direction).max()))
        for _ in range(_HALVINGS):
            new = np.clip(x + length * direction, low, high)
            new_value, new_gradient = function(new)
            if new_value <= value + _DECREASE * length * slope:
                break
            length *= 0.5
        else:
            break
        step, change = new - x, new_gradient - gradient
        if step @ change > 1e-10:
            steps, changes = [*steps, step][-_MEMORY:], [*changes, change][-_MEMORY:]
        x, value, gradient = new, new_value, new_gradient
    return x


def _direction(downhill: Floats, steps: list[Floats], changes: list[Floats]) -> Floats:
    """Return the quasi-Newton direction of descent."""
    q = downhill.copy()
    pairs = list(zip(steps, changes, strict=True))
    used = []
    for step, change in reversed(pairs):
        factor = (step @ q) / (step @ change)
        q -= factor * change
        used.append(factor)
    if pairs:
        step, change = pairs[-1]
        q *= (step @ change) / (change @ change)
    for (step, change), factor in zip(pairs, reversed(used), strict=True):
        q += (factor - (change @ q) / (step @ change)) * step
    return q
