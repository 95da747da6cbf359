"""The engine `cuda`, besides what `test_engines.py` compares with the reference.

Without a GPU this file is skipped, and `test_interpreter.py` runs a part of it with Triton's
interpreter.
"""

import dataclasses
import itertools
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from conftest import case, refused, rms, stored
from test_engines import assert_same_parameters, check_step

import anyorder as ao
from anyorder.strategies.policy import engines as policy
from anyorder.strategies.policy.critic import Critic, _finite
from anyorder.strategies.policy.engines import choose, why_not
from anyorder.strategies.policy.model import make_critic_model

# duplicates are paid for, as in solve_many and in the paper
paid = partial(ao.maximize, cache=False)

if (missing := why_not("cuda")) is not None:
    pytest.skip(missing, allow_module_level=True)
torch = pytest.importorskip("torch")
from anyorder.policy.many import device_critic  # noqa: E402
from anyorder.strategies.policy.engines.cuda import shapes  # noqa: E402 (it imports Triton)
from anyorder.strategies.policy.engines.cuda.kernels import common  # noqa: E402

pytestmark = pytest.mark.gpu

SMALL = ao.policy.PRESETS["default"].replace(epochs=2)


# Which path


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"cards": (2,), "hidden": (20,)}, ("registers",)),
        ({"cards": (2,), "hidden": (24,)}, ("registers",)),
        ({"cards": (2,), "hidden": (25,)}, ("memory",)),
        ({"cards": (2,), "hidden": (20, 20)}, ("memory",)),
        ({"cards": (2,), "hidden": (20, 20), "layer_rates": (1, 0, 1)}, ("registers",)),
        ({"cards": (2,), "hidden": (20, 33), "layer_rates": (1, 0, 1)}, ("memory",)),
        ({"cards": (2,), "hidden": ()}, ("memory",)),
        ({"cards": (2,), "network": "univariate"}, ("memory",)),
        ({"cards": (2,), "masked_input": -1.0}, ("registers",)),
        ({"cards": (2,), "masked_input": 0.5}, ("memory",)),
        ({"cards": (2, 3), "masked_input": -1.0}, ("memory", "memory")),
        ({"cards": (3,), "unchosen_input": 0.0}, ("registers",)),
        ({"cards": (3,), "unchosen_input": 0.5}, ("memory",)),
        ({"cards": (2,), "learning_rate": 0.1}, ("memory",)),
        ({"cards": (2,), "batch": 32}, ("registers",)),
        ({"cards": (2,), "batch": 33}, ("memory",)),
        ({"cards": (2, 3, 8, 9, 1)}, ("registers", "registers", "registers", "memory")),
        ({"cards": (2,), "n": 1024}, ("registers",)),
        ({"cards": (2,), "n": 1025}, ("memory",)),
        ({"cards": (2,), "n": 512, "hidden": (21,)}, ("registers",)),
        ({"cards": (2,), "n": 513, "hidden": (21,)}, ("memory",)),
    ],
)
def test_which_path(settings, expected):
    variant = case(**settings)
    assert variant.engine("cuda").path(variant.batch) == expected


@pytest.mark.parametrize(
    ("inputs", "hidden"),
    [(20, (20,)), (60, (20,)), (120, (20,)), (180, (20,)), (250, (20,)), (370, (20,)),
     (500, (20,)), (750, (20,)), (1000, (20,)), (120, (24,)), (250, (24,)), (500, (24,)),
     (60, (20, 20)), (250, (17, 32)), (370, (20, 20)), (250, (21, 5)), (1000, (20, 20))],
)  # fmt: skip
def test_every_tiling(inputs, hidden):
    """A variable of many values, which is trained in memory, gives two others so many inputs."""
    rates = (1.0, 0.0, 1.0) if len(hidden) == 2 else None
    variant = case(n=3, cards=(inputs - 4, 2, 3), hidden=hidden, layer_rates=rates, runs=2)
    path = variant.engine("cuda").path(variant.batch)
    assert path == ("registers", "registers", "memory")
    check_step(variant, "cuda")


