"""The network and the objective of one variable, in plain NumPy: eq. (8), its gradient, and Adam.

The reference engine computes with these functions; the compiled engines are tested against it.
Equation numbers are the paper's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anyorder.strategies.policy.engines.base import Codes, Floats
from anyorder.strategies.policy.orders import Bools

# --- the network of one variable --------------------------------------------------------------


def forward(layers: Sequence[tuple[Floats, Floats]], x: Floats) -> list[Floats]:
    """Return the activations of every layer of g_i for inputs (B, F); the last are the logits."""
    activations = [x]
    for k, (weights, biases) in enumerate(layers):
        z = activations[-1] @ weights.T + biases
        activations.append(np.tanh(z) if k < len(layers) - 1 else z)
    return activations


def raw_probabilities(logits: Floats, some: Bools | None = None) -> Floats:
    """Return the sigmoid of one logit, or the softmax of d logits, (B, d).

    With `some` (B, d), only these values count.
    """
    if some is not None:
        logits = np.pad(logits, ((0, 0), (1, 0))) if logits.shape[1] == 1 else logits
        logits = np.where(some, logits, -np.inf)
    elif logits.shape[1] == 1:
        one = 1.0 / (1.0 + np.exp(-logits))
        return np.concatenate([1.0 - one, one], axis=1)
    power = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(power / power.sum(axis=1, keepdims=True))


def clip(raw: Floats, floor: float, some: Bools | None = None) -> Floats:
    """Return probabilities clipped to [epsilon, 1 - epsilon]; those of masked values stay 0."""
    clipped = np.minimum(np.maximum(raw, floor), 1.0 - floor)  # np.clip takes three times as long
    return clipped if some is None else clipped * some


def probabilities(logits: Floats, floor: float, some: Bools | None = None) -> Floats:
    """Return pi(. | context): clipped to [epsilon, 1 - epsilon], then renormalised."""
    clipped = clip(raw_probabilities(logits, some), floor, some)
    return np.asarray(clipped / clipped.sum(axis=1, keepdims=True))


# --- the objective of one variable ------------------------------------------------------------


def kl_divergence(old: Floats, new: Floats, kind: str) -> Floats:
    """Return d_KL(old || new) of each row: categorical, or a sum of Bernoulli divergences."""
    kl = old * np.log(quotient(old, new, 1.0))
    if kind == "bernoulli" and old.shape[1] > 2:
        kl = kl + (1.0 - old) * np.log(quotient(1.0 - old, 1.0 - new, 1.0))
    return np.asarray(kl.sum(axis=1))


def quotient(a: Floats, b: Floats, otherwise: float) -> Floats:
    """Return a / b, or `otherwise` where b is 0, as it is for masked values."""
    return np.divide(a, b, where=b != 0.0, out=np.full_like(a, otherwise))


def objective(
    layers: Sequence[tuple[Floats, Floats]],
    x: Floats,
    value: Codes,
    old: Floats,
    advantage: Floats,
    weight: Floats,
    floor: float,
    beta: float,
    kind: str,
    some: Bools | None = None,
    log: bool = False,
) -> float:
    """Return the term of variable k in eq. (8): the mean over candidates of ratio * A - beta * KL.

    With `log`, ln pi of the value replaces the ratio, as in the appendix on IGO. With `some` (B,
    d), only these values are allowed, and `old` is 0 elsewhere.
    """
    new = probabilities(forward(layers, x)[-1], floor, some)
    row = np.arange(len(value))
    gain = np.log(new[row, value]) if log else new[row, value] / old[row, value]
    term = weight * (gain * advantage - beta * kl_divergence(old, new, kind))
    return float(term.mean())


def gradient(
    layers: Sequence[tuple[Floats, Floats]],
    x: Floats,
    value: Codes,
    old: Floats,
    advantage: Floats,
    weight: Floats,
    floor: float,
    beta: float,
    kind: str,
    some: Bools | None = None,
    log: bool = False,
) -> list[tuple[Floats, Floats]]:
    """Return the gradient of `objective` with respect to the weights and biases of every layer."""
    activations = forward(layers, x)
    share = weight / len(value)
    slope = logit_slopes(
        activations[-1], value, old, advantage, share, floor, beta, kind, some, log
    )
    return backward(layers, activations, slope)


def logit_slopes(
    logits: Floats,
    value: Codes,
    old: Floats,
    advantage: Floats,
    weight: Floats,
    floor: float,
    beta: float,
    kind: str,
    some: Bools | None = None,
    log: bool = False,
) -> Floats:
    """Return the derivatives of a sum of weighted terms of the objective by logits (B, o)."""
    raw = raw_probabilities(logits, some)
    clipped = clip(raw, floor, some)
    total = clipped.sum(axis=1, keepdims=True)
    new = clipped / total
    row = np.arange(len(value))
    # the derivative d objective / d pi, value by value
    if kind == "bernoulli" and old.shape[1] > 2:
        slope = quotient(-beta * (new - old), new * (1.0 - new), 0.0)
    else:
        slope = quotient(beta * old, new, 0.0)
    slope[row, value] += advantage / (new if log else old)[row, value]
    slope *= weight[:, None]
    # back through the renormalisation, the clip (flat outside its bounds) and the softmax
    slope = (slope - (slope * new).sum(axis=1, keepdims=True)) / total
    slope *= (raw > floor) & (raw < 1.0 - floor)
    slope = raw * (slope - (slope * raw).sum(axis=1, keepdims=True))
    # the logit of the value 0 of a binary variable is constant
    return np.asarray(slope[:, 1:] if logits.shape[1] == 1 else slope)


def backward(
    layers: Sequence[tuple[Floats, Floats]], activations: Sequence[Floats], slope: Floats
) -> list[tuple[Floats, Floats]]:
    """Return gradients of every layer's weights and biases from the slopes of the logits."""
    result: list[tuple[Floats, Floats]] = []
    for (weights, _), entered in zip(reversed(layers), reversed(activations[:-1]), strict=True):
        result.append((slope.T @ entered, slope.sum(axis=0)))
        slope = (slope @ weights) * (1.0 - entered**2)  # unused after the first layer
    return result[::-1]


def critic_gradient(
    layers: Sequence[tuple[Floats, Floats]], x: Floats, target: Floats, weight: Floats
) -> list[tuple[Floats, Floats]]:
    """Return the gradient of -mean(weight * (target - V)^2); V is the network's output."""
    activations = forward(layers, x)
    error = target - activations[-1][:, 0]
    return backward(layers, activations, (2.0 * weight * error / len(target))[:, None])


def adam_step(
    parameter: Floats,
    m: Floats,
    v: Floats,
    gradient: Floats,
    step: int,
    rate: float,
    beta1: float,
    beta2: float,
    eps: float,
) -> None:
    """Take one step of gradient ascent by Adam (Kingma and Ba, Algorithm 1), in place."""
    m += (1.0 - beta1) * (gradient - m)
    v += (1.0 - beta2) * (gradient**2 - v)
    corrected_m, corrected_v = m / (1.0 - beta1**step), v / (1.0 - beta2**step)
    parameter += rate * corrected_m / (np.sqrt(corrected_v) + eps)
