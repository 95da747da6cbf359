"""Learned orders: the relaxed sort, its gradient, the distribution of orders, and the search."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from conftest import Case, case, refused
from driving import signed

import anyorder as ao
from anyorder.strategies.base import Answer
from anyorder.strategies.policy import equations
from anyorder.strategies.policy.config import PRESETS
from anyorder.strategies.policy.engines import reference
from anyorder.strategies.policy.learned_order import (
    LearnedOrder,
    RelaxedSort,
    gumbel,
    ranks,
    score_gradient,
)
from anyorder.strategies.policy.rng import ORDER_G, words_of_rows
from anyorder.strategies.policy.search import PolicySearch
from anyorder.testing import check_strategy

pytestmark = pytest.mark.usefixtures("quick_reference")

LEARNED = {"generation_order": "learned", "training_order": "learned"}


def learned(**settings) -> Case:
    return case(**LEARNED, **settings)


VARIANTS = {
    "separate": learned(),
    "binary": learned(cards=(2,)),
    "masked -1": learned(masked_input=-1.0),
    "known graph": learned(graph=True),
    "weights": learned(weights=0.5, kl="bernoulli"),
    "log objective": learned(objective="log"),
    "linear": learned(hidden=()),
    "two layers": learned(hidden=(5, 4)),
    "shared": learned(network="shared", hidden=(6, 5)),
}
every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())


def generation(variant: Case):
    """A policy and what it trains on: points with absent variables, and perturbed scores."""
    rng = np.random.default_rng(1)
    shape = (variant.runs, variant.batch, variant.n)
    points = rng.integers(0, variant.model.cards, shape, np.int32)
    old = np.empty((*shape[:2], variant.model.values))
    for i, d in enumerate(variant.model.cards):
        start = variant.model.value_start[i]
        old[..., start : start + d] = rng.dirichlet(np.full(d, 4.0), shape[:2])
    batch = variant.answers(points, old)
    points[:, 3, 1], batch.weights[:, 3, 1] = -1, 0.0
    return variant.policy(reference.ReferenceEngine(variant.model)), batch, rng.gumbel(size=shape)


def relaxed_permutation(noisy):
    """Equation by equation, as in the paper."""
    n = len(noisy)
    rows = []
    for place in range(1, n + 1):
        logits = [
            (n + 1 - 2 * place) * noisy[j] - sum(abs(noisy[j] - noisy[k]) for k in range(n))
            for j in range(n)
        ]
        power = np.exp(np.array(logits) - max(logits))
        rows.append(power / power.sum())
    return np.array(rows)


def relaxed_objective(model, theta, noisy, batch, r):
    """The objective of run r, variable by variable, under relaxed orders."""
    upper = np.triu(np.ones((model.n, model.n)), 1)
    coding, total = model.coding, 0.0
    for c in range(batch.points.shape[1]):
        permutation = relaxed_permutation(noisy[c])
        mask = permutation.T @ upper @ permutation
        for i in np.flatnonzero(coding.outputs):
            degree = mask[:, i] * (1.0 if model.graph is None else model.graph[i])
            degree[i] = 0.0
            features = coding.features_of(batch.points[r, c]).astype(np.float64)
            shown = degree[coding.owner]
            x = shown * features + (1.0 - shown) * coding.hidden_value
            at = slice(model.value_start[i], model.value_start[i + 1])
            total += equations.objective(
                model.network.layers(theta, int(i)), x[None], batch.points[r, [c], i],
                batch.old[r, [c], at], batch.advantages[r, [c], i], batch.weights[r, [c], i],
                float(coding.floor[i]), model.config.beta, model.config.kl,
                log=model.config.objective == "log",
            )  # fmt: skip
    return total / batch.points.shape[1]


@every_variant
def test_gradient_of_the_scores_against_finite_differences(variant):
    policy, batch, noise = generation(variant)
    model, theta, h = variant.model, policy.theta[1], 1e-5
    scores = np.random.default_rng(2).normal(size=variant.n)
    slope = score_gradient(model, theta, scores + noise[1], batch, 1)
    steps = h * np.eye(variant.n)
    expected = [
        (relaxed_objective(model, theta, scores + step + noise[1], batch, 1)
         - relaxed_objective(model, theta, scores - step + noise[1], batch, 1)) / (2 * h)
        for step in steps
    ]  # fmt: skip
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-7)


def test_a_relaxed_sort_of_scores_far_apart_is_the_sort():
    noisy = 50.0 * np.array([[0.0, 3.0, 1.0, 2.0], [3.0, 2.0, 1.0, 0.0]])
    places = ranks(noisy)
    np.testing.assert_array_equal(places, [[3, 0, 2, 1], [0, 1, 2, 3]])
    hard = places[:, :, None] < places[:, None, :]
    np.testing.assert_allclose(RelaxedSort(noisy).before, hard, atol=1e-12)


def test_orders_have_plackett_luce_probabilities():
    scores, count = np.array([0.0, 0.7, -0.9]), 6_000
    noise = gumbel(words_of_rows(3, ORDER_G, np.zeros(count), np.arange(count), 3))
    places = ranks(scores + noise)
    weights, statistic = np.exp(scores), 0.0
    for order in itertools.permutations(range(3)):
        first, second, last = weights[list(order)]
        expected = count * first / (first + second + last) * second / (second + last)
        found = (np.argsort(places, axis=1) == order).all(axis=1).sum()
        statistic += (found - expected) ** 2 / expected
    assert statistic < 20.5  # chi-square of 5 degrees of freedom, p = 0.001


@pytest.mark.gpu
def test_the_gradient_is_that_of_automatic_differentiation():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(4)
    noisy, slopes = rng.gumbel(size=(3, 9)), rng.normal(size=(3, 9, 9))
    x = torch.tensor(noisy, requires_grad=True)
    factors = 9 + 1 - 2 * torch.arange(1, 10, dtype=torch.float64)
    distances = (x[:, :, None] - x[:, None, :]).abs().sum(dim=2)
    places = torch.softmax(factors[:, None] * x[:, None, :] - distances[:, None, :], dim=2)
    before = places.transpose(1, 2) @ torch.ones(9, 9, dtype=torch.float64).triu(1) @ places
    before = before * (1 - torch.eye(9, dtype=torch.float64))
    sort = RelaxedSort(noisy)
    np.testing.assert_allclose(sort.before, before.detach().numpy(), rtol=1e-12)
    (before * torch.tensor(slopes)).sum().backward()
    np.testing.assert_allclose(sort.backward(slopes), x.grad.numpy(), rtol=1e-9, atol=1e-12)


@every_variant
def test_engines_agree(variant):
    found = []
    for name in ("reference", "cpu"):
        order, engine = LearnedOrder(variant.model, name), variant.engine(name)
        policy, scores = variant.policy(engine), order.fresh(variant.seeds, [0] * variant.runs)
        for generation in range(2):
            draw = order.draw_orders(scores, variant.draw(generation))
            points, old = engine.sample(policy, draw)
            np.testing.assert_allclose(
                old, engine.conditionals(policy, points, draw.keys), rtol=1e-5
            )
            order.train(policy, scores, variant.answers(points, old, generation=generation))
        found.append((points, policy.theta, scores.theta))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    for exact, fast in zip(found[0][1:], found[1][1:], strict=True):
        np.testing.assert_allclose(fast, exact, rtol=1e-3, atol=1e-4)
    assert np.abs(found[0][2]).max() > 0.02


def test_causes_come_before_effects():
    """Networks that read the variable before them in a chain, and points that bear them out.

    Half of the candidates follow the chain and are good, the others break all of it and are bad, so
    the objective is the better the more each network sees of its cause. The variables of the chain
    are in another order than their indices, and no network reads its effect.
    """
    chain = np.array([3, 0, 5, 2, 4, 1])
    config = PRESETS["paper"].replace(hidden=(), learning_rate=1e-12, order_rate=0.05, **LEARNED)
    variant = Case(config, n=6, cards=(2,), runs=1)
    order, engine = LearnedOrder(variant.model, "cpu"), variant.engine("cpu")
    policy, scores = variant.policy(engine), order.fresh([0], [0])
    policy.theta[:] = 0.0
    for cause, effect in itertools.pairwise(chain):
        variant.model.network.layers(policy.theta[0], int(effect))[0][0][0, cause] = 1.5
    rng = np.random.default_rng(0)
    for generation in range(4):
        advantages = np.where(np.arange(10) % 2 == 0, 1.0, -1.0)
        points = np.zeros((1, 10, 6), np.int32)
        points[0, :, chain[0]] = rng.integers(0, 2, 10)
        for cause, effect in itertools.pairwise(chain):
            points[0, :, effect] = points[0, :, cause] ^ (advantages < 0)
        gain = np.tile(advantages[None, :, None], (1, 1, 6))
        batch = variant.answers(points, np.full((1, 10, 12), 0.5), gain, generation)
        order.train(policy, scores, batch)
    assert (np.diff(scores.theta[0][chain]) < -0.1).all(), scores.theta[0][chain]


@pytest.mark.slow
def test_what_is_decided_first_comes_first():
    """A chain whose links count if all before them hold: scores fall along it in most searches.

    benchmarks/orders.py has more runs, and chains in which they do not.
    """
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        places, flips = rng.permutation(12), rng.integers(0, 2, 11)
        search = PolicySearch(
            ao.Space.binary(12), seed, ao.policy.Config(restart_agreement=None, **LEARNED), "cpu"
        )
        while search.generation < 80:
            drawn = search.propose(10)
            x = drawn.codes[:, places]
            held = x[:, 1:] == x[:, :-1] ^ flips
            values = np.cumprod(held, axis=1).sum(axis=1).astype(float)
            search.learn(
                [Answer(*each) for each in zip(drawn.tickets, drawn.codes, values, strict=True)]
            )
        ranked = np.argsort(np.argsort(search.order_scores[places]))
        found.append(np.corrcoef(ranked, np.arange(12))[0, 1])
    assert np.mean(found) < -0.1, found
    assert sum(value < 0 for value in found) >= 4, found


def test_equal_scores_are_random_orders():
    """With a rate of 0 the search is that in random orders, number by number."""
    problem = ao.problems.nk(10, 2, 0)
    histories = [
        ao.maximize(
            problem,
            budget=60,
            seed=3,
            algorithm=ao.policy.Policy(
                ao.policy.Config(hidden=(4,), epochs=3, **settings), "reference"
            ),
            progress=False,
        ).history
        for settings in ({}, {**LEARNED, "order_rate": 0})
    ]
    np.testing.assert_array_equal(histories[0].codes, histories[1].codes)


SMALL = PRESETS["default"].replace(hidden=(5,), epochs=3, population=4, **LEARNED)


@pytest.mark.parametrize("adam", ["anew", "kept"])
def test_a_restored_search_continues(adam):
    problem = ao.problems.nk(9, 2, 0)

    def advance(search: PolicySearch, generations: int) -> None:
        for _ in range(generations):
            drawn = search.propose(6)  # more than a generation: answers come late
            search.learn([
                Answer(ticket, codes, float(problem.evaluate(codes)))
                for ticket, codes in zip(drawn.tickets[::-1], drawn.codes[::-1], strict=True)
            ])  # fmt: skip

    first, second = (
        PolicySearch(problem.space, 5, SMALL.replace(adam=adam), "cpu") for _ in range(2)
    )
    advance(first, 5)
    left = first.propose(3)
    second.restore(first.state())
    np.testing.assert_array_equal(second.order_scores, first.order_scores)
    assert second.facts() == first.facts()
    for search in (first, second):
        search.learn([
            Answer(ticket, codes, float(problem.evaluate(codes)))
            for ticket, codes in zip(left.tickets, left.codes, strict=True)
        ])  # fmt: skip
        advance(search, 4)
    one, other = first.state(), second.state()
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


def test_any_number_of_threads_gives_the_same(monkeypatch):
    states = []
    for threads in ("1", "2"):
        monkeypatch.setenv("ANYORDER_NUM_THREADS", threads)
        search = PolicySearch(ao.Space.binary(80), 0, SMALL.replace(hidden=(40,)), "cpu")
        for _ in range(2):
            drawn = search.propose(4)
            search.learn([
                Answer(ticket, codes, float(codes.sum()))
                for ticket, codes in zip(drawn.tickets, drawn.codes, strict=True)
            ])  # fmt: skip
        states.append(search.state())
    for name in states[0]:
        np.testing.assert_array_equal(states[0][name], states[1][name])


def test_damaged_states_are_refused():
    search = PolicySearch(ao.Space.binary(6), 0, SMALL, "cpu")
    search.propose(3)
    state = search.state()
    assert state["order_theta"].shape == (1, 6)
    for name, damage in (
        ("order_theta", np.full((1, 6), np.nan)), ("order_theta", np.zeros((1, 5))),
        ("keys", state["keys"][:, 1:]), ("keys", state["keys"].astype(float)),
    ):  # fmt: skip
        with refused(ValueError, name):
            search.restore(signed({**state, name: damage}))
    with refused(ValueError, "order_theta"):
        search.restore(signed({n: x for n, x in state.items() if n != "order_theta"}))


def test_late_candidates_keep_the_order_they_were_drawn_in():
    search = PolicySearch(ao.Space.binary(6), 0, SMALL.replace(order_rate=1.0), "cpu")
    late = search.propose(1)
    keys = search._open[late.tickets[0]].keys
    for _ in range(4):
        drawn = search.propose(4)
        search.learn([
            Answer(ticket, codes, float(codes.sum()))
            for ticket, codes in zip(drawn.tickets, drawn.codes, strict=True)
        ])  # fmt: skip
    assert (search._keys([(0, 0)]) != keys).any()  # the scores have changed
    (candidate,) = search._open.values()
    today, _ = search._anchor([candidate])
    expected = search._distributions(candidate.codes[None], keys[None])
    np.testing.assert_array_equal(today, expected)


def test_a_restart_makes_all_orders_equally_likely():
    config = SMALL.replace(restart_agreement=0.5, restart_patience=1)
    search = PolicySearch(ao.Space.binary(5), 0, config, "cpu")
    while not search.restarts:
        assert search.generation == 0 or search.order_scores.any()
        drawn = search.propose(4)
        search.learn([
            Answer(ticket, codes, float(codes.sum()))
            for ticket, codes in zip(drawn.tickets, drawn.codes, strict=True)
        ])  # fmt: skip
    assert not search.order_scores.any()


def test_many_runs_are_single_runs():
    problem = ao.problems.nk(12, 2, 0)
    config = SMALL.replace(restart_agreement=0.7, restart_patience=1)
    many = ao.policy.solve_many(
        problem, runs=3, budget=60, config=config, engine="cpu", progress=False
    )
    assert sum(map(len, many.restarts)) > 0
    for k, seed in enumerate(many.seeds):
        alone = ao.maximize(
            problem,
            budget=60,
            seed=seed,
            algorithm=ao.policy.Policy(config, engine="cpu"),
            cache=False,
            progress=False,
        )
        np.testing.assert_array_equal(many.values[k], alone.history.values)


@pytest.mark.slow
@pytest.mark.parametrize("network", ["separate", "shared"])
def test_check_strategy(network):
    config = SMALL.replace(network=network, hidden=(5,))
    check_strategy(lambda space, seed: PolicySearch(space, seed, config, "cpu"), lists=False)


def test_facts_and_influence():
    space = ao.Space(
        {"a": ao.Binary(), "b": ao.Integer(0, 999), "c": ao.Categorical(["x", "y", "z"])}
    )
    search = PolicySearch(space, 0, SMALL, "cpu")
    search._scores.theta[0, -1] = 9.0
    search._scores.theta[0, 0] = -9.0
    assert search.facts()["order"] == ["c", "b", "a"]
    assert search.influence(4).shape == (3, 3)
    with refused(ValueError, "generation_order is 'random'", "expected 'learned'"):
        _ = PolicySearch(space, 0).order_scores


def test_refusals():
    with refused(ValueError, "training_order is 'random'", "expected 'learned'"):
        ao.policy.Config(generation_order="learned")
    with refused(ValueError, "generation_order is 'fixed'", "expected 'learned'"):
        ao.policy.Config(generation_order="fixed", training_order="learned")
    with refused(ValueError, "training_order is 'learned'", "expected 'none'", "gibbs"):
        ao.policy.Config(generation_order="gibbs", training_order="learned")
    others = {"network": "univariate", "drop_generation": 0.5, "drop_training": 1.0, "critic": 2.0}
    for name, value in others.items():
        with refused(ValueError, f"{name} is {value!r}", "learned orders"):
            ao.policy.Config(**LEARNED, **{name: value})
    large = learned(network="shared", cards=(2,), n=100_000)
    with refused(MemoryError, "100000 variables", "GiB"):
        LearnedOrder(large.model, "reference")
