"""Gradients against finite differences, Adam against its paper, and what training may touch."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from conftest import Case, case, rms

from anyorder.strategies.policy import equations
from anyorder.strategies.policy.engines import reference
from anyorder.strategies.policy.engines.cpu import CpuEngine
from anyorder.strategies.policy.engines.reference import ReferenceEngine

pytestmark = pytest.mark.usefixtures("quick_reference")

INPUTS, CANDIDATES = 6, 9


def problem(hidden: tuple[int, ...], d: int):
    """A random network with d values and a batch with weights, some of them zero."""
    rng = np.random.default_rng([len(hidden), d])
    widths = (INPUTS, *hidden, 1 if d == 2 else d)
    layers = [
        (rng.normal(size=(b, a)) / np.sqrt(a), rng.normal(size=b) / 4)
        for a, b in itertools.pairwise(widths)
    ]
    x = rng.choice([-1.0, 0.0, 1.0], (CANDIDATES, INPUTS))
    old = rng.dirichlet(np.full(d, 3.0), CANDIDATES)
    weight = rng.uniform(0.5, 2.0, CANDIDATES) * (np.arange(CANDIDATES) % 4 != 3)
    batch = (x, rng.integers(d, size=CANDIDATES), old, rng.normal(size=CANDIDATES), weight)
    return layers, batch


def differences(layers, batch, *settings, h: float = 1e-6):
    """Central finite differences of the objective by every parameter."""
    result = []
    for pair in layers:
        slopes = [np.empty_like(part) for part in pair]
        for part, slope in zip(pair, slopes, strict=True):
            for at in np.ndindex(part.shape):
                kept = part[at]
                part[at] = kept + h
                above = equations.objective(layers, *batch, *settings)
                part[at] = kept - h
                slope[at] = (above - equations.objective(layers, *batch, *settings)) / (2 * h)
                part[at] = kept
        result.append(slopes)
    return result


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("kl", ["categorical", "bernoulli"])
@pytest.mark.parametrize("d", [2, 3, 7])
@pytest.mark.parametrize("hidden", [(), (5,), (4, 3), (4, 3, 5, 2)])
@pytest.mark.parametrize("clipped", [False, True])
def test_gradient_of_every_layer(hidden, d, kl, log, clipped):
    layers, batch = problem(hidden, d)
    raw = reference.raw_probabilities(equations.forward(layers, batch[0])[-1])
    floor = float(np.quantile(raw.min(axis=1), 0.4)) if clipped else 1e-3  # for 4 of 9 candidates
    beyond = (raw < floor) | (raw > 1.0 - floor)
    assert beyond.any() == clipped
    assert not beyond.all()
    settings = (floor, 0.7, kl, None, log)
    found = equations.gradient(layers, *batch, *settings)
    expected = differences(layers, batch, *settings)
    assert len(found) == len(hidden) + 1
    for layer, by_hand in zip(found, expected, strict=True):
        for got, want in zip(layer, by_hand, strict=True):
            assert got.shape == want.shape
            # h = 1e-6: truncation ~ h^2, rounding ~ 1e-16 / h
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=2e-9)
    assert rms(found[-1][0]) > 1e-3


@pytest.mark.parametrize("d", [2, 3])
def test_gradient_beyond_the_clip_is_zero(d):
    layers, batch = problem((5,), d)
    layers[-1][1][-1] += 50.0  # the last value is all but certain
    for weights, biases in equations.gradient(layers, *batch, 1e-3, 1.0, "categorical"):
        assert not weights.any()
        assert not biases.any()


def test_gradient_of_a_candidate_without_weight_is_zero():
    layers, (x, value, old, advantage, weight) = problem((5,), 3)
    settings = (1e-3, 1.0, "categorical")
    whole = equations.gradient(layers, x, value, old, advantage, weight, *settings)
    some = weight != 0  # the mean stays one over all candidates
    part = equations.gradient(
        layers, x[some], value[some], old[some], advantage[some], weight[some], *settings
    )
    for (a, b), (c, e) in zip(whole, part, strict=True):
        np.testing.assert_allclose(a, c * some.mean(), rtol=1e-12)
        np.testing.assert_allclose(b, e * some.mean(), rtol=1e-12)


def test_objective_by_hand():
    """Eq. (8) with the standard library, for a network that is one bias a logit."""
    old, logits = [0.2, 0.5, 0.3], [0.1, -0.4, 0.8]
    power = [math.exp(z) for z in logits]
    new = [p / sum(power) for p in power]
    ratio = new[1] / old[1]
    kl = sum(q * math.log(q / p) for q, p in zip(old, new, strict=True))
    more = sum((1 - q) * math.log((1 - q) / (1 - p)) for q, p in zip(old, new, strict=True))
    layers = [(np.zeros((3, 0)), np.array(logits))]
    batch = (np.zeros((1, 0)), np.array([1]), np.array([old]), np.array([-0.6]), np.array([2.0]))
    for kind, expected in (("categorical", kl), ("bernoulli", kl + more)):
        got = equations.objective(layers, *batch, 1e-3, 0.7, kind)
        assert got == pytest.approx(2.0 * (ratio * -0.6 - 0.7 * expected), rel=1e-12)


def test_log_objective_by_hand():
    """Eq. (objective_IGO): ln pi in place of the ratio."""
    old, logits = [0.2, 0.5, 0.3], [0.1, -0.4, 0.8]
    power = [math.exp(z) for z in logits]
    new = [p / sum(power) for p in power]
    kl = sum(q * math.log(q / p) for q, p in zip(old, new, strict=True))
    layers = [(np.zeros((3, 0)), np.array(logits))]
    batch = (np.zeros((1, 0)), np.array([1]), np.array([old]), np.array([-0.6]), np.array([2.0]))
    got = equations.objective(layers, *batch, 1e-3, 0.7, "categorical", None, True)
    assert got == pytest.approx(2.0 * (math.log(new[1]) * -0.6 - 0.7 * kl), rel=1e-12)


def test_the_two_kls_of_a_binary_variable_are_one():
    old, new = np.array([[0.3, 0.7]]), np.array([[0.9, 0.1]])
    both = [equations.kl_divergence(old, new, kind)[0] for kind in ("categorical", "bernoulli")]
    assert both[0] == both[1] == pytest.approx(0.3 * math.log(3 / 9) + 0.7 * math.log(7))


# Adam


def adam(theta, gradients, rate, b1, b2, eps):
    """Kingma and Ba, Algorithm 1, upwards: as it is printed there."""
    m = v = 0.0
    for t, g in enumerate(gradients, 1):
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        theta = theta + rate * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)
    return theta, m, v


def test_adam_by_hand():
    """The first step is the rate times the sign; the second, the third: worked out on paper."""
    theta, m, v = np.array([1.0]), np.zeros(1), np.zeros(1)
    reference.adam_step(theta, m, v, np.array([-4.0]), 1, 0.1, 0.5, 0.75, 0.0)
    assert (theta[0], m[0], v[0]) == pytest.approx((0.9, -2.0, 4.0))
    reference.adam_step(theta, m, v, np.array([1.0]), 2, 0.1, 0.5, 0.75, 1.0)
    # m = -2/2 + 1/2, over 1 - 1/4; v = 3 + 1/4, over 1 - 9/16
    step = 0.1 * (-0.5 / 0.75) / (math.sqrt(3.25 / 0.4375) + 1.0)
    assert (theta[0], m[0], v[0]) == pytest.approx((0.9 + step, -0.5, 3.25))


def test_adam_step():
    gradients = np.array([[0.3, -2.0, 1e-9], [0.1, 3.0, 0.0], [-0.5, 1.0, 2e-9]])
    start = np.array([1.0, -1.0, 0.5])
    theta, m, v = start.copy(), np.zeros(3), np.zeros(3)
    for step, g in enumerate(gradients, 1):
        reference.adam_step(theta, m, v, g, step, 0.01, 0.9, 0.999, 1e-8)
    expected = adam(start, gradients, 0.01, 0.9, 0.999, 1e-8)
    np.testing.assert_allclose((theta, m, v), expected, rtol=1e-12)


@pytest.mark.parametrize("settings", [{}, {"adam_eps": 1e-3, "loss_runs": 2}, {"adam_beta1": 0.5}])
def test_adam_of_the_cpu_engine(settings):
    """Three generations of one step: the moments tell the gradients, and these tell theta."""
    variant = case(n=3, cards=(2, 3), adam="kept", epochs=1, input_rate=1.0, **settings)
    engine, config, model = CpuEngine(variant.model), variant.config, variant.model
    rates = np.empty(model.parameters)
    for i in range(3):
        for pair, layer in zip(model.network.rates, model.network.layers(rates, i), strict=True):
            for rate, part in zip(pair, layer, strict=True):  # weights, biases
                part[...] = rate

    policy = variant.policy(engine)
    start, b1 = policy.theta.astype(np.float64), config.adam_beta1
    gradients, m = [], np.zeros(start.shape)
    for generation in range(3):
        drawn = engine.sample(policy, variant.draw(generation))
        engine.train(policy, variant.answers(*drawn, generation=generation))
        gradients.append((policy.m - b1 * m) / (1 - b1))
        m = policy.m.astype(np.float64)
    theta, _, v = adam(start, gradients, rates, b1, config.adam_beta2, model.network.adam_eps)
    np.testing.assert_allclose(policy.v, v, rtol=1e-5)
    # three roundings of numbers below 1, and steps of 1e-3 good to 1e-4 of themselves
    np.testing.assert_allclose(policy.theta, theta, rtol=0, atol=3 * 2.0**-24 + 1e-7)


# What training touches


BOTH = pytest.mark.parametrize("kind", [ReferenceEngine, CpuEngine])


def train_once(engine, variant: Case, change=lambda batch: batch):
    policy = variant.policy(engine)
    oracle = ReferenceEngine(variant.model)
    drawn = oracle.sample(variant.policy(oracle), variant.draw())
    engine.train(policy, change(variant.answers(*drawn)))
    return policy


@BOTH
def test_the_first_generation_of_kept_moments_is_one_anew(kind):
    anew, kept = case(), case(adam="kept")
    first, second = train_once(kind(anew.model), anew), train_once(kind(kept.model), kept)
    np.testing.assert_array_equal(first.theta, second.theta)
    assert first.m.shape == first.v.shape == (2, 0)
    assert first.steps.tolist() == [0, 0]
    assert second.steps.tolist() == [5, 5]


@BOTH
def test_the_generation_order_is_drawn_again_from_the_stamps(kind):
    """Seen as when it was drawn, a candidate's KL has no slope: nothing to do without advantages.

    The candidates are of two generations, not the first ones there, and trained on later.
    """
    variant = case(training_order="generation", adam="kept", epochs=1, runs=1, sharp=2.0)
    engine = kind(variant.model)
    policy = variant.policy(engine)
    stamps = [(2, 3), (2, 4), (2, 5), (6, 0), (6, 1)]
    drawn = [engine.sample(policy, variant.draw(g, first, 1)) for g, first in stamps]
    points, old = (np.concatenate(parts, axis=1) for parts in zip(*drawn, strict=True))
    batch = variant.answers(points, old, np.zeros(points.shape), generation=9)
    slopes = []
    for own in (stamps, stamps[::-1]):
        policy = variant.policy(engine)
        engine.train(policy, replace(batch, stamps=np.array([own])))
        slopes.append(rms(policy.m))
    assert slopes[0] < 1e-6 * slopes[1]


@BOTH
@pytest.mark.parametrize("settings", [{}, {"drop_training": 0.5}, {"order_per": "population"}])
def test_a_candidate_without_weight_has_no_influence(kind, settings):
    variant = case(**settings)

    def without(batch, spoil):
        batch.weights[:, 4] = 0.0
        if spoil:
            batch.points[:, 4] = (batch.points[:, 4] + 1) % variant.model.cards
            batch.old[:, 4] = np.nan  # it may not even be read
            batch.advantages[:, 4] = np.nan
        return batch

    engine = kind(variant.model)
    first, second = (train_once(engine, variant, lambda b, s=s: without(b, s)) for s in (0, 1))
    np.testing.assert_array_equal(first.theta, second.theta)
    assert np.any(first.theta != train_once(engine, variant).theta)


@BOTH
def test_a_variable_without_weight_keeps_its_parameters(kind):
    variant = case(adam="kept")
    engine = kind(variant.model)

    def without(batch):
        batch.weights[:, :, 2] = 0.0
        return batch

    start, end = variant.policy(engine), train_once(engine, variant, without)
    changed = start.theta != end.theta
    own = slice(*variant.model.network.theta_start[2:4])
    assert not changed[:, own].any()
    assert not end.m[:, own].any()
    # every other variable's biases did move; one with a single value has none
    for i in (0, 1, 3, 5, 6, 7):
        assert changed[:, variant.model.network.theta_start[i + 1] - 1].all()


@BOTH
def test_a_frozen_layer_keeps_its_parameters(kind):
    variant = case(hidden=(6, 5), layer_rates=(1.0, 0.0, 1.0))
    engine = kind(variant.model)
    start, end = variant.policy(engine), train_once(engine, variant)
    for i in (0, 2):
        layers = variant.model.network.layers(start.theta[0] != end.theta[0], i)
        assert [bool(np.any(w)) for w, _ in layers] == [True, False, True]
        assert [bool(np.any(b)) for _, b in layers] == [True, False, True]


@pytest.mark.parametrize("order", ["fixed", "none", "generation"])
def test_the_order_of_the_candidates_is_rounding(order):
    variant = case(batch=13, training_order=order)
    places = np.random.default_rng(0).permutation(13)

    def shuffled(batch):
        names = ("points", "old", "advantages", "weights", "stamps")
        return replace(batch, **{name: getattr(batch, name)[:, places] for name in names})

    engine = CpuEngine(variant.model)
    first, second = train_once(engine, variant), train_once(engine, variant, shuffled)
    assert rms(first.theta - second.theta) <= 1e-3 * variant.config.learning_rate


# Stored parameters


@pytest.mark.parametrize("kind", [ReferenceEngine, CpuEngine])
@pytest.mark.parametrize(
    ("name", "wrong"),
    [("theta", np.nan), ("adam_m", np.nan), ("adam_m", -np.inf), ("adam_v", np.inf),
     ("adam_v", np.nan), ("adam_v", -1e-3), ("adam_steps", -1)],
)  # fmt: skip
def test_loading_refuses_numbers_that_training_cannot_produce(kind, name, wrong):
    variant = case(adam="kept")
    engine = kind(variant.model)
    arrays = engine.export(train_once(engine, variant))
    engine.load(arrays)
    arrays[name].flat[-1] = wrong
    with pytest.raises(ValueError, match=f"^{name} has .*expected none$"):
        engine.load(arrays)