def test_a_critic_takes_the_fast_path():
    """It has one output, however many values a variable has."""
    model = make_critic_model(case(critic=1.0, cards=(2, 3, 9), hidden=(20,)).model)
    assert policy.create("cuda", model).path(10) == ("registers",)


@pytest.mark.parametrize(
    "settings",
    [{}, {"adam": "kept"}, {"cards": (2, 3), "hidden": (24,)},
     {"hidden": (20, 20), "layer_rates": (1.0, 0.0, 1.0)}],
    ids=["anew", "kept", "24 units", "frozen layer"],
)  # fmt: skip
def test_second_moments_in_memory(settings, monkeypatch):
    """What more than 768 inputs require, at a few: the same numbers as in registers."""
    size = {"n": 2, "runs": 1, "epochs": 2} if INTERPRETED else {"n": 4}
    variant = case(**{"cards": (2,), "hidden": (20,), **size, **settings})
    _, held = generations(variant, variant.engine("cuda"), count=1)
    monkeypatch.setattr(shapes, "HELD_INPUTS", 0)
    engine = variant.engine("cuda")
    (shape, *_) = (shapes.register_shape(variant.model, 10, group) for group in engine._groups)
    assert shape["STORED"]
    _, found = generations(variant, engine, count=1)
    for name, array in held.export().items():
        np.testing.assert_allclose(found.export()[name], array, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    "settings",
    [{}, {"hidden": (5, 4), "adam": "kept"}, {"graph": True, "drop_training": 0.4},
     {"training_order": "none", "masked_input": 0.3}],
    ids=["one layer", "two layers", "graph and dropout", "all others"],
)  # fmt: skip
def test_large_tiles_of_inputs(settings, monkeypatch):
    """What more than 768 inputs are processed in, at a few, in memory."""
    size = {"n": 3, "runs": 1, "batch": 5} if INTERPRETED else {}
    variant = case(**{"hidden": (26,), "epochs": 2, **size, **settings})
    monkeypatch.setattr(shapes, "HELD_INPUTS", 0)
    assert shapes.first_layer_shape(variant.model)["READY"]
    assert set(variant.engine("cuda").path(10)) == {"memory"}
    exact, plain, engine = variant.engines("cuda")
    policies = [variant.policy(each) for each in (exact, plain, engine)]
    points, old = exact.sample(policies[0], variant.draw())
    points[:, 3, 1] = -1  # an absent variable
    batch = variant.answers(points, old)
    batch.weights[:, 3, 1] = 0.0
    for each, kept in zip((exact, plain, engine), policies, strict=True):
        each.train(kept, batch)
    assert_same_parameters(variant, stored(engine, policies[2]), *policies[:2])


INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
SIZE = {"n": 3, "runs": 2, "epochs": 2} if INTERPRETED else {"n": 33, "runs": 5}
PATHS = {
    "registers": case(cards=(2, 3), hidden=(20,), **SIZE),
    "memory": case(cards=(2, 3), hidden=(5, 4), **SIZE),
    "Gibbs": case(
        cards=(2, 3), hidden=(20,), generation_order="gibbs", training_order="none",
        gibbs_sweeps=2, **SIZE,
    ),
}  # fmt: skip
each_path = pytest.mark.parametrize("variant", PATHS.values(), ids=PATHS.keys())


# What must not change a result


def generations(variant, engine, count=2):
    history, kept = [], variant.policy(engine)
    for generation in range(count):
        points, old = engine.sample(kept, variant.draw(generation))
        engine.train(kept, variant.answers(points, old, generation=generation))
        history.append((points, old))
    return history, stored(engine, kept)


