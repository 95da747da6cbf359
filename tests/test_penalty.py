"""The adaptive weight of the KL penalty: PPO's rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import case

import anyorder as ao
from anyorder.policy import PRESETS, solve_many
from anyorder.strategies.base import Answer
from anyorder.strategies.policy.equations import kl_divergence
from anyorder.strategies.policy.penalty import NEUTRAL, Penalty
from anyorder.strategies.policy.search import PolicySearch

SMALL = PRESETS["default"].replace(hidden=(5,), epochs=3, population=4)


@pytest.mark.parametrize("doublings", [-2, 0, 3])
@pytest.mark.parametrize("name", ["reference", "cpu"])
def test_a_scaled_batch_trains_with_another_beta(doublings: int, name: str) -> None:
    one = case(kl_target=0.01, beta=0.5)
    other = case(beta=0.5 * 2.0**doublings)
    drawn = one.engine(name).sample(one.policy(one.engine(name)), one.draw())
    found = []
    for some, scales in ((one, True), (other, False)):
        engine = some.engine(name)
        policy, batch = some.policy(engine), some.answers(*drawn)
        if scales:
            penalty = Penalty(engine, 2)
            penalty.doublings[:] = NEUTRAL + doublings
            batch = penalty.scale(batch, [0, 1])
        engine.train(policy, batch)
        found.append(policy.theta)
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-6)


def test_the_rule() -> None:
    engine = case(kl_target=0.3).engine("reference")
    penalty = Penalty(engine, 5)
    found = np.array([0.1999, 0.2001, 0.4499, 0.4501])
    penalty.divergences = lambda policy, batch: found  # type: ignore[method-assign]
    runs = [4, 3, 1, 0]  # run 2 is not among them
    for _ in range(2):
        penalty.follow(None, None, runs)  # type: ignore[arg-type]
    assert (penalty.doublings - NEUTRAL).tolist() == [2, 0, 0, 0, -2]
    for _ in range(30):
        penalty.follow(None, None, runs)  # type: ignore[arg-type]
    assert penalty.doublings.tolist() == [2 * NEUTRAL, NEUTRAL, NEUTRAL, NEUTRAL, 0]
    penalty.restart([0])
    assert penalty.doublings[0] == NEUTRAL


def test_divergences_by_hand() -> None:
    one = case(kl_target=0.1)
    engine = one.engine("reference")
    policy = one.policy(engine)
    drawn = engine.sample(policy, one.draw())
    batch = one.answers(*drawn)
    penalty = Penalty(engine, 2)
    # right after sampling, in the orders of generation, nothing has changed
    np.testing.assert_allclose(penalty.divergences(policy, batch), 0, atol=1e-12)
    rng, model, old = np.random.default_rng(0), one.model, batch.old.astype(float).copy()
    total = np.zeros(old.shape[:2])
    for i, d in enumerate(model.cards):
        place = slice(model.value_start[i], model.value_start[i] + d)
        old[..., place] = rng.dirichlet(np.full(d, 3.0), old.shape[:2])
        for r, c in np.ndindex(*old.shape[:2]):
            new = drawn[1][r, c, place].astype(float)
            total[r, c] += kl_divergence(old[r, c, place][None], new[None], "categorical")[0]
    got = penalty.divergences(policy, replace(batch, old=old))
    np.testing.assert_allclose(got, total.mean(axis=1) / model.n, rtol=1e-9)


def learn(search: PolicySearch, generations: int) -> None:
    for _ in range(generations):
        drawn = search.propose(4)
        search.learn([
            Answer(ticket, codes, float(codes.sum()))
            for ticket, codes in zip(drawn.tickets, drawn.codes, strict=True)
        ])  # fmt: skip


def test_a_low_target_raises_beta_and_a_state_holds_it() -> None:
    config = SMALL.replace(kl_target=1e-9, restart_agreement=None)
    search = PolicySearch(ao.Space.binary(6), 0, config, "cpu")
    learn(search, 3)
    assert search._penalty is not None
    assert search._penalty.doublings.tolist() == [NEUTRAL + 3]
    other = PolicySearch(ao.Space.binary(6), 1, config, "cpu")
    other.restore(search.state())
    learn(search, 2)
    learn(other, 2)
    np.testing.assert_array_equal(search.state()["theta"], other.state()["theta"])
    plain = search.state()
    plain["header"] = np.array(str(plain["header"]).replace("doublings", "doubled"))
    with pytest.raises(ValueError, match="damaged"):
        other.restore(plain)


def test_many_runs_are_single_runs() -> None:
    problem = ao.problems.nk(12, 2, 0)
    config = SMALL.replace(
        kl_target=1e-6, learning_rate=0.05, restart_agreement=0.7, restart_patience=1
    )
    many = solve_many(problem, runs=3, budget=60, config=config, engine="cpu", progress=False)
    constant = solve_many(
        problem, runs=3, budget=60, config=config.replace(kl_target=None), engine="cpu",
        progress=False,
    )  # fmt: skip
    assert (many.values != constant.values).any()
    assert sum(map(len, many.restarts)) > 0
    for k, seed in enumerate(many.seeds):
        alone = ao.maximize(
            problem, budget=60, seed=seed, algorithm=ao.policy.Policy(config, engine="cpu"),
            cache=False, vectorized=True, progress=False,
        )  # fmt: skip
        np.testing.assert_array_equal(many.values[k], alone.history.values)


def test_refusals() -> None:
    for settings, said in (
        ({"beta": 0.0}, "beta is 0.0"),
        ({"drop_generation": 0.5}, "dropout in generation"),
        ({"generation_order": "learned", "training_order": "learned"}, "learned orders"),
        ({"kl_target": 0.0}, "kl_target is 0.0"),
    ):
        with pytest.raises(ValueError, match=said):
            SMALL.replace(**{"kl_target": 0.01, **settings})
