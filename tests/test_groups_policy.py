"""Groups of columns, as of permutations and subsets: the policy draws and trains under masks."""

import math

import numpy as np
import pytest
from conftest import Case, case, refused, rms
from driving import signed
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from test_engines import assert_same_parameters, check_step
from test_gradients import differences, problem

import anyorder as ao
from anyorder.space.groups import Group
from anyorder.space.lists import Permutation, Subset
from anyorder.strategies.base import Answer
from anyorder.strategies.policy import engines, equations
from anyorder.strategies.policy.config import PRESETS
from anyorder.strategies.policy.engines import create, reference
from anyorder.strategies.policy.masks import apply_masks, find_allowed, restrict
from anyorder.strategies.policy.model import make_critic_model, make_model, model_of
from anyorder.strategies.policy.orders import sampling_keys
from anyorder.strategies.policy.search import PolicySearch

pytestmark = pytest.mark.usefixtures("quick_reference")


def group(first: int, size: int, least, most) -> Group:
    return Group(first, size, np.array(least, np.int64), np.array(most, np.int64))


def permutation(first: int, size: int) -> Group:
    return Permutation(range(size)).group(first)


def subset(first: int, size: int, low: int, high: int) -> Group:
    return Subset(range(size), size=(low, high)).group(first)


# a permutation, two subsets and a group in general, with plain columns before, between and after
CARDS = (2, 5, 5, 5, 5, 5, 3, 2, 2, 2, 2, 4, 3, 3, 3, 3, 3, 2, 2, 2, 7)
GROUPS = (
    permutation(1, 5),
    subset(7, 4, 1, 2),
    group(12, 5, [0, 1, 2], [2, 2, 3]),
    subset(17, 3, 2, 2),
)


def grouped(**settings) -> Case:
    shape = {"n": len(CARDS), "cards": CARDS, "groups": GROUPS, "batch": 7, "epochs": 3}
    return case(**{**shape, **settings})


VARIANTS = {
    "(s,s)": grouped(),
    "(d,d)": grouped(generation_order="fixed", training_order="fixed"),
    "(d,s)": grouped(generation_order="fixed"),
    "(s,d)": grouped(training_order="generation"),
    "(s,p)": grouped(training_order="none", drop_training=0.5),
    "an order a population": grouped(order_per="population"),
    "dropout": grouped(drop_generation=0.5, drop_training=0.25),
    "known graph": grouped(graph=True),
    "univariate": grouped(network="univariate"),
    "univariate, no order in training": grouped(network="univariate", training_order="none"),
    "Bernoulli KL": grouped(kl="bernoulli"),
    "log objective": grouped(objective="log"),
    "log objective, shared": grouped(objective="log", network="shared", hidden=(6, 5)),
    "beyond the clip": grouped(sharp=4.0, clip=0.05, runs=4),
    "half the weights": grouped(weights=0.5),
    "shared": grouped(network="shared", hidden=(6, 5)),
    "shared, (d,d)": grouped(
        network="shared", hidden=(6,), generation_order="fixed", training_order="fixed"
    ),
    "shared, (s,p)": grouped(
        network="shared", hidden=(6,), training_order="none", drop_training=0.5
    ),
    "shared, no mask of inputs": grouped(network="shared", hidden=(6,), training_order="none"),
    "shared, Bernoulli KL": grouped(network="shared", hidden=(6,), kl="bernoulli", graph=True),
}

every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())


def valid(variant: Case, points) -> bool:
    rows = points.reshape(-1, variant.n)
    return all(group.valid(rows[:, group.columns]).all() for group in variant.groups)


@every_variant
def test_cpu_and_reference(variant):
    check_step(variant)
    exact, plain, fast = variant.engines()
    policies = [variant.policy(engine) for engine in (exact, plain, fast)]
    drawn = exact.sample(policies[0], variant.draw(generation=3))
    assert valid(variant, drawn[0])
    before = policies[0].theta.copy()
    for engine, policy in zip((exact, plain, fast), policies, strict=True):
        engine.train(policy, variant.answers(*drawn, generation=3))
    assert_same_parameters(variant, policies[2], policies[0], policies[1])
    assert rms(policies[0].theta - before) > 1e-4


# Masks


