"""The fast engines against the engine `reference`."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from conftest import (
    Case,
    assert_as_good_as_float32,
    case,
    rms,
    stored,
    subprocess_environment,
)

from anyorder.strategies.policy.engines import kernels

pytestmark = pytest.mark.usefixtures("quick_reference")

SIZES = (1, 2, 3, 7, 16, 33, 64, 130)
RUNS_OF = {n: max(2, 16 // n) if n < 64 else 1 for n in SIZES}  # the reference is slow
BINARY = {"cards": (2,), "hidden": (20,)}
AUTHORS = {
    "cards": (2,), "hidden": (20, 20), "layer_rates": (1.0, 0.0, 1.0), "masked_input": -1.0,
    "unchosen_input": 0.0, "loss_runs": 500,
}  # fmt: skip

VARIANTS: dict[str, Case] = {
    "(s,s)": case(),
    "(d,d)": case(generation_order="fixed", training_order="fixed"),
    "(d,s)": case(generation_order="fixed"),
    "(s,d)": case(training_order="generation"),
    "(d,d), as sampled": case(generation_order="fixed", training_order="generation"),
    "(s,fixed)": case(training_order="fixed"),
    "(s,p)": case(training_order="none", drop_training=0.5),
    "(d,p)": case(generation_order="fixed", training_order="none", drop_training=0.75),
    "no mask": case(training_order="none"),
    "an order a population": case(order_per="population"),
    "(s,d), an order a population": case(order_per="population", training_order="generation"),
    "dropout": case(drop_generation=0.5, drop_training=0.25),
    "all dropped": case(drop_generation=1.0, drop_training=1.0),
    "dropout, -1": case(drop_generation=0.3, drop_training=0.6, masked_input=-1.0, **BINARY),
    "known graph": case(graph=True),
    "known graph, no mask, dropout": case(graph=True, training_order="none", drop_training=0.4),
    "univariate": case(network="univariate"),
    "linear": case(hidden=()),
    "1 wide layer": case(hidden=(33,)),
    "1 narrow layer": case(hidden=(1,)),
    "2 layers": case(hidden=(7, 17)),
    "4 layers": case(hidden=(5, 4, 18, 3)),
    "masked -1": case(masked_input=-1.0),
    "masked 0.5": case(masked_input=0.5),
    "unchosen 0": case(unchosen_input=0.0),
    "unchosen 0.5": case(unchosen_input=0.5),
    "one-hot integers": case(integer_encoding="onehot"),
    "frozen middle": case(hidden=(6, 5), layer_rates=(1.0, 0.0, 1.0)),
    "frozen inputs": case(layer_rates=(0.0, 1.0)),
    "frozen output": case(layer_rates=(0.5, 0.0)),
    "input rate": case(input_rate=2.0),
    "Bernoulli KL": case(kl="bernoulli"),
    "log objective": case(objective="log"),
    "log objective, Bernoulli": case(objective="log", kl="bernoulli"),
    "log objective, beyond the clip": case(objective="log", sharp=4.0, clip=0.05, runs=8),
    "beta 0": case(beta=0.0),
    "beta 3": case(beta=3.0),
    # a few candidates have all of the rounding error there: more runs make the rms a steadier one
    "beyond the clip": case(sharp=4.0, clip=0.05, runs=8),
    "beyond the clip, Bernoulli": case(sharp=4.0, clip=0.05, kl="bernoulli", runs=8),
    "beyond the clip, binary": case(sharp=4.0, clip=0.1, runs=8, cards=(2,)),
    "eps is felt": case(adam_eps=1e-4, loss_runs=100),
    "eps is nothing": case(adam_eps=1e-30),
    "Adam's betas": case(adam_beta1=0.5, adam_beta2=0.9),
    "half the weights": case(weights=0.5),
    "half the weights, dropout": case(weights=0.5, drop_training=0.5),
    "few weights": case(weights=0.2, batch=20),
    "constants only": case(n=3, cards=(1,)),
    "constants only, linear": case(n=3, cards=(1,), hidden=()),
    "constants at the ends": case(n=4, cards=(1, 3, 2, 1)),
    "large cards": case(n=3, cards=(40, 2, 11)),
    "authors": case(n=12, **AUTHORS),
    **{f"n = {n}": case(n=n, runs=RUNS_OF[n]) for n in SIZES},
    **{f"n = {n}, binary": case(n=n, runs=RUNS_OF[n], **BINARY) for n in SIZES},
    # the kernels unroll by five and have one more for exactly ten
    **{f"{count} candidates": case(n=5, batch=count) for count in (*range(1, 24), 32, 33, 128)},
    "n = 520": case(n=520, cards=(2,), runs=1, batch=2, hidden=(2,), epochs=2),
}  # fmt: skip

every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())

# Of these the first step is always compared, and those after it in the longer checks only.
FIRST_STEPS = {"n = 520", *(f"{count} candidates" for count in (2, 3, 7, 8, *range(12, 23), 32))}


def check_step(variant: Case, fast: str = "cpu", relative: float = 0.0) -> None:
    """Sampling, and one gradient step. Kept moments show the gradient itself: m = (1 - beta1) g.

    `relative` is an error that gradients may have on top of that of float32.
    """
    one = variant.replace(epochs=1, adam="kept")
    engines = one.engines(fast)
    policies = [one.policy(engine) for engine in engines]
    drawn = [engine.sample(p, one.draw()) for engine, p in zip(engines, policies, strict=True)]
    np.testing.assert_array_equal(drawn[2][0], drawn[0][0])
    assert_as_good_as_float32(drawn[2][1], drawn[0][1], drawn[1][1])

    batch = one.answers(*drawn[0])
    batch.stamps[:] = np.random.default_rng(0).integers(0, 99, batch.stamps.shape)  # any will do
    for engine, policy in zip(engines, policies, strict=True):
        engine.train(policy, batch)
    exact, plain, _ = policies
    got = stored(engines[2], policies[2])
    assert_as_good_as_float32(got.m, exact.m, plain.m, relative * rms(exact.m))
    beta1, beta2 = one.config.adam_beta1, one.config.adam_beta2
    squares = (1.0 - beta2) * (got.m / (1.0 - beta1)) ** 2
    np.testing.assert_allclose(got.v, squares, rtol=1e-6)
    np.testing.assert_array_equal(got.steps, exact.steps)
    assert_same_parameters(one, got, exact, plain, relative)


def assert_same_parameters(variant: Case, got, exact, plain, relative: float = 0.0) -> None:
    # Adam divides a gradient by its own size, so where one is nearly zero its rounding error grows
    # up to a whole step, on either engine: the worst parameter in a thousand does not count, and a
    # ten-thousandth of a step is allowed. (The gradients themselves were compared without either.)
    errors = np.abs(got.theta - exact.theta).ravel()
    rest = np.argsort(errors)[: errors.size - max(1, errors.size // 1000)]
    allowance = (1e-4 + 100.0 * relative) * variant.config.learning_rate
    assert_as_good_as_float32(
        *(policy.theta.ravel()[rest] for policy in (got, exact, plain)), allowance
    )


@every_variant
def test_one_step(variant, fast):
    check_step(variant, fast)


@pytest.mark.parametrize(
    "variant",
    [
        pytest.param(variant, id=name, marks=[pytest.mark.slow] if name in FIRST_STEPS else [])
        for name, variant in VARIANTS.items()
    ],
)
def test_one_generation(variant, fast):
    engines = variant.engines(fast)
    policies = [variant.policy(engine) for engine in engines]
    drawn = engines[0].sample(policies[0], variant.draw(generation=3))
    before = policies[0].theta.copy()
    for engine, policy in zip(engines, policies, strict=True):
        engine.train(policy, variant.answers(*drawn, generation=3))
    exact, plain, _ = policies
    assert_same_parameters(variant, stored(engines[2], policies[2]), exact, plain)
    assert variant.model.parameters == 0 or rms(exact.theta - before) > 1e-4  # something happened


def test_the_clip_is_reached():
    """The variants named so have probabilities at both bounds and between them."""
    for name in ("beyond the clip", "beyond the clip, binary"):
        variant = VARIANTS[name]
        engine = variant.engines()[0]
        probs = engine.sample(variant.policy(engine), variant.draw())[1][..., :2]  # a binary one
        clip = variant.config.clip
        assert {clip, 1.0 - clip} < set(probs.ravel())


def test_tanh():
    """As accurate as it says; for 1 - tanh^2 beyond |x| = 3 that is 3x worse than NumPy's."""
    x = np.linspace(-12.0, 12.0, 4001, dtype=np.float32)
    y = np.array([kernels.tanh(value) for value in x])
    np.testing.assert_allclose(y, np.tanh(x.astype(np.float64)), rtol=4e-7, atol=0)
    assert np.abs(y).max() == 1.0


