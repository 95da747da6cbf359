"""Inputs and outputs of a space, and the arrangement of parameters."""

import numpy as np
import pytest
from conftest import CARDS, ORDERED, case

from anyorder.strategies.policy.config import PRESETS, Config
from anyorder.strategies.policy.model import Model, make_model
from anyorder.strategies.policy.rng import INIT, uniform, words

TEXT = PRESETS["paper"]


def model_of(cards, ordered=None, graph=None, **settings) -> Model:
    ordered = np.zeros(len(cards), bool) if ordered is None else ordered
    return make_model(cards, ordered, TEXT.replace(**settings), graph)


def inputs_of(model: Model, i: int, value: int) -> list[float]:
    """Variable i's own inputs when it has that value."""
    point = np.zeros(model.n, np.int64)
    point[i] = value
    own = slice(model.coding.feature_start[i], model.coding.feature_start[i + 1])
    return model.coding.features_of(point)[own].tolist()


# Inputs


@pytest.mark.parametrize(
    ("cards", "ordered", "table"),
    [
        (1, False, [[]]),
        (1, True, [[]]),
        (2, False, [[-1], [1]]),
        (2, True, [[-1], [1]]),
        (3, False, [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]]),
        (3, True, [[-1, -1], [1, -1], [1, 1]]),
        (4, True, [[-1, -1, -1], [1, -1, -1], [1, 1, -1], [1, 1, 1]]),
    ],
)
def test_inputs_of_a_value(cards, ordered, table):
    # neighbours of every kind: no table may run into another
    model = model_of([3, cards, 2, 4], [True, ordered, False, False])
    assert [inputs_of(model, 1, value) for value in range(cards)] == table
    assert inputs_of(model, 0, 2) == [1, 1]
    assert inputs_of(model, 3, 2) == [-1, -1, 1, -1]


