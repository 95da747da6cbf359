"""Learned orders on the engine `cuda`, against NumPy and against themselves.

Without a GPU this file is skipped, and `test_interpreter.py` runs it with Triton's interpreter.
"""

from __future__ import annotations

import dataclasses
import os
from functools import partial

import numpy as np
import pytest
from conftest import Case, case, rms, stored
from test_learned_order import LEARNED, generation

import anyorder as ao
from anyorder.strategies.policy.engines import why_not
from anyorder.strategies.policy.learned_order import (
    LearnedOrder,
    RelaxedSort,
    gumbel,
    ranks,
    score_gradient,
)
from anyorder.strategies.policy.orders import order_keys
from anyorder.strategies.policy.rng import ORDER_G, ORDER_T

if (missing := why_not("cuda")) is not None:
    pytest.skip(missing, allow_module_level=True)
torch = pytest.importorskip("torch")
from anyorder.strategies.policy.engines.cuda import DeviceOrder  # noqa: E402 (it imports Triton)

pytestmark = pytest.mark.gpu
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
SIZE = {"n": 4, "batch": 4, "epochs": 2} if INTERPRETED else {"n": 9}
learned = partial(case, **LEARNED)

VARIANTS = {
    "mixed": learned(**SIZE),
    "binary, masked -1": learned(cards=(2,), masked_input=-1.0, **SIZE),
    "known graph": learned(graph=True, **SIZE),
    "two layers, weights": learned(hidden=(5, 4), weights=0.5, kl="bernoulli", **SIZE),
    "linear": learned(hidden=(), **SIZE),
}
every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())


def perturbed(order: DeviceOrder, noise: np.ndarray) -> tuple:
    """Relaxed sorts of perturbed scores (R, B, n), by kernels: scratch memory, places and ranks."""
    runs, count, _ = noise.shape
    rows = order.engine.rows(range(runs))
    relaxed, scores = order._get_scratch(runs, count), order.fresh(runs)
    places = torch.empty(noise.shape, dtype=torch.int32, device=order.engine.device)
    stored = torch.empty((runs, count, order._inputs), dtype=torch.int16, device=places.device)
    order._sort(relaxed, scores, order.engine.put(noise), places, stored, rows, True)
    order._relax(relaxed, rows, count)
    return rows, relaxed, places, stored


