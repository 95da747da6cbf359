"""Sampling: the distribution of candidates, and invariance under threads, batches and splits."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from conftest import Case, assert_as_good_as_float32, case
from scipy.stats import chisquare

from anyorder.strategies.policy.engines import cpu
from anyorder.strategies.policy.engines.cpu import CpuEngine, default_threads
from anyorder.strategies.policy.engines.reference import ReferenceEngine
from anyorder.strategies.policy.orders import order_keys
from anyorder.strategies.policy.rng import ORDER_G

pytestmark = pytest.mark.usefixtures("quick_reference")

BOTH = pytest.mark.parametrize("kind", [ReferenceEngine, CpuEngine])
PERMUTATIONS = np.array(list(itertools.permutations(range(4))))

# The statistical tests: chi-square, seed 0, sample sizes as given here. One that is right fails
# with probability LEVEL at another seed.
LEVEL, SIZES = 1e-3, {"reference": 1000, "cpu": 50_000}

SMALL = case(n=4, cards=(2, 3, 4, 2), runs=1, sharp=3.0)
SMALL_KINDS = {
    "random orders": SMALL,
    "fixed order": SMALL.replace(generation_order="fixed"),
    "dropout": SMALL.replace(drop_generation=0.5),
    "all dropped": SMALL.replace(drop_generation=1.0),
}


def p_value(points: np.ndarray, states: np.ndarray, joint: np.ndarray) -> float:
    """Chi-square of candidates against a distribution; cells that expect under 5 are pooled."""
    shape = states.max(axis=0) + 1
    counts = np.bincount(np.ravel_multi_index(points.T, shape), minlength=len(states))
    expected = joint * len(points)
    rare = expected < 5
    pooled = [np.append(x[~rare], x[rare].sum()) for x in (counts, expected)]
    keep = pooled[1] > 0
    return float(chisquare(pooled[0][keep], pooled[1][keep]).pvalue)


def seen_by_subset(variant: Case, states: np.ndarray) -> np.ndarray:
    """`[subset, state, i]`: pi(x_i | those of the subset), a graph that shows just the subset."""
    model, result = variant.model, []
    for subset in itertools.product((False, True), repeat=model.n):
        engine = ReferenceEngine(replace(model, graph=np.tile(subset, (model.n, 1))))
        probs = engine.conditionals(variant.policy(engine), states[None])[0]
        result.append(np.take_along_axis(probs, model.value_start[:-1] + states, axis=1))
    return np.array(result)


def exact_joint(variant: Case) -> tuple[np.ndarray, np.ndarray]:
    """All points and their probabilities, summed over all orders and all dropout masks."""
    config, n = variant.config, variant.n
    states = np.array(list(itertools.product(*map(range, variant.model.cards))))
    table = seen_by_subset(variant, states)
    subsets = np.array(list(itertools.product((False, True), repeat=n)))
    orders = PERMUTATIONS if config.generation_order == "random" else np.arange(n)[None]
    joint = np.zeros(len(states))
    for order in orders:
        term = np.ones(len(states))
        for place, i in enumerate(order):
            allowed = np.isin(np.arange(n), order[:place])
            within = ~np.any(subsets & ~allowed, axis=1)
            size = subsets.sum(axis=1)
            p = config.drop_generation
            chance = np.where(within, (1 - p) ** size * p ** np.maximum(place - size, 0), 0.0)
            term *= chance @ table[:, :, i]
        joint += term / len(orders)
    return states, joint


@BOTH
@pytest.mark.parametrize("variant", SMALL_KINDS.values(), ids=SMALL_KINDS.keys())
def test_candidates_follow_the_exact_joint_distribution(kind, variant):
    states, joint = exact_joint(variant)
    assert joint.sum() == pytest.approx(1.0, abs=1e-12)
    engine = kind(variant.model)
    draw = variant.draw(count=SIZES[engine.name])
    points, _ = engine.sample(variant.policy(engine), draw)
    assert p_value(points[0], states, joint) > LEVEL


def test_the_chi_square_test_can_fail():
    """The candidates are not those of a fixed order, nor of independent variables."""
    engine = CpuEngine(SMALL.model)
    points, _ = engine.sample(SMALL.policy(engine), SMALL.draw(count=SIZES["cpu"]))
    for name in ("fixed order", "dropout", "all dropped"):
        assert p_value(points[0], *exact_joint(SMALL_KINDS[name])) < 1e-9


def test_with_everything_dropped_the_joint_is_a_product_of_marginals():
    variant = SMALL_KINDS["all dropped"]
    _, joint = exact_joint(variant)
    cube = joint.reshape(tuple(variant.model.cards))
    product = np.ones_like(cube)
    for i in range(4):
        product = product * cube.sum(axis=tuple(j for j in range(4) if j != i), keepdims=True)
    np.testing.assert_allclose(cube, product, rtol=1e-12)
    engine = CpuEngine(variant.model)
    _, probs = engine.sample(variant.policy(engine), variant.draw())
    assert len(np.unique(probs[0], axis=0)) == 1  # whatever was drawn before


@BOTH
def test_the_joint_is_the_mean_over_orders_of_products_of_conditionals(kind):
    """The chain rule in the engine's own words: ranks of each order as keys."""
    states, joint = exact_joint(SMALL)
    engine, model = kind(SMALL.model), SMALL.model
    policy, found = SMALL.policy(engine), np.zeros(len(states))
    for order in PERMUTATIONS:
        ranks = np.argsort(order).astype(np.uint32)
        keys = np.broadcast_to(ranks, (1, *states.shape))
        probs = engine.conditionals(policy, states[None].astype(np.int32), keys)[0]
        own = np.take_along_axis(probs, model.value_start[:-1] + states, axis=1)
        found += own.prod(axis=1, dtype=np.float64) / len(PERMUTATIONS)
    np.testing.assert_allclose(found, joint, rtol=1e-12 if kind is ReferenceEngine else 2e-6)