def test_which_engine_ran():
    exact, plain, fast = case().engines()
    assert (exact.name, plain.name, fast.name) == ("reference", "reference", "cpu")
    for engine, dtype in ((exact, np.float64), (plain, np.float32), (fast, np.float32)):
        policy = engine.fresh([1], [0])
        points, probs = engine.sample(policy, replace(case().draw(), seeds=[1]))
        kinds = {policy.theta.dtype, policy.m.dtype, policy.v.dtype, probs.dtype}
        assert kinds == {np.dtype(dtype)}
        assert points.dtype == np.int32
        assert engine.conditionals(policy, points).dtype == dtype


# Whole runs


RUNS: dict[str, Case] = {
    "the method": case(n=6, epochs=50, hidden=(20,), runs=1),
    "(d,d)": case(generation_order="fixed", training_order="fixed"),
    "(d,s)": case(generation_order="fixed"),
    "(s,d)": case(training_order="generation"),
    "curriculum": case(drop_generation=1.0, drop_training=1.0, drop_decay=0.9, runs=1),
    "(s,p)": case(training_order="none", drop_training=0.5, runs=1),
    "known graph": case(graph=True),
    "univariate": case(network="univariate"),
    "linear": case(hidden=()),
    "4 layers": case(hidden=(5, 4, 18, 3)),
    "Adam kept, some weights": case(adam="kept", weights=0.1, batch=7),
    "Bernoulli KL, fast": case(kl="bernoulli", learning_rate=0.01),
    "authors": case(n=16, runs=1, **AUTHORS),
    "n = 1": case(n=1),
    "n = 2": case(n=2),
    "n = 3": case(n=3),
    "n = 33": case(n=33, runs=1, epochs=3),
    "n = 64, binary": case(n=64, runs=1, epochs=2, **BINARY),
    "n = 130": case(n=130, runs=1, epochs=1, adam="kept"),
    "n = 130, binary": case(n=130, runs=1, epochs=1, adam="kept", **BINARY),
}


