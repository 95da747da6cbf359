"""The shared network: prefix sums against naive evaluation, gradients, learning, states."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from conftest import Case, case, computed, refused, rms, stored, subprocess_environment
from test_engines import check_step, whole_run

import anyorder as ao
from anyorder.strategies.policy import engines, equations
from anyorder.strategies.policy.config import PRESETS
from anyorder.strategies.policy.engines import reference
from anyorder.strategies.policy.engines.reference import ReferenceEngine
from anyorder.strategies.policy.engines.shared_cpu import SharedCpuEngine
from anyorder.strategies.policy.engines.shared_cpu.kernels import common, products
from anyorder.strategies.policy.model import make_model
from anyorder.strategies.policy.networks import SharedNetwork
from anyorder.strategies.policy.orders import order_keys
from anyorder.strategies.policy.rng import ORDER_T
from anyorder.strategies.policy.search import PolicySearch
from anyorder.testing import check_strategy


def shared(**settings) -> Case:
    return case(**{"network": "shared", "hidden": (6, 5), **settings})


BINARY = {"cards": (2,)}
VARIANTS: dict[str, Case] = {
    "(s,s)": shared(),
    "(d,d)": shared(generation_order="fixed", training_order="fixed"),
    "(d,s)": shared(generation_order="fixed"),
    "(s,d)": shared(training_order="generation"),
    "an order a population": shared(order_per="population"),
    "no mask": shared(training_order="none"),
    "(s,p)": shared(training_order="none", drop_training=0.5),
    "dropout": shared(drop_generation=0.5, drop_training=0.25),
    "all dropped": shared(drop_generation=1.0, drop_training=1.0),
    "dropout, -1": shared(drop_generation=0.3, drop_training=0.6, masked_input=-1.0, **BINARY),
    "known graph": shared(graph=True),
    "known graph, no mask, dropout": shared(graph=True, training_order="none", drop_training=0.4),
    "1 layer": shared(hidden=(7,)),
    "3 layers": shared(hidden=(5, 18, 3)),
    "wide": shared(hidden=(33, 40)),
    "masked -1": shared(masked_input=-1.0),
    "unchosen 0": shared(unchosen_input=0.0),
    "frozen middle": shared(layer_rates=(1.0, 0.0, 1.0)),
    "frozen inputs": shared(layer_rates=(0.0, 1.0, 1.0)),
    "frozen heads": shared(layer_rates=(1.0, 1.0, 0.0)),
    "input rate": shared(input_rate=2.0),
    "Bernoulli KL": shared(kl="bernoulli"),
    "log objective": shared(objective="log"),
    "log objective, binary": shared(objective="log", **BINARY),
    "beyond the clip": shared(sharp=4.0, clip=0.05, runs=8),
    "eps is felt": shared(adam_eps=1e-4, loss_runs=100),
    "half the weights": shared(weights=0.5),
    "few weights": shared(weights=0.1, batch=5),
    "constants only": shared(n=3, cards=(1,)),
    "constants at the ends": shared(n=4, cards=(1, 3, 2, 1)),
    "large cards": shared(n=3, cards=(40, 2, 11)),
    "n = 1": shared(n=1, **BINARY),
    "n = 67": shared(n=67, epochs=2, runs=1, batch=4),  # two blocks, the last one not whole
    "n = 130, binary": shared(n=130, epochs=2, runs=1, batch=3, **BINARY),
    "n = 130, dropout": shared(n=130, epochs=1, runs=1, batch=2, drop_training=0.5, **BINARY),
    "1 candidate": shared(batch=1),
    "23 candidates": shared(n=5, batch=23),
}
every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())


@every_variant
@pytest.mark.usefixtures("quick_reference")
def test_one_step(variant, fast):
    """Sampling and one gradient step are those of the naive evaluation, to rounding."""
    check_step(computed(variant, fast), fast, relative=2e-5 if fast == "cuda" else 0.0)


@pytest.mark.parametrize(
    ("settings", "relative"),
    [
        ({}, 8e-4),
        # Over 16 seeds 5e-4 on average and 7e-4 at most, with contexts summed from either end.
        ({"masked_input": -1.0, "layer_rates": (1.0, 0.0, 1.0)}, 8e-4),
        ({"hidden": (9,)}, 8e-4),
    ],
    ids=("plain", "frozen", "1 layer"),
)
def test_float16_of_many_variables(settings, relative, fast):
    """Rows of activations and slopes are stored as float16 there."""
    if fast != "cuda":
        pytest.skip("for the engine cuda")
    from anyorder.strategies.policy.engines.cuda.shared import HALF_FROM  # imports PyTorch

    settings = {"hidden": (9, 5), **BINARY, **settings}
    check_step(shared(n=HALF_FROM, epochs=1, runs=1, batch=2, **settings), fast, relative)


def test_sorted_orders(fast):
    """By the upper bits of the keys, and by all where these are not enough: the second order."""
    if fast != "cuda":
        pytest.skip("for the engine cuda")
    model = shared(n=1024, epochs=1, hidden=(2, 2), **BINARY).model
    engine = engines.create("cuda", model)
    found = engine.orders(engine.rows([7], [37]), 2).cpu().numpy()
    keys = np.array([order_keys(model, 7, ORDER_T, 37, c) for c in range(2)])
    by_upper = np.argsort(keys // 1024, axis=-1, kind="stable")
    order = np.argsort(keys, axis=-1, kind="stable")
    assert np.all(by_upper == order, axis=-1).tolist() == [True, False]
    np.testing.assert_array_equal(found[0, 0], order)


@every_variant
def test_conditionals(variant, fast):
    variant = computed(variant, fast)
    exact, _, engine = variant.engines(fast)
    policies = [variant.policy(one) for one in (exact, engine)]
    rng = np.random.default_rng(0)
    shape = (variant.runs, variant.batch, variant.n)
    points = rng.integers(0, variant.model.cards, shape, np.int32)
    for keys in (None, rng.integers(0, 2**32, shape, np.uint32), np.zeros(shape, np.uint32)):
        expected = exact.conditionals(policies[0], points, keys)
        found = engine.conditionals(policies[1], points, keys)
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("settings", [{}, {"masked_input": -1.0}, {"hidden": (7,)}])
def test_absent_values_are_hidden(settings, fast):
    """Their code is -1, and they have no weight: see `absent.py`."""
    variant = shared(n=5, cards=(2, 3), runs=1, batch=4, epochs=2, adam="kept", **settings)
    exact, _, engine = variant.engines(fast)
    policies = [variant.policy(one) for one in (exact, engine)]
    points, _ = exact.sample(policies[0], variant.draw())
    points[:, 1:, 1], points[:, ::2, 4], points[:, :, 2] = -1, -1, -1
    keys = np.random.default_rng(0).integers(0, 2**32, points.shape, np.uint32)
    old = exact.conditionals(policies[0], points, keys)
    np.testing.assert_allclose(engine.conditionals(policies[1], points, keys), old, rtol=2e-5)
    batch = replace(variant.answers(points, old), weights=(points >= 0).astype(np.float64))
    for one, policy in zip((exact, engine), policies, strict=True):
        one.train(policy, batch)
    found, expected = stored(engine, policies[1]), stored(exact, policies[0])
    np.testing.assert_allclose(found.m, expected.m, rtol=1e-3, atol=1e-6)
    assert rms(expected.m) > 1e-4


@pytest.mark.parametrize(
    "variant", [shared(runs=1), shared(runs=1, training_order="none"), shared(graph=True, runs=1)]
)
@pytest.mark.usefixtures("quick_reference")
def test_ten_generations(variant, fast):
    if computed(variant, fast) is not variant:
        pytest.skip("the interpreter takes minutes")
    exact, _, engine = variant.engines(fast)
    expected, oracle = whole_run(exact, variant, 10)
    found, policy = whole_run(engine, variant, 10)
    np.testing.assert_array_equal(found, expected)
    moved = rms(oracle.theta - variant.policy(exact).theta)
    assert moved > 0.01
    assert rms(stored(engine, policy).theta - oracle.theta) <= 1e-3 * moved


def contexts(variant: Case, engine: ReferenceEngine, batch) -> list[np.ndarray]:
    """The inputs of every variable's network in epoch 0 of run 0."""
    model, rows = variant.model, range(variant.batch)
    features = model.coding.features_of(batch.points[0])
    return [
        reference.inputs(
            model,
            features,
            np.stack([engine._training_view(batch, 0, c, i, 0) for c in rows]),
            i,
        )
        for i in range(model.n)
    ]


