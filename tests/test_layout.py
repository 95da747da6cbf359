"""Where inputs, outputs and parameters lie."""

import numpy as np
import pytest
from conftest import CARDS, ORDERED, case

from anyorder.strategies.policy.config import PRESETS, Config
from anyorder.strategies.policy.layout import Layout, make_layout
from anyorder.strategies.policy.rng import INIT, uniform, words

TEXT = PRESETS["paper"]


def layout_of(cards, ordered=None, graph=None, **settings) -> Layout:
    ordered = np.zeros(len(cards), bool) if ordered is None else ordered
    return make_layout(cards, ordered, TEXT.replace(**settings), graph)


def inputs_of(layout: Layout, i: int, value: int) -> list[float]:
    """Variable i's own inputs when it has that value."""
    point = np.zeros(layout.n, np.int64)
    point[i] = value
    own = slice(layout.feature_start[i], layout.feature_start[i + 1])
    return layout.features_of(point)[own].tolist()


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
    layout = layout_of([3, cards, 2, 4], [True, ordered, False, False])
    assert [inputs_of(layout, 1, value) for value in range(cards)] == table
    assert inputs_of(layout, 0, 2) == [1, 1]
    assert inputs_of(layout, 3, 2) == [-1, -1, 1, -1]


def test_onehot_integers():
    layout = layout_of([3, 2], [True, True], integer_encoding="onehot")
    assert [inputs_of(layout, 0, v) for v in range(3)] == [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
    assert [inputs_of(layout, 1, v) for v in range(2)] == [[-1], [1]]


def test_what_an_input_of_another_value_reads():
    layout = layout_of([3, 2, 3], [False, False, True], unchosen_input=0.0)
    assert [inputs_of(layout, 0, v) for v in range(3)] == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert [inputs_of(layout, 1, v) for v in range(2)] == [[-1], [1]]
    assert [inputs_of(layout, 2, v) for v in range(3)] == [[-1, -1], [1, -1], [1, 1]]


def test_index_arrays():
    layout = layout_of([2, 3, 1, 4, 2], [False, False, False, True, False])
    assert layout.n == 5
    assert layout.outputs.tolist() == [1, 3, 0, 4, 1]
    assert layout.value_start.tolist() == [0, 2, 5, 6, 10, 12]
    assert layout.values == 12
    assert layout.feature_start.tolist() == [0, 1, 4, 4, 7, 8]
    assert layout.owner.tolist() == [0, 1, 1, 1, 3, 3, 3, 4]
    assert layout.features == 8
    assert layout.graph is None


def test_many_points_at_once():
    layout = case().layout
    points = np.random.default_rng(0).integers(0, layout.cards, (2, 5, layout.n))
    found = layout.features_of(points)
    assert found.shape == (2, 5, layout.features)
    assert found.dtype == np.float32
    for at in np.ndindex(2, 5):
        np.testing.assert_array_equal(found[at], layout.features_of(points[at]))


@pytest.mark.parametrize("masked", [0.0, -1.0])
def test_hidden_inputs(masked):
    layout = layout_of([2, 3, 3], [False, False, True], masked_input=masked)
    assert layout.hidden_value.tolist() == [masked, 0, 0, 0, 0, 0]


def test_univariate_has_no_inputs():
    layout = layout_of([2, 3, 1], network="univariate")
    assert layout.features == 0
    assert layout.widths.tolist() == [0]
    assert layout.features_of(np.zeros((7, 3), np.int32)).shape == (7, 0)
    assert layout.theta_start.tolist() == [0, 1, 4, 4]  # a bias for each logit
    assert not layout.initial_theta(5, 0).any()


def test_linear():
    layout = layout_of([2, 3], hidden=())
    assert layout.widths.tolist() == [4]
    assert layout.theta_start.tolist() == [0, 5, 20]
    assert [w.shape for w, _ in layout.layers(np.zeros(20), 1)] == [(3, 4)]


def test_graph_is_kept():
    graph = np.eye(3, dtype=bool)
    assert layout_of([2, 2, 2], graph=graph).graph is graph


# Parameters


@pytest.mark.parametrize("hidden", [(), (3,), (5, 2), (4, 1, 3, 2)])
def test_layers_cover_theta_once(hidden):
    layout = case(hidden=hidden).layout
    theta = np.arange(layout.parameters)
    seen = []
    for i in range(layout.n):
        layers = layout.layers(theta, i)
        assert len(layers) == (0 if layout.cards[i] == 1 else len(hidden) + 1)
        widths = [layout.features, *hidden, layout.outputs[i]]
        for k, (weights, biases) in enumerate(layers):
            assert weights.shape == (widths[k + 1], widths[k])
            assert biases.shape == (widths[k + 1],)
            assert weights.base is not None  # a view: engines write through it
            assert biases.base is not None
            seen += [*weights.ravel(), *biases]
    assert seen == list(range(layout.parameters))


@pytest.mark.parametrize("hidden", [(), (3,), (5, 2)])
def test_initial_theta(hidden):
    layout = case(hidden=hidden).layout
    theta = layout.initial_theta(2**40 + 1, restart=2)
    assert theta.dtype == np.float32
    for i in range(layout.n):
        size = int(layout.theta_start[i + 1] - layout.theta_start[i])
        drawn = np.zeros(layout.parameters)
        drawn[layout.theta_start[i] :][:size] = 2 * uniform(words(2**40 + 1, INIT, 2, i, size)) - 1
        both = zip(layout.layers(theta, i), layout.layers(drawn, i), strict=True)
        for (weights, biases), (w, b) in both:
            bound = weights.shape[1] ** -0.5
            np.testing.assert_allclose(weights, w * bound, rtol=1e-6)
            np.testing.assert_allclose(biases, b * bound, rtol=1e-6)
            assert max(np.abs(weights).max(), np.abs(biases).max()) <= bound * (1 + 1e-7)


def test_initial_theta_fills_its_bounds():
    layout = layout_of([2] * 50)
    weights = np.concatenate(
        [layout.layers(layout.initial_theta(0, 0), i)[0][0] for i in range(50)]
    )
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
            thetas[2][r], variant.layout.initial_theta(seeds[r], restarts[r])
        )
    if settings != {"network": "univariate"}:
        again = variant.layout.initial_theta(seeds[0], 1)
        assert np.mean(again == thetas[2][0]) < 0.01  # a restart is another start