@each_path
def test_a_run_is_the_same_alone_and_in_a_batch(variant):
    whole, policy_of_all = generations(variant, variant.engine("cuda"))
    for r in range(variant.runs):
        alone = dataclasses.replace(variant, runs=1, first_run=r)
        own, policy_of_one = generations(alone, alone.engine("cuda"))
        for (points, old), (own_points, own_old) in zip(whole, own, strict=True):
            np.testing.assert_array_equal(points[r], own_points[0])
            np.testing.assert_array_equal(old[r], own_old[0])
        np.testing.assert_array_equal(policy_of_all.theta[r], policy_of_one.theta[0])


@each_path
def test_the_same_twice(variant):
    """No result depends on which program came first."""
    first, second = (generations(variant, variant.engine("cuda")) for _ in range(2))
    for (points, old), (points_again, old_again) in zip(first[0], second[0], strict=True):
        np.testing.assert_array_equal(points, points_again)
        np.testing.assert_array_equal(old, old_again)
    np.testing.assert_array_equal(first[1].theta, second[1].theta)


@each_path
def test_stored_and_loaded(variant):
    variant = variant.replace(adam="kept")
    engine, oracle = variant.engine("cuda"), variant.engine("reference")
    _, kept = generations(variant, engine)
    arrays = engine.export(engine.load(kept.export()))
    for name, array in kept.export().items():
        np.testing.assert_array_equal(arrays[name], array)
    fresh = engine.export(engine.fresh([5], [2]))["theta"]
    expected = oracle.fresh([5], [2]).theta.astype(np.float32)
    np.testing.assert_array_equal(fresh, expected)  # the model's arrangement, bit for bit


@each_path
@pytest.mark.parametrize("ordered", [True, False])
def test_conditionals(variant, ordered):
    exact, _, engine = variant.engines("cuda")
    points, _ = exact.sample(variant.policy(exact), variant.draw(count=17))
    keys = np.random.default_rng(0).integers(0, 2**32, points.shape, np.uint32) if ordered else None
    expected = exact.conditionals(variant.policy(exact), points, keys)
    found = engine.conditionals(variant.policy(engine), points, keys)
    assert rms(found - expected) < 1e-6


def test_equal_keys_go_by_index():
    """Ranks of keys with ties: the second, exact count."""
    from anyorder.strategies.policy.engines.cuda.kernels.orders import count_smaller

    if INTERPRETED:
        pytest.skip("a kernel of its own is not interpreted")
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(keys, ranks, n, TIES: tl.constexpr):
        f = tl.arange(0, 16)
        mine = tl.load(keys + f, mask=f < n, other=0)
        tl.store(ranks + f, count_smaller(mine, f, keys, n, TIES, 16, 4), mask=f < n)

    keys = np.array([7, 3, 7, 2**32 - 1, 0, 3, 2**32 - 1, 0, 7], np.uint32)
    ranks = torch.zeros(16, dtype=torch.int32, device="cuda")
    kernel[(1,)](torch.from_numpy(keys).cuda(), ranks, len(keys), True)
    expected = np.argsort(np.argsort(keys, kind="stable"))
    np.testing.assert_array_equal(ranks.cpu().numpy()[: len(keys)], expected)


# Many runs on the device