def test_many_runs_on_the_device(fast):
    """The driver of `solve_many` on the device draws the points that the engine `cpu` draws."""
    if fast != "cuda":
        pytest.skip("for the engine cuda")
    config = PRESETS["default"].replace(network="shared", hidden=(8, 8), epochs=2)
    problem = ao.problems.nk(12, 2, 0)
    values = [
        ao.policy.solve_many(
            problem, runs=2, budget=30, config=config, engine=engine, progress=False
        ).values
        for engine in ("cuda", "cpu")
    ]  # fmt: skip
    np.testing.assert_allclose(values[0], values[1], rtol=1e-12)


def objective_of(variant: Case, inputs: list[np.ndarray], theta, batch) -> float:
    """Eq. (8) of run 0: the sum of all variables' terms."""
    model, total = variant.model, 0.0
    for i in np.flatnonzero(model.coding.outputs):
        own = slice(model.value_start[i], model.value_start[i + 1])
        total += equations.objective(
            model.network.layers(theta, i), inputs[i],
            batch.points[0, :, i], batch.old[0, :, own], batch.advantages[0, :, i],
            batch.weights[0, :, i], float(model.coding.floor[i]), variant.config.beta,
            variant.config.kl,
        )  # fmt: skip
    return total


@pytest.mark.parametrize("name", ["(s,s)", "no mask", "dropout", "masked -1", "half the weights"])
def test_gradient_against_finite_differences(name):
    """Of some parameters of every layer; kept moments are the gradient, (1 - beta1) times."""
    variant = VARIANTS[name].replace(epochs=1, adam="kept")
    engine = ReferenceEngine(variant.model)
    fast = SharedCpuEngine(variant.model, threads=1)
    policy = variant.policy(engine)
    theta = policy.theta[0].copy()
    batch = variant.answers(*engine.sample(policy, variant.draw()))
    trained = variant.policy(fast)
    fast.train(trained, batch)
    engine.train(policy, batch)
    inputs, h = contexts(variant, engine, batch), 1e-5
    some = np.arange(0, len(theta), 5)
    slopes = np.empty(len(some))
    for k, at in enumerate(some):
        above, below = theta.copy(), theta.copy()
        above[at] += h
        below[at] -= h
        rise = objective_of(variant, inputs, above, batch)
        slopes[k] = (rise - objective_of(variant, inputs, below, batch)) / (2 * h)
    gradient = policy.m[0, some] / (1 - variant.config.adam_beta1)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(trained.m[0], policy.m[0], rtol=1e-3, atol=1e-6)
    assert rms(slopes) > 1e-3