@pytest.mark.parametrize("adam", ["anew", "kept"])
def test_fresh_moments(adam):
    variant = case(adam=adam)
    for engine in variant.engines():
        policy = engine.fresh([1, 2, 3], [0, 0, 0])
        size = variant.layout.parameters if adam == "kept" else 0
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
    assert layout_of([2] * 4, **two).rates.tolist() == [[lr, lr]] * 3
    frozen = layout_of([2] * 4, layer_rates=(1.0, 0.0, 0.5), **two).rates
    assert frozen.tolist() == [[lr, lr], [0.0, 0.0], [lr / 2, lr / 2]]
    slow = layout_of([2] * 4, input_rate=1.0, **two).rates
    assert slow.tolist() == [[lr / 4, lr], [lr, lr], [lr, lr]]
    both = layout_of([2] * 4, input_rate=2.0, layer_rates=(0.5, 1.0, 1.0), **two).rates
    assert both.tolist() == [[lr / 4, lr / 2], [lr, lr], [lr, lr]]
    assert (
        layout_of([2] * 4, input_rate=4.5, **two).rates.tolist() == [[lr, lr]] * 3
    )  # never faster
    default = make_layout([2] * 128, [False] * 128, Config()).rates
    np.testing.assert_allclose(default, [[1e-4, 1e-3], [1e-3, 1e-3]])
    # without inputs there are only biases, which keep their rate
    univariate = layout_of([2] * 4, network="univariate", input_rate=1.0)
    assert univariate.rates[0, 1] == lr


def test_adam_eps():
    assert layout_of([2] * 6).adam_eps == 1e-8
    assert layout_of([2] * 6, loss_runs=100).adam_eps == pytest.approx(6e-6)
    assert layout_of([2] * 6, loss_runs=1, adam_eps=1e-3).adam_eps == pytest.approx(6e-3)


def test_floor():
    layout = layout_of([2, 3, 50, 101, 1000])
    np.testing.assert_allclose(layout.floor, [1e-3, 1e-3, 1e-3, 0.1 / 101, 1e-4])
    wide = layout_of([2, 3, 5], clip=0.2)  # a tenth of the mass at most; two values keep the clip
    np.testing.assert_allclose(wide.floor, [0.2, 0.1 / 3, 0.02])


def test_the_shared_cases_are_mixed():
    assert {*CARDS} == set(range(1, 8))
    assert any(o and d > 2 for d, o in zip(CARDS, ORDERED, strict=True))