def test_onehot_integers():
    model = model_of([3, 2], [True, True], integer_encoding="onehot")
    assert [inputs_of(model, 0, v) for v in range(3)] == [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
    assert [inputs_of(model, 1, v) for v in range(2)] == [[-1], [1]]


def test_what_an_input_of_another_value_reads():
    model = model_of([3, 2, 3], [False, False, True], unchosen_input=0.0)
    assert [inputs_of(model, 0, v) for v in range(3)] == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert [inputs_of(model, 1, v) for v in range(2)] == [[-1], [1]]
    assert [inputs_of(model, 2, v) for v in range(3)] == [[-1, -1], [1, -1], [1, 1]]


def test_index_arrays():
    model = model_of([2, 3, 1, 4, 2], [False, False, False, True, False])
    assert model.n == 5
    assert model.coding.outputs.tolist() == [1, 3, 0, 4, 1]
    assert model.value_start.tolist() == [0, 2, 5, 6, 10, 12]
    assert model.values == 12
    assert model.coding.feature_start.tolist() == [0, 1, 4, 4, 7, 8]
    assert model.coding.owner.tolist() == [0, 1, 1, 1, 3, 3, 3, 4]
    assert model.coding.features == 8
    assert model.graph is None


def test_many_points_at_once():
    model = case().model
    points = np.random.default_rng(0).integers(0, model.cards, (2, 5, model.n))
    found = model.coding.features_of(points)
    assert found.shape == (2, 5, model.coding.features)
    assert found.dtype == np.float32
    for at in np.ndindex(2, 5):
        np.testing.assert_array_equal(found[at], model.coding.features_of(points[at]))


@pytest.mark.parametrize("masked", [0.0, -1.0])
def test_hidden_inputs(masked):
    model = model_of([2, 3, 3], [False, False, True], masked_input=masked)
    assert model.coding.hidden_value.tolist() == [masked, 0, 0, 0, 0, 0]


def test_univariate_has_no_inputs():
    model = model_of([2, 3, 1], network="univariate")
    assert model.coding.features == 0
    assert model.network.widths.tolist() == [0]
    assert model.coding.features_of(np.zeros((7, 3), np.int32)).shape == (7, 0)
    assert model.network.theta_start.tolist() == [0, 1, 4, 4]  # a bias for each logit
    assert not model.network.initial_theta(5, 0).any()


def test_linear():
    model = model_of([2, 3], hidden=())
    assert model.network.widths.tolist() == [4]
    assert model.network.theta_start.tolist() == [0, 5, 20]
    assert [w.shape for w, _ in model.network.layers(np.zeros(20), 1)] == [(3, 4)]


def test_graph_is_kept():
    graph = np.eye(3, dtype=bool)
    assert model_of([2, 2, 2], graph=graph).graph is graph


# Parameters


@pytest.mark.parametrize("hidden", [(), (3,), (5, 2), (4, 1, 3, 2)])
def test_layers_cover_theta_once(hidden):
    model = case(hidden=hidden).model
    theta = np.arange(model.parameters)
    seen = []
    for i in range(model.n):
        layers = model.network.layers(theta, i)
        assert len(layers) == (0 if model.cards[i] == 1 else len(hidden) + 1)
        widths = [model.coding.features, *hidden, model.coding.outputs[i]]
        for k, (weights, biases) in enumerate(layers):
            assert weights.shape == (widths[k + 1], widths[k])
            assert biases.shape == (widths[k + 1],)
            assert weights.base is not None  # a view: engines write through it
            assert biases.base is not None
            seen += [*weights.ravel(), *biases]
    assert seen == list(range(model.parameters))


@pytest.mark.parametrize("hidden", [(), (3,), (5, 2)])
def test_initial_theta(hidden):
    model = case(hidden=hidden).model
    theta = model.network.initial_theta(2**40 + 1, restart=2)
    assert theta.dtype == np.float32
    for i in range(model.n):
        size = int(model.network.theta_start[i + 1] - model.network.theta_start[i])
        drawn = np.zeros(model.parameters)
        drawn[model.network.theta_start[i] :][:size] = (
            2 * uniform(words(2**40 + 1, INIT, 2, i, size)) - 1
        )
        both = zip(model.network.layers(theta, i), model.network.layers(drawn, i), strict=True)
        for (weights, biases), (w, b) in both:
            bound = weights.shape[1] ** -0.5
            np.testing.assert_allclose(weights, w * bound, rtol=1e-6)
            np.testing.assert_allclose(biases, b * bound, rtol=1e-6)
            assert max(np.abs(weights).max(), np.abs(biases).max()) <= bound * (1 + 1e-7)


def test_initial_theta_fills_its_bounds():
    network = model_of([2] * 50).network
    theta = network.initial_theta(0, 0)
    weights = np.concatenate([network.layers(theta, i)[0][0] for i in range(50)])
    bound = 50**-0.5  # 50,000 numbers: uniform, so the mean and the standard deviation are known
    assert abs(weights.mean()) < 5 * bound / np.sqrt(3 * weights.size)
    assert weights.std() == pytest.approx(bound / np.sqrt(3), rel=0.01)
    assert np.abs(weights).max() == pytest.approx(bound, rel=1e-3)


@pytest.mark.parametrize(
    "settings", [{}, {"hidden": ()}, {"hidden": (5, 4)}, {"network": "univariate"}]
)
def test_both_engines_start_alike(settings):
    variant = case(n=11, **settings)
    exact, plain, fast = variant.engines()
    seeds, restarts = [0, 2**63 + 5, 7], [0, 1, 12]
    thetas = [engine.fresh(seeds, restarts).theta for engine in (exact, plain, fast)]
    np.testing.assert_array_equal(thetas[2], thetas[1])
    np.testing.assert_array_equal(thetas[2], thetas[0])
    for r in range(3):
        np.testing.assert_array_equal(
            thetas[2][r], variant.model.network.initial_theta(seeds[r], restarts[r])
        )
    if settings != {"network": "univariate"}:
        again = variant.model.network.initial_theta(seeds[0], 1)
        assert np.mean(again == thetas[2][0]) < 0.01  # a restart is another start


@pytest.mark.parametrize("adam", ["anew", "kept"])
def test_fresh_moments(adam):
    variant = case(adam=adam)
    for engine in variant.engines():
        policy = engine.fresh([1, 2, 3], [0, 0, 0])
        size = variant.model.parameters if adam == "kept" else 0
        assert policy.m.shape == policy.v.shape == (3, size)
        assert not np.shares_memory(policy.m, policy.v)
        assert not policy.m.any()
        assert not policy.v.any()
        assert policy.steps.tolist() == [0, 0, 0]


# Numbers of training


def test_rates():
    """Weights and biases of each layer; the input rate slows the first layer's weights alone."""
    lr = TEXT.learning_rate
    two = {"hidden": (3, 3)}
    assert model_of([2] * 4, **two).network.rates.tolist() == [[lr, lr]] * 3
    frozen = model_of([2] * 4, layer_rates=(1.0, 0.0, 0.5), **two).network.rates
    assert frozen.tolist() == [[lr, lr], [0.0, 0.0], [lr / 2, lr / 2]]
    slow = model_of([2] * 4, input_rate=1.0, **two).network.rates
    assert slow.tolist() == [[lr / 4, lr], [lr, lr], [lr, lr]]
    both = model_of([2] * 4, input_rate=2.0, layer_rates=(0.5, 1.0, 1.0), **two).network.rates
    assert both.tolist() == [[lr / 4, lr / 2], [lr, lr], [lr, lr]]
    assert (
        model_of([2] * 4, input_rate=4.5, **two).network.rates.tolist() == [[lr, lr]] * 3
    )  # never faster
    default = make_model([2] * 128, [False] * 128, Config()).network.rates
    np.testing.assert_allclose(default, [[1e-4, 1e-3], [1e-3, 1e-3]])
    # without inputs there are only biases, which keep their rate
    univariate = model_of([2] * 4, network="univariate", input_rate=1.0)
    assert univariate.network.rates[0, 1] == lr


def test_adam_eps():
    assert model_of([2] * 6).network.adam_eps == 1e-8
    assert model_of([2] * 6, loss_runs=100).network.adam_eps == pytest.approx(6e-6)
    assert model_of([2] * 6, loss_runs=1, adam_eps=1e-3).network.adam_eps == pytest.approx(6e-3)


def test_floor():
    model = model_of([2, 3, 50, 101, 1000])
    np.testing.assert_allclose(model.coding.floor, [1e-3, 1e-3, 1e-3, 0.1 / 101, 1e-4])
    wide = model_of([2, 3, 5], clip=0.2)  # a tenth of the mass at most; two values keep the clip
    np.testing.assert_allclose(wide.coding.floor, [0.2, 0.1 / 3, 0.02])


def test_the_shared_cases_are_mixed():
    assert {*CARDS} == set(range(1, 8))
    assert any(o and d > 2 for d, o in zip(CARDS, ORDERED, strict=True))