CONFIGS = {
    "default": SMALL,
    "restarts": SMALL.replace(restart_agreement=0.3, restart_patience=1),
    "ties by average": SMALL.replace(ties="average", utility=(2.0, 0.0, -1.0)),
    "ties by sort": SMALL.replace(ties="sort", training_order="generation"),
    "curriculum": SMALL.replace(drop_generation=1.0, drop_training=0.8, drop_decay=0.7),
    "Adam kept": SMALL.replace(adam="kept", restart_agreement=0.3, restart_patience=1),
    "deep": SMALL.replace(hidden=(4, 3)),
    "critic": SMALL.replace(critic=3.0),
    "critic, deep": SMALL.replace(critic=3.0, hidden=(4, 3)),
    "Gibbs": SMALL.replace(generation_order="gibbs", training_order="none", gibbs_sweeps=2),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
@pytest.mark.parametrize("problem", [ao.problems.nk(4, 2), ao.problems.nkd(3, 1, 3)], ids=repr)
def test_solve_many_is_maximize(problem, config):
    """The driver on the device, whose bookkeeping is a kernel, against the optimiser's own."""
    budget = 35
    runs = ao.policy.solve_many(
        problem, seeds=[3, 2**63 + 9], budget=budget, config=config, engine="cuda"
    )
    for run in runs:
        policy = ao.policy.Policy(config, "cuda")
        alone = paid(problem, problem.space, budget, seed=run.seed, algorithm=policy)
        np.testing.assert_allclose(run.values, alone.history.values, rtol=1e-12)
        assert run.restarts == alone.history.restarts
        np.testing.assert_array_equal(run.best, alone.best)
        assert run.stop_reason == alone.stop_reason == "budget"
    assert config is not CONFIGS["restarts"] or any(run.restarts for run in runs)


TINY = SMALL.replace(population=4, hidden=(3,), restart_agreement=0.3, restart_patience=1)
DRIVEN = {
    "critic": TINY.replace(critic=100.0),
    "critic, Adam kept": TINY.replace(critic=100.0, adam="kept"),
    "critic, fixed orders": TINY.replace(
        critic=100.0, generation_order="fixed", training_order="generation"
    ),
    "Gibbs": TINY.replace(generation_order="gibbs", training_order="none", gibbs_sweeps=2),
}


@pytest.mark.parametrize("config", DRIVEN.values(), ids=DRIVEN.keys())
def test_the_driver_agrees_with_cpu(config):
    problem, budget = ao.problems.nkd(2, 1, 3), 10
    found, expected = (
        ao.policy.solve_many(problem, runs=2, budget=budget, config=config, engine=engine)
        for engine in ("cuda", "cpu")
    )
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-12)
    assert [run.restarts for run in found] == [run.restarts for run in expected]
    assert any(run.restarts for run in found)
    (alone,) = ao.policy.solve_many(problem, seeds=[1], budget=budget, config=config, engine="cuda")
    np.testing.assert_array_equal(alone.values, found.values[1])


@pytest.mark.parametrize("order", ["random", "generation"])
def test_advantages_of_a_critic_on_the_device(order):
    """Those of the critic on the host, bit for bit, with values that are not finite as well."""
    variant = case(critic=2.0, training_order=order, cards=(2, 3, 1), **SIZE)
    rng = np.random.default_rng(0)
    points = rng.integers(0, variant.model.cards, (variant.runs, 10, variant.n), np.int32)
    values = rng.normal(size=points.shape[:2])
    values[0, :4], values[1, 0] = [np.inf, -np.inf, 1e300, -1e308], np.nan
    stamps = np.zeros((*points.shape[:2], 2), np.int64)
    stamps[..., 0], stamps[..., 1] = 3, np.arange(10)
    host = Critic(variant.model, "cuda")
    twin, generations = host.fresh(variant.seeds, [0] * variant.runs), [3] * variant.runs
    expected = host.advantages(twin, variant.seeds, generations, points, values, stamps)

    critic = device_critic.DeviceCritic(variant.model, variant.seeds, 10)
    put, runs = critic.engine.put, critic.engine.rows(variant.seeds, generations)
    critic.draw_orders(runs, put(stamps))
    orders = critic.engine.orders(runs, 10, put(stamps))  # those of the policy are the same
    weights = torch.ones((1, 1, 1), device=critic.engine.device).expand(points.shape)
    found = critic.advantages(runs, put(points), put(values), weights, orders, most_steps=0)
    np.testing.assert_array_equal(found.cpu().numpy(), expected.astype(np.float32))
    np.testing.assert_array_equal(
        critic.engine.export(critic.policy)["theta"], host.engine.export(twin)["theta"]
    )


def test_finite_values_on_the_device():
    values = np.array(
        [[1.0, np.nan, -2.0, np.inf, -np.inf], [np.nan] * 5, [1e300, -1e308, 2, 3, 4]]
    )
    found = device_critic.finite(torch.from_numpy(values))
    np.testing.assert_array_equal(found.numpy(), _finite(values))


