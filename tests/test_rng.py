"""The random stream: a published generator, the contract of its rows, and orders drawn from it."""

import itertools

import numpy as np
import pytest
from conftest import case, compiled_words
from scipy.stats import chisquare

from anyorder.strategies.policy import rng
from anyorder.strategies.policy.engines import kernels
from anyorder.strategies.policy.orders import before, draw_dropped, order_keys, order_keys_of
from anyorder.strategies.policy.rng import DROP_G, DROP_T, INIT, ORDER_G, ORDER_T, VALUE, words

# counter, key, result: kat_vectors of Random123, the library of the Philox paper
KNOWN = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
]  # fmt: skip
SEEDS = [0, 1, 2**32 - 1, 2**32, 2**64 - 1]


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word, 16) for word in text.split())


@pytest.mark.parametrize(("counter", "key", "result"), KNOWN)
def test_known_answers(counter, key, result):
    found = rng.philox(numbers(counter), numbers(key))
    assert found.dtype == np.uint32
    assert tuple(found.tolist()) == numbers(result)
    compiled = kernels.philox(*map(np.uint64, numbers(counter) + numbers(key)))
    assert tuple(map(int, compiled)) == numbers(result)


def test_many_counters_at_once():
    counters = np.array([numbers(counter) for counter, _, _ in KNOWN] * 2).reshape(2, 3, 4)
    found = rng.philox(counters, (7, 9))
    assert found.shape == (2, 3, 4)
    for at in np.ndindex(2, 3):
        np.testing.assert_array_equal(found[at], rng.philox(counters[at], (7, 9)))