@st.composite
def bounded(draw) -> Group:
    """A group of up to 5 columns and 4 values that has at least one assignment."""
    size, values = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    counts = np.bincount(
        draw(st.lists(st.integers(0, values - 1), min_size=size, max_size=size)), minlength=values
    )
    less = draw(st.lists(st.integers(0, 5), min_size=values, max_size=values))
    more = draw(st.lists(st.integers(0, 5), min_size=values, max_size=values))
    return group(0, size, np.maximum(counts - less, 0), counts + more)


@given(bounded(), st.data())
def test_a_value_is_allowed_if_some_valid_point_has_it(group, data):
    values = len(group.most)
    every = np.array(list(np.ndindex(*[values] * group.size)))
    every = every[group.valid(every)]
    codes = every[data.draw(st.integers(0, len(every) - 1))]
    before = np.array(data.draw(st.lists(st.booleans(), min_size=group.size, max_size=group.size)))
    before[data.draw(st.integers(0, group.size - 1))] = False
    column = int(np.flatnonzero(~before)[-1])
    possible = every[(every == codes)[:, before].all(axis=1)]
    found = find_allowed(group, codes[None], before[None])[0]
    assert set(np.flatnonzero(found)) == set(possible[:, column])


@settings(max_examples=30)
@given(bounded(), st.sampled_from(["separate", "univariate", "shared"]), st.integers(0, 99))
def test_every_candidate_is_valid(group, network, seed):
    cards = (3, *[len(group.most)] * group.size, 2)
    moved = Group(1, group.size, group.least, group.most)
    variant = case(
        n=len(cards), cards=cards, groups=(moved,), network=network, hidden=(3,), sharp=5.0,
        first_run=seed, drop_generation=0.3,
    )  # fmt: skip
    for engine in variant.engines()[::2]:
        points, _ = engine.sample(variant.policy(engine), variant.draw())
        assert valid(variant, points)


@pytest.mark.parametrize("engine", ["reference", "cpu"])
@pytest.mark.parametrize("kind", ["(s,s)", "(d,d)", "beyond the clip", "shared"])
def test_what_is_used_up_has_probability_zero(kind, engine):
    variant = VARIANTS[kind]
    engine, model, group = variant.engine(engine), variant.model, GROUPS[0]
    policy = variant.policy(engine)
    points, old = engine.sample(policy, variant.draw())
    stamps = [(0, c) for c in range(variant.batch)]
    for r, seed in enumerate(variant.seeds):
        keys = sampling_keys(model, seed, stamps)
        probs = apply_masks(model, old[r], points[r], keys)
        sums = np.add.reduceat(probs, model.value_start[:-1], axis=1)
        np.testing.assert_allclose(sums, 1.0, atol=1e-6)
        chosen = np.take_along_axis(probs, model.value_start[:-1] + points[r], axis=1)
        assert (chosen > 0).all()
        for c in range(variant.batch):
            order = [i for i in np.argsort(keys[c], kind="stable") if 1 <= i <= group.size]
            for t, i in enumerate(order):
                own = probs[c, model.value_start[i] : model.value_start[i + 1]]
                assert set(np.flatnonzero(own == 0)) == set(points[r, c, order[:t]])
        # the distributions before masks are those of `conditionals`
        again = engine.conditionals(policy, points, np.stack([
            sampling_keys(model, own, stamps) for own in variant.seeds
        ]))  # fmt: skip
        np.testing.assert_allclose(again, old, rtol=1e-4)


@pytest.mark.parametrize("engine", ["reference", "cpu"])
@pytest.mark.parametrize(
    ("group", "number"), [(permutation(0, 3), 6), (subset(0, 4, 2, 2), 6)], ids=["items", "pairs"]
)
def test_a_uniform_policy_draws_all_points_equally_often(group, number, engine):
    count = 400 if engine == "reference" else 6000
    cards = (len(group.most),)
    variant = case(n=group.size, cards=cards, groups=(group,), network="univariate", runs=1)
    engine = variant.engine(engine)
    (points,), _ = engine.sample(variant.policy(engine), variant.draw(count=count))
    _, times = np.unique(points, axis=0, return_counts=True)
    assert len(times) == number
    assert stats.chisquare(times).pvalue > 1e-3


# The objective