def test_arrangement_of_parameters():
    network = shared(n=4, cards=(2, 3, 1, 2)).model.network
    assert isinstance(network, SharedNetwork)
    theta = np.arange(network.parameters, dtype=np.float64)
    (first, bias), (middle, _), (heads, last) = network.parts(theta)
    assert first.shape == (6, 5)
    assert first[:, 0].tolist() == [0, 1, 2, 3, 4, 5]  # the weights of an input are together
    assert bias[0] == 30
    assert middle.shape == (5, 6)
    assert heads.shape == (5, 5)  # 1 + 3 + 0 + 1 logits
    assert last[-1] == network.parameters - 1
    own = network.layers(theta, 1)[-1]
    np.testing.assert_array_equal(own[0], heads[1:4])
    assert network.layers(theta, 2)[-1][0].shape == (0, 5)


@pytest.mark.parametrize(("rows", "depth", "width"), [(4, 4, 16), (8, 20, 32), (12, 4, 112)])
def test_products_of_rows(rows, depth, width):
    """Matrices within larger arrays; what is around the result stays as it is."""
    rng = np.random.default_rng(rows)
    a, b = rng.normal(size=(2, 40, 112)).astype(np.float32)
    c = np.ones((40, 112), np.float32)
    at = [np.int64(k) for k in (3, 5, 7, 1)]
    inside = np.s_[at[0] : at[0] + rows, :width]
    expected = c.copy()
    expected[inside] = a[5 : 5 + rows, :depth] @ b[7 : 7 + depth, :width] + a[1, :width]
    products.product(c, at[0], a, at[1], b, at[2], a, at[3], rows, depth, width)
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-5)
    expected[inside] += a[5 : 5 + depth, :rows].T @ b[7 : 7 + depth, :width]
    products.add_turned_product(c, at[0], a, at[1], b, at[2], rows, depth, width)
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [1, 2, 255, 256, 1000])
def test_radix_sort_is_stable(size):
    rng = np.random.default_rng(size)
    for high in (2, 2**16, 2**32):
        keys = rng.integers(0, high, size, np.uint32)
        order, spare = np.empty(size, np.int64), np.empty(size, np.int64)
        common.sort_by_key(order, spare, keys)
        np.testing.assert_array_equal(order, np.argsort(keys, kind="stable"))