@pytest.mark.parametrize("seed", SEEDS)
def test_word_of_a_row(seed):
    """Word w is lane w % 4 of block w // 4; the rest of the counter says who asks."""
    row = words(seed, ORDER_T, 11, 5, 10, epoch=3)
    assert row.dtype == np.uint32
    assert row.shape == (10,)
    for w in range(10):
        block = rng.philox((w // 4, 5, 11, ORDER_T + 256 * 3), (seed % 2**32, seed // 2**32))
        assert row[w] == block[w % 4]
    np.testing.assert_array_equal(words(seed, ORDER_T, 11, 5, 2, epoch=3, first_block=2), row[8:])
    assert words(seed, INIT, 0, 0, 0).shape == (0,)


def test_rows_do_not_overlap():
    """Another seed (in either word), purpose, generation, candidate or epoch: other numbers."""
    base = {"seed": 3, "purpose": VALUE, "generation": 1, "row": 2, "count": 64, "epoch": 0}
    changes = [{}, {"seed": 4}, {"seed": 3 + 2**32}, {"generation": 2}, {"row": 1}, {"epoch": 1}]
    purposes = [{"purpose": p} for p in (INIT, ORDER_G, DROP_G, ORDER_T, DROP_T)]
    drawn = np.concatenate([words(**{**base, **change}) for change in changes + purposes])
    assert len(np.unique(drawn)) == len(drawn)


@pytest.mark.parametrize("seed", SEEDS)
def test_compiled_words_are_the_same(seed):
    """Those that tests give the reference, too."""
    out = np.empty(12, np.uint32)
    kernels.words(out, 2, 2**31 + 5, 9, DROP_T + 256 * 49, *rng.split_seed(seed))
    place = seed, DROP_T, 9, 2**31 + 5, 12
    np.testing.assert_array_equal(out, words(*place, epoch=49, first_block=2))
    np.testing.assert_array_equal(out, compiled_words(*place, epoch=49, first_block=2))
    for count in range(1, 10):
        place = seed, VALUE, 2**32 - 1, 3, count
        np.testing.assert_array_equal(compiled_words(*place), words(*place))


def test_uniform():
    some = np.array([0, 255, 256, 2**31, 2**32 - 1], np.uint32)
    found = rng.uniform(some)
    assert found.tolist() == [0.0, 0.0, 2.0**-24, 0.5, 1.0 - 2.0**-24]
    many = words(1, VALUE, 0, 0, 1000)
    exact = rng.uniform(many)
    np.testing.assert_array_equal(exact.astype(np.float32), exact)
    np.testing.assert_array_equal([kernels.unit(word) for word in many], exact)


def test_uniform_is_uniform():
    """Chi-square over 64 cells, 64,000 words of 64 rows, seed 0."""
    drawn = np.concatenate([rng.uniform(words(0, VALUE, 0, row, 1000)) for row in range(64)])
    assert chisquare(np.bincount((drawn * 64).astype(int), minlength=64)).pvalue > 1e-3


def test_drop_threshold():
    assert rng.drop_threshold(0.0) == 0  # no word is below
    assert rng.drop_threshold(1.0) == 2**32  # every word is
    assert rng.drop_threshold(0.5) == 2**31
    assert rng.drop_threshold(2.0**-32) == 1


# Orders


@pytest.mark.parametrize(("purpose", "epochs"), [(ORDER_G, 1), (ORDER_T, 4)])
def test_orders_are_uniform(purpose, epochs):
    """Chi-square over the 24 permutations of 4; 6,000 orders of many candidates, seed 0."""
    model = case(n=4).model
    asked = [*itertools.product(range(3), range(2000 // epochs))]
    keys = [order_keys_of(model, 0, purpose, asked, epoch) for epoch in range(epochs)]
    orders = np.argsort(np.concatenate(keys), axis=1)
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 24
    assert counts.sum() == 6_000
    assert chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("purpose", [ORDER_G, ORDER_T])
@pytest.mark.parametrize("n", [1, 4, 9])
def test_compiled_orders_are_the_same(purpose, n):
    model, rows, generations = case(n=n, cards=(2,)).model, np.arange(3, 9), np.full(6, 5)
    seed = 2**63 + 11
    keys = np.empty((2, 6, n), np.uint32)
    kernels.order_keys(
        keys, model.coding.owner, n, purpose, rows, generations, *rng.split_seed(seed)
    )
    for epoch, c in np.ndindex(2, 6):
        expected = order_keys(model, seed, purpose, 5, int(rows[c]), epoch)
        np.testing.assert_array_equal(keys[epoch, c], expected)


@pytest.mark.parametrize("purpose", [ORDER_G, ORDER_T])
@pytest.mark.parametrize(
    "settings",
    [{}, {"order_per": "population"}, {"generation_order": "fixed"}, {"training_order": "fixed"}],
)
def test_orders_of_several_are_those_of_each(settings, purpose):
    model, seed = case(**settings).model, 2**63 + 11
    stamps = [(0, 0), (5, 2), (5, 3), (2**31, 2**31)]
    for epoch in range(2):
        expected = [order_keys(model, seed, purpose, *stamp, epoch) for stamp in stamps]
        found = order_keys_of(model, seed, purpose, stamps, epoch)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == np.uint32
    assert order_keys_of(model, seed, purpose, []).shape == (0, model.n)


def test_who_has_an_order_of_its_own():
    each, all_, fixed = case(), case(order_per="population"), case(generation_order="fixed")
    orders = [
        [tuple(order_keys(variant.model, 0, ORDER_G, 0, row)) for row in range(20)]
        for variant in (each, all_, fixed)
    ]
    assert [len(set(some)) for some in orders] == [20, 1, 1]
    assert orders[1][0] == orders[0][0]
    assert orders[2][0] == tuple(range(8))


def test_before_breaks_ties_by_index():
    keys = np.array([7, 2**32 - 1, 7, 0], np.uint32)
    seen = [np.flatnonzero(before(keys, i)).tolist() for i in range(4)]
    assert seen == [[3], [0, 2, 3], [0, 3], []]


def test_dropout_reads_its_own_words():
    model, p = case(n=6).model, 0.3
    row = words(5, DROP_G, 2, 7, 6 * 8)  # rows of whole blocks
    for i in range(6):
        expected = row[8 * i : 8 * i + 6] < rng.drop_threshold(p)
        np.testing.assert_array_equal(draw_dropped(model, 5, DROP_G, 2, 7, i, p), expected)
        assert draw_dropped(model, 5, DROP_G, 2, 7, i, 1.0).all()
        assert not draw_dropped(model, 5, DROP_G, 2, 7, i, 0.0).any()