# Conditionals


def generation_keys(variant: Case) -> np.ndarray:
    return np.array(
        [
            [order_keys(variant.model, seed, ORDER_G, 0, row) for row in range(variant.batch)]
            for seed in variant.seeds
        ]
    )


CONDITIONED = {
    "mixed": case(sharp=2.0, batch=13),
    "graph": case(graph=True, sharp=2.0),
    "2 layers, -1": case(hidden=(20, 7), masked_input=-1.0),
    "linear": case(hidden=()),
    "univariate": case(network="univariate"),
    "n = 1": case(n=1),
    "n = 33": case(n=33, hidden=(20,)),
}
every_conditioned = pytest.mark.parametrize("variant", CONDITIONED.values(), ids=CONDITIONED)


@every_conditioned
def test_conditionals_of_both_engines(variant):
    engines = variant.engines()
    policies = [variant.policy(engine) for engine in engines]
    points, _ = engines[0].sample(policies[0], variant.draw())
    # beyond 2^31 a signed comparison would go wrong; few different ones make ties
    large = np.random.default_rng(0).integers(0, 2**32, points.shape, np.uint32)
    for keys in (None, generation_keys(variant), large, large >> np.uint32(30)):
        both = zip(engines, policies, strict=True)
        exact, plain, fast = (engine.conditionals(p, points, keys) for engine, p in both)
        assert_as_good_as_float32(fast, exact, plain)


@BOTH
@every_conditioned
def test_conditionals_in_the_generation_order_are_what_was_sampled_from(kind, variant):
    engine = kind(variant.model)
    policy = variant.policy(engine)
    points, probs = engine.sample(policy, variant.draw())
    keys = generation_keys(variant)
    if kind is CpuEngine:  # one candidate or many are added up differently
        np.testing.assert_allclose(engine.conditionals(policy, points, keys), probs, rtol=2e-6)
    for c in range(variant.batch if kind is ReferenceEngine else 0):
        one = slice(c, c + 1)
        found = engine.conditionals(policy, points[:, one], keys[:, one])
        np.testing.assert_array_equal(found, probs[:, one])


@BOTH
def test_keys_are_as_good_as_their_ranks(kind):
    variant = CONDITIONED["mixed"]
    engine = kind(variant.model)
    policy = variant.policy(engine)
    points, _ = engine.sample(policy, variant.draw())
    keys = generation_keys(variant)
    ranks = keys.argsort(-1, kind="stable").argsort(-1).astype(np.uint32)
    by_keys, by_ranks = (engine.conditionals(policy, points, k) for k in (keys, ranks))
    np.testing.assert_array_equal(by_keys, by_ranks)
    # equal keys: by index
    equal, index = (
        np.full_like(ranks, 9),
        np.broadcast_to(np.arange(8, dtype=np.uint32), ranks.shape),
    )
    by_equal, by_index = (engine.conditionals(policy, points, k) for k in (equal, index))
    np.testing.assert_array_equal(by_equal, by_index)
    assert np.any(by_equal != by_ranks)


# The same whatever the threads, the batch or the split