def test_a_critic_restarts_on_the_device():
    variant = case(critic=2.0, cards=(2, 3), adam="kept", **SIZE)
    critic = device_critic.DeviceCritic(variant.model, variant.seeds, 10)
    before = critic.engine.export(critic.policy)["theta"]
    critic.policy.m += 1.0
    runs = critic.engine.rows(variant.seeds)
    runs[1, common.STATUS.value] = common.RESTARTING.value
    runs[1, common.RESTARTS.value] = 2
    critic.restart(runs)
    after = critic.engine.export(critic.policy)
    expected = Critic(variant.model, "reference").fresh(variant.seeds[1:2], [2])
    np.testing.assert_array_equal(after["theta"][0], before[0])
    np.testing.assert_array_equal(after["theta"][1], expected.theta[0].astype(np.float32))
    assert (after["adam_m"][0] == 1.0).all()
    assert (after["adam_m"][1] == 0.0).all()


def count_ones(x):
    return x.sum(dim=-1)


SPACE = ao.Space([ao.Binary(), ao.Integer(5, 7), ao.Categorical([2, 9, 4]), ao.Integer(0, 3)])


def test_a_torch_function():
    """It gets values, not codes, on the device, and each run is what it is alone."""
    seen = []

    def f(x):
        seen.append((tuple(x.shape), x.device.type))
        assert x.dtype == torch.int64
        return x.sum(dim=-1)

    runs = ao.policy.solve_many(
        f, space=SPACE, runs=2, budget=25, config=SMALL, engine="cuda", vectorized="torch"
    )
    device = policy.create("cuda", case().model).device.type
    assert set(seen) == {((2, 10, 4), device), ((2, 5, 4), device)}
    for run in runs:
        alone = paid(
            lambda x: float(x.sum()), SPACE, 25, seed=run.seed,
            algorithm=ao.policy.Policy(SMALL, "cuda"),
        )  # fmt: skip
        np.testing.assert_array_equal(run.values, alone.history.values)


def test_target_and_minimize():
    runs = ao.policy.solve_many(
        count_ones, space=ao.Space.binary(4), runs=3, budget=200, config=SMALL, engine="cuda",
        vectorized="torch", direction="minimize", target=1,
    )  # fmt: skip
    assert set(runs.stop_reasons) == {"target"}
    for run in runs:
        assert run.best_value <= 1
        assert run.evaluations % 10 == 0
        assert run.evaluations < 200
        assert (run.values[:-10] > 1).all()
        assert len(run.values) == run.evaluations


def test_one_failure_does_not_touch_the_others():
    calls = itertools.count()

    def f(x):
        values = x.sum(dim=-1).double()
        if next(calls) == 2:
            values[1, 4] = float("nan")
        return values

    arguments = {"space": ao.Space.binary(4), "runs": 3, "budget": 40, "config": SMALL}
    runs = ao.policy.solve_many(f, **arguments, engine="cuda", vectorized="torch")
    good = ao.policy.solve_many(count_ones, **arguments, engine="cuda", vectorized="torch")
    assert runs.stop_reasons == ("budget", "failed", "budget")
    assert runs[1].evaluations == 24
    assert "NaN" in runs[1].error
    assert "(at evaluation 25)" in runs[1].error
    assert np.isnan(runs.curves[1, -1])
    for r in (0, 2):
        np.testing.assert_array_equal(runs[r].values, good[r].values)
        np.testing.assert_array_equal(runs[r].best, good[r].best)
    np.testing.assert_array_equal(runs[1].values, good[1].values[:24])