@pytest.mark.parametrize("name", ["(s,s)", "dropout", "no mask"])
def test_neither_threads_nor_the_batch_change_a_bit(name):
    variant = VARIANTS[name].replace(hidden=(40, 30))
    alone = Case(variant.config, runs=1, first_run=1)
    results = []
    for each, threads in ((variant, 1), (variant, 3), (alone, 2)):
        engine = SharedCpuEngine(each.model, threads)
        policy = each.policy(engine)
        drawn = engine.sample(policy, each.draw())
        engine.train(policy, each.answers(*drawn))
        results.append((policy.theta[-1], drawn[0][-1], drawn[1][-1]))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_learns_pairs_that_must_be_equal():
    """All marginals stay 1/2 on average: only contexts can tell."""
    config = PRESETS["paper"].replace(network="shared", hidden=(24, 24))

    def equal_pairs(points: np.ndarray) -> np.ndarray:
        return (points[:, 0::2] == points[:, 1::2]).sum(axis=1).astype(float)

    last = [
        ao.maximize(equal_pairs, ao.Space.binary(16), 600,
            seed=seed, vectorized=True,
            algorithm=ao.policy.Policy(config), cache=False).history.values[-100:].mean()
        for seed in range(3)
    ]  # fmt: skip
    assert np.mean(last) > 6.0, last  # 4 by chance, 8 at most


@pytest.mark.slow
def test_check_strategy():
    """With a critic, whose parameters are in the state, too."""
    config = PRESETS["default"].replace(network="shared", hidden=(8, 8), epochs=2, critic=1.0)
    check_strategy(lambda space, seed: PolicySearch(space, seed, config, "cpu"))


@pytest.mark.parametrize("adam", ["anew", "kept"])
def test_a_state_continues_bit_for_bit(adam):
    space = ao.Space.binary(24)
    config = PRESETS["default"].replace(network="shared", hidden=(9, 8), epochs=5, adam=adam)

    def advance(search: PolicySearch, generations: int) -> np.ndarray:
        drawn = []
        for _ in range(generations):
            tickets, codes = search.propose(10)
            values = codes @ np.arange(24.0)
            search.learn(
                [
                    ao.strategies.base.Answer(ticket, row, float(value))
                    for ticket, row, value in zip(tickets, codes, values, strict=True)
                ]
            )
            drawn.append(codes)
        return np.array(drawn)

    whole = PolicySearch(space, 3, config, "cpu")
    advance(whole, 3)
    resumed = PolicySearch(space, 0, config, "cpu")
    resumed.restore(whole.state())
    np.testing.assert_array_equal(advance(whole, 3), advance(resumed, 3))
    for name, array in whole.state().items():
        np.testing.assert_array_equal(array, resumed.state()[name])


