"""Gibbs sampling: sweeps over all variables, each given all others."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from conftest import Case, case, computed, refused
from test_engines import check_step
from test_learning import paid

import anyorder as ao
from anyorder.strategies.policy.config import PRESETS
from anyorder.strategies.policy.engines import create
from anyorder.strategies.policy.engines.base import Draw
from anyorder.strategies.policy.search import PolicySearch
from anyorder.testing import check_strategy

pytestmark = pytest.mark.usefixtures("quick_reference")


def gibbs(**settings) -> Case:
    return case(
        **{"generation_order": "gibbs", "training_order": "none", "gibbs_sweeps": 3, **settings}
    )


VARIANTS = {
    "separate": gibbs(),
    "1 sweep": gibbs(gibbs_sweeps=1),
    "binary": gibbs(cards=(2,), gibbs_sweeps=5),
    "masked -1": gibbs(masked_input=-1.0),
    "known graph": gibbs(graph=True),
    "2 layers": gibbs(hidden=(6, 5)),
    "linear": gibbs(hidden=()),
    "sharp": gibbs(sharp=4.0, clip=0.05),
    "constants": gibbs(n=4, cards=(1, 3, 2, 1)),
    "shared": gibbs(network="shared", hidden=(6, 5)),
    "shared, masked -1": gibbs(network="shared", hidden=(6, 5), masked_input=-1.0),
    "shared, known graph": gibbs(network="shared", hidden=(6, 5), graph=True),
}


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
def test_engines_agree(variant, fast):
    check_step(computed(variant, fast), fast)


@pytest.mark.parametrize("network", ["separate", "shared"])
def test_one_sweep_is_a_fixed_order(network):
    one, fixed = (
        case(network=network, hidden=(6,), generation_order=order, training_order="none",
             gibbs_sweeps=1)
        for order in ("gibbs", "fixed")
    )  # fmt: skip
    drawn = [each.engine("cpu").sample(each.policy(each.engine("cpu")), each.draw())
             for each in (one, fixed)]  # fmt: skip
    np.testing.assert_array_equal(drawn[0][0], drawn[1][0])
    assert not np.allclose(drawn[0][1], drawn[1][1])  # its distributions are the full conditionals


def test_the_distributions_are_those_given_all_others():
    variant = VARIANTS["separate"]
    engine = variant.engine("cpu")
    policy = variant.policy(engine)
    points, probs = engine.sample(policy, variant.draw())
    np.testing.assert_array_equal(probs, engine.conditionals(policy, points))


def test_many_sweeps_give_the_stationary_distribution():
    """Networks that are conditionals of one joint distribution: its frequencies, by chi-square.

    With logits 2 J x_j of -1/+1 inputs, the joint distribution is proportional to exp(J x_1 x_2).
    """
    coupling, count = 0.6, 4_000
    config = PRESETS["paper"].replace(
        hidden=(), generation_order="gibbs", training_order="none", gibbs_sweeps=20
    )
    variant = Case(config, n=2, cards=(2,), runs=1)
    engine = create("cpu", variant.model)
    policy = engine.fresh([0], [0])
    for i in range(2):
        weights, biases = variant.model.network.layers(policy.theta[0], i)[0]
        weights[:] = 2 * coupling
        biases[:] = 0.0
    points, _ = engine.sample(policy, Draw([0], [0], [0], [0.0], count))
    cells = list(itertools.product((0, 1), repeat=2))
    found = np.array([(points[0] == cell).all(axis=1).sum() for cell in cells])
    expected = np.array([np.exp(coupling * (2 * a - 1) * (2 * b - 1)) for a, b in cells])
    expected *= count / expected.sum()
    assert ((found - expected) ** 2 / expected).sum() < 16.3  # 0.1 % of chi-square with 3 degrees


def test_it_learns():
    def equal_pairs(points: np.ndarray) -> np.ndarray:
        return (points[:, 0::2] == points[:, 1::2]).sum(axis=1).astype(float)

    config = PRESETS["paper"].replace(
        generation_order="gibbs", training_order="none", gibbs_sweeps=5
    )
    last = [
        paid(equal_pairs, ao.Space.binary(16), 500, seed=seed, vectorized=True,
             algorithm=ao.policy.Policy(config))
        .history.values[-100:].mean()
        for seed in range(2)
    ]  # fmt: skip
    assert np.mean(last) > 6.0, last


@pytest.mark.slow
def test_check_strategy():
    config = PRESETS["default"].replace(
        generation_order="gibbs", training_order="none", hidden=(5,), epochs=2, gibbs_sweeps=2
    )
    check_strategy(lambda space, seed: PolicySearch(space, seed, config, "cpu"), lists=False)


def test_influence_needs_no_order():
    config = PRESETS["default"].replace(generation_order="gibbs", training_order="none")
    search = PolicySearch(ao.Space.binary(5), 0, config, "cpu")
    moves = search.influence(4)
    assert moves.shape == (5, 5)
    assert (moves + np.eye(5) > 0).all()


def test_refusals():
    with refused(ValueError, "training_order is 'random'", "expected 'none'", "gibbs"):
        ao.policy.Config(generation_order="gibbs")
    with refused(ValueError, "drop_training is 0.5", "expected 0", "gibbs"):
        ao.policy.Config(generation_order="gibbs", training_order="none", drop_training=0.5)
    with refused(ValueError, "univariate", "independent"):
        ao.policy.Config(generation_order="gibbs", training_order="none", network="univariate")
    with refused(ValueError, "gibbs_sweeps"):
        ao.policy.Config(gibbs_sweeps=0)