def test_bad_torch_functions():
    arguments = {"space": ao.Space.binary(4), "runs": 2, "budget": 20, "config": SMALL,
                 "engine": "cuda", "vectorized": "torch"}  # fmt: skip
    with refused(ValueError, "shape (2,)", "expected (2, 10)"):
        ao.policy.solve_many(lambda x: x.sum(dim=(1, 2)), **arguments)
    with refused(TypeError, "complex"):
        ao.policy.solve_many(lambda x: x.sum(dim=-1) * 1j, **arguments)
    with refused(ZeroDivisionError, "mine"):
        ao.policy.solve_many(
            lambda x: (_ for _ in ()).throw(ZeroDivisionError("mine")), **arguments
        )


@pytest.mark.parametrize("vectorized", [False, True])
def test_functions_on_the_host(vectorized):
    def f(x):
        return np.asarray(x).sum(axis=-1)

    arguments = {"space": ao.Space.binary(3), "runs": 2, "budget": 30, "config": SMALL}
    runs = ao.policy.solve_many(f, **arguments, engine="cuda", vectorized=vectorized)
    same = ao.policy.solve_many(count_ones, **arguments, engine="cuda", vectorized="torch")
    np.testing.assert_array_equal(runs.values, same.values)


def test_ctrl_c():
    calls = itertools.count()

    def f(x):
        if next(calls) == 2:
            raise KeyboardInterrupt
        return x.sum(dim=-1)

    runs = ao.policy.solve_many(f, space=ao.Space.binary(3), runs=2, budget=100, config=SMALL,
                         engine="cuda", vectorized="torch")  # fmt: skip
    assert runs.stop_reasons == ("interrupted", "interrupted")
    assert list(runs.evaluations) == [20, 20]


def test_best_points_are_whole():
    """Every run's best point has its best value: no part of it is of another candidate."""
    n, runs = (2, 2) if INTERPRETED else (300, 200)
    weights = torch.arange(1, n + 1, dtype=torch.float64)

    def weighed(x):
        return (x * weights.to(x.device)).sum(-1)

    found = ao.policy.solve_many(
        weighed, space=ao.Space.binary(n), runs=runs, budget=30, config=SMALL, engine="cuda",
        vectorized="torch",
    )  # fmt: skip
    np.testing.assert_array_equal(found.best_codes @ weights.numpy(), found.best_values)


@pytest.mark.parametrize(("value", "reason"), [(0.1, "target"), (0.1 - 1e-12, "budget")])
def test_targets_are_in_full_precision(value, reason):
    """As float32, 0.1 is larger than 0.1."""
    runs = ao.policy.solve_many(
        lambda x: torch.full(x.shape[:2], value, dtype=torch.float64), space=ao.Space.binary(3),
        runs=2, budget=20, config=SMALL, engine="cuda", vectorized="torch", target=0.1,
    )  # fmt: skip
    assert runs.stop_reasons == (reason,) * 2


@pytest.mark.parametrize("place", [0, 3, 9])
def test_what_comes_after_no_number_does_not_count(place):
    def patchy(x):
        values = torch.ones(x.shape[:2], dtype=torch.float64)
        values[-1, place] = np.nan
        return values

    runs = ao.policy.solve_many(
        patchy, space=ao.Space.binary(2 if INTERPRETED else 70), runs=2, budget=20, config=SMALL,
        engine="cuda", vectorized="torch",
    )  # fmt: skip
    assert runs.stop_reasons == ("budget", "failed")
    assert runs.evaluations.tolist() == [20, place]


def test_chunks(monkeypatch):
    problem = ao.problems.onemax(3)
    arguments = {"runs": 3, "budget": 20, "config": SMALL, "engine": "cuda"}
    expected = ao.policy.solve_many(problem, **arguments)
    fit = policy.cuda.CudaEngine.runs_that_fit
    monkeypatch.setattr(policy.cuda.CudaEngine, "runs_that_fit", lambda *_: 2)
    found = ao.policy.solve_many(problem, **arguments)
    np.testing.assert_array_equal(found.values, expected.values)
    assert found.stop_reasons == expected.stop_reasons
    monkeypatch.setattr(policy.cuda.CudaEngine, "runs_that_fit", fit)


