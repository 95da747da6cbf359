"""Groups of columns, as of permutations and subsets: the policy draws and trains under masks."""

import math
from itertools import permutations

import numpy as np
import pytest
from conftest import Case, case, refused, rms
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from test_engines import assert_same_parameters, check_step
from test_gradients import differences, problem

from anyorder.space.groups import Group
from anyorder.strategies.policy import engines
from anyorder.strategies.policy.config import PRESETS
from anyorder.strategies.policy.engines import create, reference
from anyorder.strategies.policy.engines.base import Draw
from anyorder.strategies.policy.masks import allowed, masked, restricted
from anyorder.strategies.policy.model import make_critic_model, make_model
from anyorder.strategies.policy.orders import sampling_keys

pytestmark = pytest.mark.usefixtures("remembered_orders")


def group(first: int, size: int, least, most, sequence: bool = False) -> Group:
    return Group(first, size, np.array(least, np.int64), np.array(most, np.int64), sequence)


def permutation(first: int, size: int) -> Group:
    return group(first, size, [1] * size, [1] * size, sequence=True)


def subset(first: int, size: int, low: int, high: int) -> Group:
    return group(first, size, [size - high, low], [size - low, high])


# a permutation, two subsets and a group in general, with plain columns before, between and after
CARDS = (2, 5, 5, 5, 5, 5, 3, 2, 2, 2, 2, 4, 3, 3, 3, 3, 3, 2, 2, 2, 7)
GROUPS = (
    permutation(1, 5),
    subset(7, 4, 1, 2),
    group(12, 5, [0, 1, 2], [2, 2, 3]),
    subset(17, 3, 2, 2),
)


def grouped(**settings) -> Case:
    return case(**{"n": len(CARDS), "cards": CARDS, "groups": GROUPS, **settings})


VARIANTS = {
    "(s,s)": grouped(),
    "(d,d)": grouped(generation_order="fixed", training_order="fixed"),
    "(d,s)": grouped(generation_order="fixed"),
    "(s,d)": grouped(training_order="generation"),
    "(s,p)": grouped(training_order="none", drop_training=0.5),
    "an order a population": grouped(order_per="population"),
    "dropout": grouped(drop_generation=0.5, drop_training=0.25),
    "all dropped": grouped(drop_generation=1.0, drop_training=1.0),
    "known graph": grouped(graph=True),
    "univariate": grouped(network="univariate"),
    "univariate, no order in training": grouped(network="univariate", training_order="none"),
    "Bernoulli KL": grouped(kl="bernoulli"),
    "beyond the clip": grouped(sharp=4.0, clip=0.05, runs=8),
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