def whole_run(engine, variant: Case, generations: int):
    """Candidates of every generation and the final policy; neighbouring variables interact."""
    table = np.random.default_rng(1).random((variant.n, 7, 7))
    policy, history = variant.policy(engine), []
    for generation in range(generations):
        points, old = engine.sample(policy, variant.draw(generation))
        values = table[np.arange(variant.n), points, np.roll(points, 1, -1)].sum(-1)
        ranks = (values[:, None, :] > values[:, :, None]).sum(-1)
        advantages = np.repeat(1 - 2 * ranks[..., None] / (variant.batch - 1), variant.n, -1)
        engine.train(policy, variant.answers(points, old, advantages, generation))
        history.append(points)
    return np.array(history), policy


LONG_RUNS = ("n = 130", "n = 130, binary")  # steps at this size are in VARIANTS


@pytest.mark.parametrize("generations", [7, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "variant",
    [
        pytest.param(variant, id=name, marks=[pytest.mark.slow] if name in LONG_RUNS else [])
        for name, variant in RUNS.items()
    ],
)
def test_whole_runs(variant, generations, fast):
    exact, _, engine = variant.engines(fast)
    expected, oracle = whole_run(exact, variant, generations)
    found, policy = whole_run(engine, variant, generations)
    policy = stored(engine, policy)
    np.testing.assert_array_equal(found, expected)
    moved = rms(oracle.theta - variant.policy(exact).theta)
    assert moved > 0
    # measured: 6e-5 at most; rounding of near-zero gradients makes it depend on the machine
    assert rms(policy.theta - oracle.theta) <= 1e-3 * moved
    np.testing.assert_array_equal(policy.steps, oracle.steps)


# Without the compiler


STEPS_WITHOUT_JIT = """
from conftest import case
from test_engines import check_step
check_step(case(n=6, hidden=(3,), batch=10, drop_generation=0.3, drop_training=0.3))
check_step(case(n=6, batch=6, runs=4, graph=True, kl="bernoulli", sharp=4.0, clip=0.05))
"""

CREATE_WITHOUT_JIT = """
from anyorder.strategies.policy.engines import create, kernels
engine = create("cpu", case().model)
engine.sample(engine.fresh([0, 1], [0, 0]), case().draw())
assert not hasattr(kernels.train, "signatures")
"""


def test_without_jit():
    """The kernels are Python too: a debugger or a coverage tool can be run over them."""
    environment = subprocess_environment(NUMBA_DISABLE_JIT="1")
    code = STEPS_WITHOUT_JIT + CREATE_WITHOUT_JIT
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", code]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