@pytest.mark.parametrize("kl", ["categorical", "bernoulli"])
@pytest.mark.parametrize("d", [2, 3, 7])
@pytest.mark.parametrize("clipped", [False, True])
def test_gradient_of_the_masked_objective(d, kl, clipped):
    layers, (x, value, old, advantage, weight) = problem((5,), d)
    rng = np.random.default_rng(d)
    some = rng.random(old.shape) < 0.6
    some[np.arange(len(value)), value] = True
    some[0] = np.arange(d) == value[0]  # one value is left
    some[1] = True
    raw = reference.raw_probabilities(equations.forward(layers, x)[-1], some)
    assert (raw[~some] == 0).all()
    lowest = np.where(some, raw, 1.0).min(axis=1)
    floor = float(np.quantile(lowest, 0.4)) if clipped else 1e-3
    old = restrict(old, some, floor)
    batch, constants = (x, value, old, advantage, weight), (floor, 0.7, kl, some)
    found = reference.gradient(layers, *batch, *constants)
    for layer, by_hand in zip(found, differences(layers, batch, *constants), strict=True):
        for got, want in zip(layer, by_hand, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=2e-9)
    assert rms(found[-1][0]) > 1e-3
    alone = [part[:1] for part in batch]
    for slopes in reference.gradient(layers, *alone, *constants[:3], some[:1]):
        assert not any(part.any() for part in slopes)  # nothing to learn where nothing is chosen


def test_a_mask_that_allows_everything_changes_nothing():
    layers, batch = problem((5,), 3)
    every = np.ones(batch[2].shape, bool)
    for kl in ("categorical", "bernoulli"):
        plain = equations.objective(layers, *batch, 1e-3, 0.7, kl)
        assert equations.objective(layers, *batch, 1e-3, 0.7, kl, every) == pytest.approx(plain)


def test_masked_objective_by_hand():
    """One of three values is used up: eq. (8) over the other two, with the standard library."""
    old, logits = [0.2, 0.5, 0.3], [0.1, -0.4, 0.8]
    some = np.array([[False, True, True]])
    power = [0.0, math.exp(-0.4), math.exp(0.8)]
    new = [p / sum(power) for p in power]
    before = [0.0, 0.5 / 0.8, 0.3 / 0.8]
    np.testing.assert_allclose(restrict(np.array([old]), some, 1e-3), [before])
    kl = sum(q * math.log(q / p) for q, p in zip(before[1:], new[1:], strict=True))
    layers = [(np.zeros((3, 0)), np.array(logits))]
    batch = (np.zeros((1, 0)), np.array([1]), np.array([before]), np.array([-0.6]), np.ones(1))
    got = equations.objective(layers, *batch, 1e-3, 0.7, "categorical", some)
    assert got == pytest.approx(new[1] / before[1] * -0.6 - 0.7 * kl, rel=1e-12)


def test_the_first_ratio_is_one():
    """Without inputs the old and the new distribution are one, under whatever order."""
    variant = grouped(network="univariate", epochs=1, adam="kept", beta=0.0)
    engine = variant.engine("cpu")
    policy = variant.policy(engine)
    policy.theta += np.random.default_rng(0).normal(size=policy.theta.shape).astype(np.float32)
    points, old = engine.sample(policy, variant.draw())
    seen = []

    def spy(*args):
        new = equations.probabilities(equations.forward(args[0], args[1])[-1], args[6], args[9])
        rows = np.arange(len(args[2]))
        seen.append(new[rows, args[2]] / args[3][rows, args[2]])
        return gradient(*args)

    gradient = reference.gradient
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "gradient", spy)
        variant.engine("reference").train(policy, variant.answers(points, old))
    np.testing.assert_allclose(np.concatenate(seen), 1.0, rtol=1e-4)


@pytest.mark.parametrize("order", ["fixed", "generation", "none"])
def test_training_masks_follow_the_order_of_training(order, monkeypatch):
    """Or, where there is none, that of sampling; inputs that are dropped do not matter."""
    size = 5
    variant = case(
        n=size, cards=(size,), groups=(permutation(0, size),), runs=1, epochs=1,
        training_order=order, drop_training=1.0,
    )  # fmt: skip
    engine = variant.engine("reference")
    policy = variant.policy(engine)
    points, old = engine.sample(policy, variant.draw())
    masks, gradient = [], reference.gradient
    monkeypatch.setattr(
        reference, "gradient", lambda *args: masks.append(args[9]) or gradient(*args)
    )
    engine.train(policy, variant.answers(points, old))
    keys = sampling_keys(variant.model, variant.seeds[0], [(0, c) for c in range(variant.batch)])
    if order == "fixed":
        keys = np.broadcast_to(np.arange(size), keys.shape)
    for i, some in enumerate(masks):
        for c, row in enumerate(some):
            assert set(np.flatnonzero(~row)) == set(points[0, c, keys[c] < keys[c, i]])