def test_default_layers_follow_the_network():
    assert PRESETS["default"].replace(network="shared").hidden == (100, 100)
    assert PRESETS["default"].replace(network="shared").replace(network="separate").hidden == (20,)
    assert PRESETS["default"].replace(network="shared", hidden=(7,)).hidden == (7,)
    assert PRESETS["paper-code"].replace(hidden=(3, 3)).replace(network="shared").hidden == (3, 3)
    assert ao.policy.Config(network="shared").hidden == (100, 100)
    assert ao.policy.Config().hidden == (20,)


@pytest.mark.parametrize(
    ("variant", "reason"),
    [
        (shared(hidden=(4, 4, 4)), "one or two hidden layers, not (4, 4, 4)"),
        (shared(hidden=(129, 8)), "up to 128 units, not (129, 8)"),
        (shared(drop_training=0.5), "without dropout"),
        (shared(graph=True), "without a known graph"),
        (shared(training_order="none"), "training_order='none'"),
        (shared(critic=2.0), "critic=2.0"),
        (shared(generation_order="gibbs", training_order="none"), "gibbs"),
        (shared(generation_order="learned", training_order="learned"), "learned"),
    ],
)
def test_what_cuda_does_not_compute_is_said(variant, reason, monkeypatch):
    """Asked for by name it raises; "auto" takes another engine."""
    monkeypatch.setattr(engines, "_why_no_cuda", lambda: None)
    monkeypatch.setattr(engines, "_may_have_a_gpu", lambda: True)
    with refused(RuntimeError, "'cuda' cannot run here", reason):
        engines.create("cuda", variant.model)
    name, why = engines.choose(variant.model, runs=10_000_000)
    assert name == "cpu"
    assert reason in why


def test_auto_takes_a_gpu_for_many_variables(monkeypatch):
    monkeypatch.setattr(engines, "_why_no_cuda", lambda: None)
    monkeypatch.setattr(engines, "_may_have_a_gpu", lambda: True)
    large = make_model([2] * 1_000, [False] * 1_000, PRESETS["default"].replace(network="shared"))
    assert engines.choose(large)[0] == "cuda"
    small = make_model([2] * 10, [False] * 10, PRESETS["default"].replace(network="shared"))
    assert engines.choose(small)[0] == "cpu"


WITHOUT_JIT = """
from test_shared import shared
from test_engines import check_step
check_step(shared(n=5, hidden=(3, 2), batch=3, runs=1))
check_step(shared(n=5, hidden=(3,), batch=2, runs=1, graph=True, drop_training=0.3))
from anyorder.strategies.policy.engines.shared_cpu.kernels import training
assert not hasattr(training.slopes, "signatures")
"""


@pytest.mark.slow
def test_without_jit():
    environment = subprocess_environment(NUMBA_DISABLE_JIT="1")
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", WITHOUT_JIT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_refusals():
    with refused(ValueError, "hidden is ()", "network='shared'"):
        ao.policy.Config(network="shared", hidden=())
    with refused(ValueError, "layer_rates is (0.0, 0.0)", "frozen"):
        ao.policy.Config(layer_rates=(0.0, 0.0))


def test_memory_is_linear_in_n():
    small, large = (
        make_model([2] * n, [False] * n, PRESETS["default"].replace(network="shared"))
        for n in (1_000, 10_000)
    )
    assert large.parameters < 10.1 * small.parameters
    engine = SharedCpuEngine(large, threads=1)
    sizes = [array.nbytes for array in (*engine._memory(10), *engine._own())]
    assert sum(sizes) < 4 * 40 * 10_000 * 112