@pytest.mark.parametrize("n", [1, 9, 70] if INTERPRETED else [1, 9, 70, 200, 1000])
def test_relaxed_sorts(n):
    """Two tiles and more with 70 variables; scores that are equal, and far apart."""
    rng = np.random.default_rng(n)
    count = 2 if INTERPRETED else 5
    noise = 2.0 * rng.gumbel(size=(1, count, n))
    noise[:, 0, : n // 2] = np.round(noise[:, 0, : n // 2])
    slopes = rng.normal(size=(count, n, n))
    order = DeviceOrder(learned(cards=(2,), n=n).model)
    rows, relaxed, places, stored = perturbed(order, noise)
    np.testing.assert_array_equal(places.cpu(), ranks(noise))
    bits = stored.cpu().numpy().view(np.uint16)
    np.testing.assert_array_equal(bits[..., :n] - 0x8000, ranks(noise))
    assert (bits[..., n:] == 0x7FFF).all()
    sort = RelaxedSort(noise[0])
    found = relaxed.degrees.cpu().numpy()[0]
    np.testing.assert_allclose(found.transpose(0, 2, 1), sort.before, atol=2e-5)
    off = slopes * (1.0 - np.eye(n))  # as the kernel of the networks leaves them
    relaxed.degrees.copy_(order.engine.put(off.transpose(0, 2, 1).astype(np.float32))[None])
    order._differentiate(relaxed, rows, count)
    expected = sort.backward(slopes)
    allowed = 1e-4 * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(relaxed.gradients.cpu()[0], expected, atol=allowed)


@every_variant
def test_the_gradient_of_the_scores_is_that_of_numpy(variant):
    _, batch, noise = generation(variant)
    order, engine = DeviceOrder(variant.model), variant.engine("cuda")
    kept = variant.policy(engine)
    rows, relaxed, *_ = perturbed(order, noise)
    put = order.engine.put
    points, old, advantages, weights = (
        put(np.ascontiguousarray(array, dtype))
        for array, dtype in (
            (batch.points, np.int32), (batch.old, np.float32), (batch.advantages, np.float32),
            (batch.weights, np.float32),
        )
    )  # fmt: skip
    order.engine.degree_slopes(
        kept.theta, rows, points, order.engine.ready_inputs(points), old, advantages, weights,
        relaxed.degrees,
    )  # fmt: skip
    order._differentiate(relaxed, rows, variant.batch)
    theta = kept.theta.cpu().numpy()
    for r in range(variant.runs):
        expected = score_gradient(variant.model, theta[r], noise[r], batch, r)
        assert np.abs(expected).max() > 1e-4
        found = relaxed.gradients[r].sum(dim=0).cpu().numpy()
        np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("per", ["candidate", "population"])
def test_noise_is_that_of_numpy(per):
    variant = learned(n=6, order_per=per)
    order = DeviceOrder(variant.model)
    rows = order.engine.rows(variant.seeds, [3, 9])
    found = order._noise(rows, 4, 2, ORDER_T).cpu().numpy()
    first = order._noise(rows, 4, 1, ORDER_G).cpu().numpy()
    for r, generation_of_run in enumerate((3, 9)):
        for c in range(4):
            where = (variant.model, variant.seeds[r])
            for e in range(2):
                words = order_keys(*where, ORDER_T, generation_of_run, c, e)
                np.testing.assert_allclose(found[e, r, c], gumbel(words), rtol=1e-12)
            words = order_keys(*where, ORDER_G, generation_of_run, c)
            np.testing.assert_allclose(first[0, r, c], gumbel(words), rtol=1e-12)


def generations(variant: Case, name: str, count: int = 2) -> tuple:
    """What is drawn and trained in some generations: points, the policy and the scores."""
    order, engine = LearnedOrder(variant.model, name), variant.engine(name)
    policy, scores = variant.policy(engine), order.fresh(variant.seeds, [0] * variant.runs)
    for g in range(count):
        draw = order.draw_orders(scores, variant.draw(g))
        points, old = engine.sample(policy, draw)
        again = engine.conditionals(policy, points, draw.keys)
        np.testing.assert_allclose(old, again, rtol=1e-4)
        order.train(policy, scores, variant.answers(points, old, generation=g))
    return points, stored(engine, policy), scores


@every_variant
@pytest.mark.parametrize("adam", ["anew", "kept"])
def test_engines_agree(variant, adam):
    slow = {"known graph", "linear", "binary, masked -1"}
    slow.add("mixed" if adam == "anew" else "two layers, weights")
    if INTERPRETED and any(variant is VARIANTS[name] for name in slow):
        pytest.skip("ten seconds each, and the gradients were compared")
    variant = variant.replace(adam=adam)
    exact, found = (generations(variant, name) for name in ("reference", "cuda"))
    np.testing.assert_array_equal(found[0], exact[0])
    # Adam divides a gradient by its own size, so of one that is nearly zero the rounding counts
    for each in (1, 2):
        assert rms(found[each].theta - exact[each].theta) < 1e-4
    np.testing.assert_array_equal(found[2].steps, exact[2].steps)
    np.testing.assert_array_equal(found[1].steps, exact[1].steps)
    assert np.abs(exact[2].theta).max() > 0.01


def test_a_run_is_the_same_alone_and_in_a_batch():
    variant, count = VARIANTS["mixed"], 1 if INTERPRETED else 3
    points, policy, scores = generations(variant, "cuda", count)
    for r in range(variant.runs):
        alone = dataclasses.replace(variant, runs=1, first_run=r)
        own_points, own_policy, own_scores = generations(alone, "cuda", count)
        np.testing.assert_array_equal(points[r], own_points[0])
        np.testing.assert_array_equal(policy.theta[r], own_policy.theta[0])
        np.testing.assert_array_equal(scores.theta[r], own_scores.theta[0])


@pytest.mark.parametrize("adam", ["anew", "kept"])
def test_solve_many_is_maximize(adam):
    """The driver on the device, and `maximize` with its scores on the host; runs restart."""
    problem, budget = ao.problems.nk(3, 1), 11 if INTERPRETED else 40
    config = ao.policy.Config(
        **LEARNED, adam=adam, epochs=2, population=3, order_rate=0.3, restart_agreement=0.7,
        restart_patience=1, hidden=(5, 4) if INTERPRETED else (20,),
    )  # fmt: skip
    many = ao.policy.solve_many(
        problem, seeds=[3, 2**63 + 9], budget=budget, config=config, engine="cuda"
    )
    assert any(run.restarts for run in many)
    for run in many:
        alone = ao.maximize(
            problem,
            budget=budget,
            seed=run.seed,
            algorithm=ao.policy.Policy(config, engine="cuda"),
            cache=False,
            progress=False,
        )
        np.testing.assert_allclose(run.values, alone.history.values, rtol=1e-12)
        assert run.restarts == alone.history.restarts


def test_functions_on_the_host_and_a_single_run():
    config = ao.policy.Config(**LEARNED, epochs=1, population=3)
    arguments = {"space": ao.Space.binary(3), "budget": 7, "config": config, "engine": "cuda"}
    runs = ao.policy.solve_many(lambda x: float(x.sum()), runs=2, **arguments)
    alone = ao.policy.solve_many(lambda x: x.sum(dim=-1), runs=1, vectorized="torch", **arguments)
    np.testing.assert_array_equal(runs[0].values, alone[0].values)


def test_memory_is_counted():
    """Relaxed sorts and moments, beside what random orders take."""
    plain, relaxed = (
        case(n=64, cards=(2,), **settings).engine("cuda").memory_of(1, 0)
        for settings in ({}, LEARNED)
    )
    assert relaxed - plain > 4 * (3 * 10 * 64 * 64)