def everything(engine, variant: Case) -> list[np.ndarray]:
    """All that an engine says about a case, over two generations."""
    policy = variant.policy(engine)
    found = [policy.theta.copy()]
    for generation in range(2):
        points, probs = engine.sample(policy, variant.draw(generation))
        found += [points, probs, engine.conditionals(policy, points)]
        found += [engine.conditionals(policy, points, generation_keys(variant))]
        engine.train(policy, variant.answers(points, probs, generation=generation))
        found += [policy.theta.copy(), policy.m.copy(), policy.v.copy()]
    return found


@pytest.mark.parametrize("runs", [1, 2, 5])
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("settings", [{}, {"adam": "kept", "drop_generation": 0.5, "graph": True}])
def test_threads(threads, runs, settings, monkeypatch):
    variant = case(n=9, runs=runs, **settings)
    used: list[int] = []
    pool = cpu._pool
    monkeypatch.setattr(cpu, "_pool", lambda count: used.append(count) or pool(count))
    monkeypatch.setattr(cpu, "WORTH_A_THREAD", 1)
    expected = everything(CpuEngine(variant.model, threads=1), variant)
    assert not used
    found = everything(CpuEngine(variant.model, threads=threads), variant)
    assert used == [threads] * 9 * (threads - 1)  # other threads helped with each of nine calls
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_an_engine_did_before_does_not_matter():
    """Its scratch is kept: larger batches, and a run that went wrong, leave things behind there."""
    variant = case(batch=7, weights=0.6)
    used, larger = CpuEngine(variant.model, threads=1), replace(variant, batch=23)
    policy = larger.policy(used)
    points, probs = used.sample(policy, larger.draw())
    policy.theta[:] = np.nan
    used.conditionals(policy, points)
    used.train(policy, larger.answers(points, probs))
    assert np.isnan(policy.theta).all()
    found, expected = everything(used, variant), everything(CpuEngine(variant.model), variant)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@BOTH
def test_a_run_alone_is_what_it_is_in_a_batch(kind):
    variant = case(runs=5, adam="kept", drop_training=0.3)
    together = everything(kind(variant.model), variant)
    for r in range(5):
        alone = everything(kind(variant.model), replace(variant, runs=1, first_run=r))
        for one, many in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one[0], many[r])


@BOTH
@pytest.mark.parametrize("settings", [{}, {"drop_generation": 0.5}, {"order_per": "population"}])
def test_a_draw_in_parts_is_the_whole_draw(kind, settings):
    variant = case(**settings)
    engine = kind(variant.model)
    policy = variant.policy(engine)
    start = policy.theta.copy()
    whole = engine.sample(policy, variant.draw(first=0, count=10))
    parts = [engine.sample(policy, variant.draw(first=f, count=c)) for f, c in ((0, 4), (4, 6))]
    for k in range(2):
        np.testing.assert_array_equal(np.concatenate([part[k] for part in parts], axis=1), whole[k])
    np.testing.assert_array_equal(policy.theta, start)  # sampling changes nothing


def test_number_of_threads(monkeypatch):
    monkeypatch.delenv("ANYORDER_NUM_THREADS", raising=False)
    assert default_threads() >= 1
    monkeypatch.setenv("ANYORDER_NUM_THREADS", "3")
    assert default_threads() == CpuEngine(SMALL.model).threads == 3
    for wrong in ("0", "-1", "two", "1.5"):
        monkeypatch.setenv("ANYORDER_NUM_THREADS", wrong)
        with pytest.raises(ValueError, match=f"ANYORDER_NUM_THREADS.*{wrong}"):
            default_threads()


@pytest.mark.parametrize("kind", [ReferenceEngine, CpuEngine])
def test_no_points_have_no_conditionals(kind):
    variant = case()
    engine = kind(variant.model)
    none = np.zeros((variant.runs, 0, variant.n), np.int32)
    got = engine.conditionals(variant.policy(engine), none)
    assert got.shape == (variant.runs, 0, variant.model.values)


@pytest.mark.parametrize("kind", [ReferenceEngine, CpuEngine])
def test_a_variable_that_is_absent_is_hidden_from_all(kind):
    """A code of -1: what the variable would have been makes no difference to the others."""
    variant = case(n=3, cards=(2, 3, 2), masked_input=-1.0)
    engine = kind(variant.model)
    policy = variant.policy(engine)
    points = np.array([[[0, -1, 1]] * variant.runs], np.int32).reshape(variant.runs, 1, 3)
    absent = engine.conditionals(policy, points)
    # variable 1 last in the order: nobody sees it
    keys = np.broadcast_to(np.array([0, 2, 1], np.uint32), points.shape)
    present = points.copy()
    present[..., 1] = 2
    unseen = engine.conditionals(policy, present, keys)
    last = variant.model.value_start[2]
    np.testing.assert_allclose(absent[..., last:], unseen[..., last:], rtol=1e-6)