# Models and engines


def test_groups_behind_digits():
    space = ao.Space([ao.Integer(1, 1000), *[ao.Categorical(range(3))] * 3])
    space.__dict__["groups"] = (permutation(1, 3),)
    model, digits = model_of(space, PRESETS["default"])
    (found,) = model.groups
    assert (found.first, found.size) == (len(digits) - 3, 3)
    assert model.group_of.tolist() == [-1] * (len(digits) - 3) + [0, 0, 0]


def test_a_critic_has_no_masks():
    assert make_critic_model(grouped(critic=1.0).model).groups == ()


def test_gibbs_is_refused():
    config = PRESETS["default"].replace(generation_order="gibbs", training_order="none")
    with refused(ValueError, "generation_order is 'gibbs'", "with lists"):
        make_model([3] * 3, [False] * 3, config, None, [permutation(0, 3)])


def test_cuda_is_refused_and_auto_takes_the_cpu(monkeypatch):
    model = VARIANTS["(s,s)"].model
    with refused(RuntimeError, "'cuda' has no masks for lists, expected 'cpu' or"):
        create("cuda", model)
    monkeypatch.setattr(engines, "_why_no_cuda", lambda: None)
    monkeypatch.setattr(engines, "_may_have_a_gpu", lambda: True)
    assert engines.choose(model, 10**6) == ("cpu", "it has no masks for lists")
    assert create("auto", model, 10**6).name == "cpu"


# The strategy


def places(size: int) -> ao.Space:
    """Permutations of so many items."""
    space = ao.Space.categorical(size, size)
    space.__dict__["groups"] = (permutation(0, size),)
    return space


def answers(proposals, f) -> list[Answer]:
    pairs = zip(proposals.tickets, proposals.codes, strict=True)
    return [Answer(ticket, codes, f(codes)) for ticket, codes in pairs]


def test_it_learns_a_planted_permutation():
    """The number of items in their right places: random search finds 4 to 6 of 8."""
    size, budget = 8, 300
    for seed in range(5):
        rng = np.random.default_rng(seed)
        planted = rng.permutation(size)
        search, found = PolicySearch(places(size), seed, "default", "cpu"), 0
        while search.generation < budget // search.batch:
            proposals = search.propose(search.batch)
            told = answers(proposals, lambda codes, right=planted: float((codes == right).sum()))
            search.learn(told)
            found = max(found, *(int(answer.value) for answer in told))
        luck = max(int((rng.permutation(size) == planted).sum()) for _ in range(budget))
        assert found > luck


@pytest.mark.parametrize("settings", [{}, {"critic": 1.0}, {"training_order": "generation"}])
def test_late_answers(settings, monkeypatch):
    """Their correction is 1 where one value is left, whatever the policy has learned since."""
    size = 5
    search = PolicySearch(places(size), 0, PRESETS["default"].replace(**settings), "cpu")
    early, late = search.propose(10), search.propose(10)
    search.learn(answers(early, lambda codes: float(codes[0])))
    anchored, seen = search._anchor, []
    monkeypatch.setattr(search, "_anchor", lambda late: seen.append(anchored(late)) or seen[0])
    search.learn(answers(late, lambda codes: float(codes[1])))
    ((_, ratio),) = seen
    keys = sampling_keys(search._model, 0, [(0, c) for c in range(10, 20)])
    last = keys.argmax(axis=1)
    assert (ratio[np.arange(10), last] == 1.0).all()
    assert rms(ratio - 1.0) > 1e-3
    assert np.isfinite(search.state()["theta"]).all()
    assert search.generation == 2


def test_a_state_with_an_invalid_candidate_is_refused():
    search = PolicySearch(places(4), 0, "default", "cpu")
    search.propose(3)
    state = search.state()
    PolicySearch(places(4), 0, "default", "cpu").restore(state)
    state["codes"][1, 0] = state["codes"][1, 1]
    with refused(ValueError, "'codes' has impossible values"):
        search.restore(signed(state))


def test_influence_is_what_was_learned():
    """Not what masks do: without inputs no column moves another one."""
    for network, least, most in (("separate", 1e-6, 1.0), ("univariate", 0.0, 0.0)):
        config = PRESETS["default"].replace(network=network)
        moves = PolicySearch(places(4), 0, config, "cpu").influence()
        assert least <= moves.max() <= most
        assert not moves.diagonal().any()