def test_memory_is_counted():
    if INTERPRETED:
        pytest.skip("the interpreter has no device memory")
    variant = case(n=256, cards=(2,), hidden=(20,), epochs=50)
    engine = variant.engine("cuda")
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    runs = 40
    kept = engine.fresh(range(runs), [0] * runs)
    wide = dataclasses.replace(variant, runs=runs)
    points, old = engine.sample(kept, wide.draw())
    engine.train(kept, wide.answers(points, old))
    used, counted = torch.cuda.max_memory_allocated(), engine.memory_of(runs, 10_000)
    assert 0.5 * used < counted < 2 * used + 2**26


def test_memory_of_a_critic_and_of_sweeps_is_counted():
    plain, critic, gibbs = (
        case(n=64, cards=(2,), **settings).engine("cuda").memory_of(10, 0)
        for settings in (
            {"training_order": "none"},
            {"training_order": "none", "critic": 1.0},
            {"training_order": "none", "generation_order": "gibbs"},
        )
    )
    assert 2 * plain < critic < 4 * plain
    assert plain < gibbs < 4 * plain


def test_too_little_memory(monkeypatch):
    engine = case(n=64, cards=(2,)).engine("cuda")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (2**20, 2**34))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: 0)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: 0)
    monkeypatch.setattr(engine, "device", torch.device("cuda"))
    with refused(MemoryError, "one run of 64 variables", "GiB on the GPU", "no run fits"):
        engine.runs_that_fit(10, 10**9)
    assert engine.memory_of(1, 0) < engine.memory_of(1, 10**6) < engine.memory_of(2, 10**6)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (2**34, 2**34))
    fitting = engine.runs_that_fit(10**6, 10_000)
    assert 1 <= fitting < 10**6
    assert engine.memory_of(fitting, 10_000) <= 0.85 * 2**34


def test_memory_of_a_variable_with_many_values():
    """Its network is trained with a place for every value in each row of scratch memory."""
    few, many = (
        case(n=1, cards=(values,), hidden=(), epochs=1, population=100, network="univariate")
        .engine("cuda").memory_of(1, 0)
        for values in (9, 1000)
    )  # fmt: skip
    assert many - few >= 4 * 2 * 128 * (1024 - 16)  # layers, candidates, values


def test_auto_takes_it_where_it_pays(monkeypatch):
    monkeypatch.setattr(policy, "_may_have_a_gpu", lambda: True)
    name, reason = choose(case(n=64, cards=(2,), epochs=50, hidden=(20,)).model, runs=100)
    assert name == "cuda"
    assert "multiply-adds" in reason
    name, reason = choose(case(n=3, cards=(2,), epochs=1).model)
    assert name == "cpu"
    assert "pays from" in reason


# Memory and races


# Without PyTorch's cache every tensor is an allocation of its own, so that reading past its end is
# seen; but the driver records a graph, which needs the cache.
NO_CACHE = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
SANITIZED = {
    "engine": ("test_cuda.py", "batch or conditionals or equal_keys", NO_CACHE),
    "tilings": ("test_cuda.py", "tiling and not (500 or 750 or 1000)", NO_CACHE),
    "driver": ("test_cuda.py", "is_maximize or one_failure", {}),
    "problems": ("test_problems.py", "torch_equals_numpy and cuda", NO_CACHE),
}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="no compute-sanitizer")
@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "synccheck"])
@pytest.mark.parametrize("part", SANITIZED)
def test_compute_sanitizer_finds_nothing(part, tool):
    file, chosen, settings = SANITIZED[part]
    command = [
        "compute-sanitizer", "--tool", tool, "--error-exitcode", "99",
        sys.executable, "-m", "pytest", str(Path(__file__).with_name(file)), "-k", chosen,
        "-m", "not slow",
    ]  # fmt: skip
    done = subprocess.run(
        command, env=os.environ | settings, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "ERROR SUMMARY: 0 errors" in done.stdout or "0 hazards" in done.stdout
    assert " passed" in done.stdout
