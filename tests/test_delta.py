"""Delta search and the portfolio `auto`: models, protocol, and that they learn."""

from __future__ import annotations

import functools
import io
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from functions import run
from scipy import stats

import anyorder as ao
from anyorder.errors import FAILED
from anyorder.strategies.auto.search import AutoSearch, DeltaSearch
from anyorder.strategies.base import Answer
from anyorder.strategies.models import layout
from anyorder.strategies.models.columns import Columns
from anyorder.strategies.models.gains import GainModel

BOTH = pytest.mark.parametrize("maker", [DeltaSearch, AutoSearch])
MIXED = ao.Space(
    [ao.Binary()] * 4
    + [ao.Categorical(range(3))] * 3
    + [ao.Categorical(range(30))] * 2
    + [ao.Integer(1, 1000)] * 3
    + [ao.Categorical([7])]
)


def search(
    strategy: Any, f: Callable[[Any], float], evaluations: int, batch: int = 1
) -> tuple[float, list[bytes]]:
    """The best value, and all points that were proposed."""
    best, points = -np.inf, []
    while len(points) < evaluations:
        proposals = strategy.propose(batch)
        if not len(proposals.codes):
            break
        values = [float(f(codes)) for codes in proposals.codes]
        strategy.learn(
            [Answer(*one) for one in zip(proposals.tickets, proposals.codes, values, strict=True)]
        )
        points += [codes.tobytes() for codes in proposals.codes]
        best = max(best, *values)
    return best, points


def quadratic(n: int, density: float, seed: int = 0) -> tuple[Callable[[Any], float], Any]:
    """A random quadratic function of -1 and 1, and the matrix of its pairs."""
    rng = np.random.default_rng(seed)
    pairs = np.triu(rng.standard_normal((n, n)) * (rng.random((n, n)) < density), 1)
    linear = rng.standard_normal(n)

    def f(x: Any) -> float:
        spins = 2.0 * np.asarray(x) - 1.0
        return float(linear @ spins + spins @ pairs @ spins)

    return f, pairs + pairs.T


def separable(codes: Any) -> float:
    """On MIXED: the optimum is 0."""
    x = np.asarray(codes)
    total = -float((x[:4] != [1, 0, 1, 1]).sum())
    total -= float((x[4:7] != [2, 1, 0]).sum())
    total -= float(np.abs((x[7:9] * 7) % 30 - [11, 25]).sum()) / 10
    return total - float(np.abs(x[9:12] - [20, 500, 900]).sum()) / 100


# --- the model ------------------------------------------------------------------------------------


def test_predictions_on_a_quadratic_function_become_exact() -> None:
    f, _ = quadratic(14, 0.3)
    strategy = DeltaSearch(ao.Space.binary(14), seed=1)
    strategy.landscape.quadratic.enabled = False
    search(strategy, f, 700)
    model, certain = strategy.landscape.gains, 0
    rng = np.random.default_rng(0)
    for _ in range(20):
        point = rng.integers(2, size=14).astype(np.int32)
        model.go_to(point, f(point))
        for i in range(14):
            found = model.predict(i, 1 - int(point[i]))
            if found.known and found.variance < 1e-12:
                changed = point.copy()
                changed[i] = 1 - changed[i]
                assert found.gain == pytest.approx(f(changed) - f(point), abs=1e-6)
                certain += 1
    assert certain > 0.9 * 20 * 14


def test_the_sums_of_the_model_do_not_depend_on_the_way() -> None:
    """Moves one by one, and a fresh computation at the same point."""
    problem = ao.problems.nkd(16, 2, 4, seed=0)
    strategy = DeltaSearch(problem.space, seed=0)
    search(strategy, problem, 400)
    model, rng = strategy.landscape.gains, np.random.default_rng(1)
    model.tidy()
    for _ in range(30):
        point = model.point.copy()
        point[rng.integers(16)] = rng.integers(4)
        model.go_to(point, 0.0)
    kept = [getattr(model.arrays, name).copy() for name in ("shift", "spread", "differing")]
    model.tidy()
    for name, before in zip(("shift", "spread", "differing"), kept, strict=True):
        used = np.arange(before.shape[1]) < model.arrays.profiles.max()
        assert np.allclose(before[:, used], getattr(model.arrays, name)[:, used], atol=1e-9), name


def test_gains_of_0_leave_all_links_open() -> None:
    """Before the first change that has an effect, nothing is known about pairs."""
    strategy = DeltaSearch(ao.Space.binary(6), seed=0)
    model, quadratic = strategy.landscape.gains, strategy.landscape.quadratic
    model.arrive(0.0)
    for variable, gain in ((0, 0.0), (1, 0.0), (2, 1.0)):
        quadratic.observe(0, variable, 1 - int(model.point[variable]), gain, climb=False)
    others = ~np.eye(6, dtype=bool)
    assert (model.arrays.variance[others] > 0).all()


@pytest.mark.parametrize(("large", "alike"), [(1.1, True), (30.0, False)])
def test_how_alike_variables_are_decides_what_one_gain_says(large: float, alike: bool) -> None:
    """Where all gains are of one size, a variable is taken to be like the others; else not."""
    n = 40
    strategy = DeltaSearch(ao.Space.binary(n), seed=0)
    model, quadratic = strategy.landscape.gains, strategy.landscape.quadratic
    model.arrive(0.0)
    for variable in range(n):
        gain = -(large if variable == 0 else 1.0)
        quadratic.observe(0, variable, 1 - int(model.point[variable]), gain, climb=False)
    scale = model.arrays.scale
    assert (scale[0] < 1.1 * scale[1]) == alike


def test_links_are_those_of_the_function() -> None:
    """NK landscapes, nearly all and hardly any other; a quadratic function, none that is not there.

    Not all: which changes are tried depends on rounding in the fit, and so on the processor. Some
    others: an effect of three variables may be put down to the wrong pair.
    """
    found = right = there = lost = 0
    for seed in range(4):
        problem = ao.problems.nk(24, 2, seed)
        strategy = DeltaSearch(problem.space, seed=seed)
        search(strategy, problem, 3_000)
        true = np.zeros((24, 24), bool)
        for group in problem.neighbours:
            true[np.ix_(group, group)] = True
        np.fill_diagonal(true, False)
        links = strategy.landscape.gains.links()
        assert strategy.facts()["links"] == links.sum() // 2
        found, right, there = found + links.sum(), right + (links & true).sum(), there + true.sum()
        lost += (true & (strategy.landscape.gains.arrays.link == layout.NOT_LINKED)).sum()
    assert right > 0.95 * found
    assert right > 0.85 * there
    assert lost < 0.02 * there

    f, pairs = quadratic(20, 0.15)
    known, true = 0, pairs != 0
    for seed in range(6):
        strategy = DeltaSearch(ao.Space.binary(20), seed=seed)
        search(strategy, f, 800)
        link = strategy.landscape.gains.arrays.link
        assert true[link == layout.LINKED].all()
        assert not true[link == layout.NOT_LINKED].any()
        known += (link == layout.LINKED).sum()
    assert known > 0.6 * 6 * true.sum()


def test_the_global_model_finds_the_pairs() -> None:
    f, pairs = quadratic(16, 0.3)
    strategy = DeltaSearch(ao.Space.binary(16), seed=0)
    search(strategy, f, 400)
    assert strategy.landscape.quadratic.trusted
    assert strategy.landscape.quadratic.error < 0.2
    assert np.corrcoef(strategy.landscape.quadratic.effects.ravel(), pairs.ravel())[0, 1] > 0.95


def test_the_global_model_learns_from_several_changes_at_once() -> None:
    """The observation is the difference of the model's values, whatever changes."""
    space = ao.Space([ao.Binary()] * 3 + [ao.Categorical(range(3))] * 2 + [ao.Integer(1, 1000)] * 2)
    strategy, rng = DeltaSearch(space, seed=0), np.random.default_rng(0)
    pairwise, kernels = strategy.landscape.quadratic, strategy.landscape.quadratic._kernels
    m = len(pairwise.biases)
    pairs = rng.standard_normal((m, m)).astype(np.float32)
    pairs += pairs.T
    for first, last in zip(pairwise._first[:-1], pairwise._first[1:], strict=True):
        pairs[first:last, first:last] = 0.0
    linear = rng.standard_normal(m).astype(np.float32)

    def value(point: Any) -> float:
        phi = np.empty(m, np.float32)
        kernels.features(pairwise._kinds, pairwise._first, pairwise._values, point, phi)
        return float(linear @ phi + phi @ pairs @ phi / 2)

    for changes in (1, 2, 5, 7):
        x = rng.integers(space.cardinalities).astype(np.int32)
        y = np.where(np.arange(7) < changes, (x + 1) % space.cardinalities, x).astype(np.int32)
        gain, count = value(y) - value(x), pairwise.observations.count
        pairwise.note_several(x, y, 1.0, 1.0 + gain)
        assert pairwise.observations.count == count + 1
        found = np.empty(count + 1, np.float32)
        kernels.apply(*pairwise.observations.arrays[:3], count + 1, pairs, linear, found)
        seen = pairwise.observations.gains[count]
        assert found[-1] == pytest.approx(seen, abs=1e-4)
        assert seen * (x != y).sum() ** 0.5 == pytest.approx(gain, abs=1e-4)
    pairwise.note_several(x, x, 1.0, 1.0)
    assert pairwise.observations.count == count + 1  # nothing changes, so nothing is learned


@BOTH
def test_several_changes_that_are_better_are_made_at_once(maker: Any) -> None:
    """Eight at a time need few evaluations more than one at a time."""
    weights = np.random.default_rng(3).standard_normal(64)

    def needed(batch: int, seed: int) -> int:
        strategy, spent = maker(ao.Space.binary(64), seed=seed), 0
        while spent < 1000:
            proposals = strategy.propose(batch)
            values = [float(weights @ codes) for codes in proposals.codes]
            spent += len(values)
            if max(values) > weights[weights > 0].sum() - 1e-9:
                return spent
            strategy.learn(
                [Answer(*a) for a in zip(proposals.tickets, proposals.codes, values, strict=True)]
            )
        return spent

    alone = sum(needed(1, seed) for seed in range(5))
    assert sum(needed(8, seed) for seed in range(5)) < 2 * alone


def test_memory_is_bounded_and_more_is_refused() -> None:
    for space in (ao.Space.binary(1024), ao.Space.categorical(64, 64)):
        sizes = layout.sizes_of(Columns(space))
        assert 4 * sizes.count(layout.INTEGERS) + 8 * sizes.count(layout.FLOATS) < 250e6
    with pytest.raises(ValueError, match=r"delta needs .* MB for tables over pairs of 20000"):
        DeltaSearch(ao.Space.binary(20_000))


def test_a_model_needs_no_table_of_values() -> None:
    one = layout.sizes_of(Columns(ao.Space([ao.Integer(1, 10)] * 8)))
    assert one == layout.sizes_of(Columns(ao.Space([ao.Integer(1, 1_000_000)] * 8)))
    arrays = GainModel(Columns(MIXED), np.random.default_rng(0)).arrays
    assert arrays.kind.tolist() == [0] * 7 + [2] * 2 + [1] * 3 + [0]


# --- learning -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_beats_hill_climbing() -> None:
    """NK 64 K 4, 4,000 evaluations, 24 instances: one-sided Wilcoxon signed-rank at 0.01.

    After 1,000 evaluations the lead is too small for that: docs/results.md.
    """
    ours, theirs = [], []
    for seed in range(100, 124):
        problem = ao.problems.nk(64, 4, seed)
        ours.append(search(DeltaSearch(problem.space, seed=seed), problem, 4_000)[0])
        climber = ao.strategies.HillClimber(problem.space, seed=seed)
        theirs.append(run(climber, problem, 4_000).max())
    test = stats.wilcoxon(np.subtract(ours, theirs), alternative="greater")
    assert test.pvalue < 0.01, (np.mean(ours), np.mean(theirs), test.pvalue)


def test_monotone_transforms_do_not_hurt_badly() -> None:
    """Exponentials of NK landscapes: still better than hill climbing, in the mean of 6."""
    ours, theirs = [], []
    for seed in range(6):
        problem = ao.problems.nk(48, 3, seed)
        found, _ = search(
            DeltaSearch(problem.space, seed=seed), lambda x, p=problem: np.exp(20 * p(x)), 1_000
        )
        ours.append(np.log(found) / 20)
        climber = ao.strategies.HillClimber(problem.space, seed=seed)
        theirs.append(run(climber, problem, 1_000).max())
    assert np.mean(ours) > np.mean(theirs)


def leading_ones(x: Any) -> float:
    """How many variables are 1 before the first that is not."""
    return float(np.argmin(np.append(x, 0)))


@pytest.mark.parametrize("seed", range(3))
def test_variables_that_wait_for_others_are_tried_again(seed: int) -> None:
    """Leading ones: most gains are 0, twice in a row as well, and yet each of them may change.

    A search that tries the others in turn after each step takes n^2 / 4 evaluations.
    """
    space = ao.Space.binary(40)
    assert search(DeltaSearch(space, seed=seed), leading_ones, 40 * 40 // 2)[0] == 40


def test_plateaus_do_not_stop_it() -> None:
    """MaxSat has few values: as good as hill climbing, which drifts less, in the mean of 4."""
    ours, theirs = [], []
    for seed in range(4):
        problem = ao.problems.maxsat(60, 4.3, 3, seed)
        ours.append(search(DeltaSearch(problem.space, seed=seed), problem, 1_500)[0])
        climber = ao.strategies.HillClimber(problem.space, seed=seed)
        theirs.append(run(climber, problem, 1_500).max())
    assert np.mean(ours) >= np.mean(theirs)
    flat, points = search(DeltaSearch(ao.Space.binary(30), seed=0), lambda _: 1.0, 300)
    assert flat == 1.0
    assert len(set(points)) > 250


@BOTH
def test_mixed_spaces_are_solved(maker: Any) -> None:
    for seed in range(3):
        best, points = search(maker(MIXED, seed=seed), separable, 600)
        assert best > -0.5, (seed, best)
        codes = np.frombuffer(b"".join(points), np.int32).reshape(-1, len(MIXED))
        assert ((codes >= 0) & (codes < MIXED.cardinalities)).all()


def test_noise_is_measured() -> None:
    f, _ = quadratic(20, 0.2)
    rng = np.random.default_rng(0)
    strategy = DeltaSearch(ao.Space.binary(20), seed=0)
    search(strategy, lambda x: f(x) + 0.3 * rng.standard_normal(), 1_500)
    assert 0.1 < strategy.facts()["noise"] < 0.9


# --- the protocol ---------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("space", [ao.Space.binary(24), MIXED], ids=["binary", "mixed"])
def test_a_state_continues_bit_for_bit(maker: Any, space: ao.Space) -> None:
    weights = np.random.default_rng(3).standard_normal((len(space), len(space)))

    def f(x: Any) -> float:
        z = np.sin(np.asarray(x) * 1.7)
        return float(z @ weights @ z)

    first = maker(space, seed=5)
    search(first, f, 300, batch=3)
    open_ones = first.propose(4)  # not answered
    file = io.BytesIO()
    np.savez(file, **first.state())
    file.seek(0)
    second = maker(space, seed=99)
    second.restore(np.load(file))
    for strategy in (first, second):
        strategy.learn([Answer(open_ones.tickets[2], open_ones.codes[2], f(open_ones.codes[2]))])
    assert search(first, f, 200, batch=2) == search(second, f, 200, batch=2)
    assert first.facts() == second.facts()
    with pytest.raises(ValueError, match="state"):
        maker(ao.Space.binary(25), seed=0).restore(first.state())


@BOTH
def test_the_same_seed_gives_the_same_run(maker: Any) -> None:
    problem = ao.problems.nkd(20, 2, 3, seed=0)
    runs = [search(maker(problem.space, seed=s), problem, 300) for s in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


@BOTH
def test_many_proposals_at_a_time_in_any_order(maker: Any) -> None:
    problem = ao.problems.nk(32, 3, seed=0)
    strategy, rng = maker(problem.space, seed=0), np.random.default_rng(0)
    out: dict[int, Any] = {}
    best = -np.inf
    for _ in range(250):
        proposals = strategy.propose(6)
        assert len(proposals.codes) == 6
        out.update(zip(proposals.tickets, proposals.codes, strict=True))
        waiting = [codes.tobytes() for codes in out.values()]
        assert len(set(waiting)) > 0.9 * len(waiting)
        chosen = rng.permutation(list(out))[:6].tolist()
        answers = [Answer(ticket, out[ticket], problem(out[ticket])) for ticket in chosen[1:]]
        best = max(best, *(answer.value for answer in answers))
        strategy.learn(answers)
        strategy.give_up(chosen[:1])
        for ticket in chosen:
            del out[ticket]
    alone, _ = search(maker(problem.space, seed=0), problem, 250)
    assert best > alone - 0.02


@BOTH
def test_failures_are_left_alone(maker: Any) -> None:
    """A third of the points fail; they are not proposed again, and the rest is searched."""
    f, _ = quadratic(20, 0.2)
    strategy, failed, best = maker(ao.Space.binary(20), seed=0), set(), -np.inf
    for _ in range(800):
        ((ticket, codes),) = zip(*strategy.propose(1), strict=True)
        point = codes.tobytes()
        assert point not in failed
        if codes[:6].sum() % 3 == 0:
            failed.add(point)
            strategy.learn([Answer(ticket, codes, np.nan, FAILED)])
        else:
            best = max(best, f(codes))
            strategy.learn([Answer(ticket, codes, f(codes))])
    points = (np.arange(2**20)[:, None] >> np.arange(20)) & 1
    points = points[points[:, :6].sum(axis=1) % 3 != 0]
    sample = np.random.default_rng(0).choice(len(points), 20_000)
    assert best > max(f(point) for point in points[sample])
    assert np.isfinite(strategy.landscape.gains._floats[: 8 * 20]).any()


@BOTH
def test_a_violation_leads_to_allowed_points(maker: Any) -> None:
    """Six ones of forty: 1 in 240,000 points is allowed, and the function says by how much."""
    weights = np.random.default_rng(0).random(40)

    def f(x: Any) -> float:
        if x.sum() > 6:
            raise ao.Infeasible("too many", violation=float(x.sum() - 6))
        return float(weights @ x)

    found = [
        ao.maximize(f, ao.Space.binary(40), 500, seed=seed, algorithm=maker).best_value
        for seed in range(3)
    ]
    assert None not in found
    if maker is AutoSearch:  # which exchanges values
        assert np.mean(found) > 0.9 * np.sort(weights)[-6:].sum()


def test_points_of_others_are_learned_and_adopted() -> None:
    f, _ = quadratic(20, 0.2)
    best, points = search(DeltaSearch(ao.Space.binary(20), seed=0), f, 500)
    found = next(
        np.frombuffer(p, np.int32) for p in points if f(np.frombuffer(p, np.int32)) == best
    )
    strategy = DeltaSearch(ao.Space.binary(20), seed=1)
    search(strategy, f, 30)
    strategy.learn([Answer(None, found, best)])
    assert (strategy.landscape.gains.point == found).all()
    neighbour = found.copy()
    neighbour[3] = 1 - neighbour[3]
    strategy.learn([Answer(None, neighbour, f(neighbour))])
    assert strategy.landscape.gains.predict(3, int(neighbour[3])).gain == pytest.approx(
        f(neighbour) - best
    )


@BOTH
def test_small_spaces_are_searched_once(maker: Any) -> None:
    space = ao.Space([ao.Binary(), ao.Categorical(range(5)), ao.Integer(0, 9)])
    strategy = maker(space, seed=0)
    _, points = search(strategy, lambda x: float(-((x - 1) ** 2).sum()), 1_000)
    assert len(set(points)) == space.size
    assert len(points) <= space.size + 3  # a repeat or two: is there noise?
    before = strategy.state()
    assert len(strategy.propose(3).codes) == 0
    assert all(np.array_equal(before[key], value) for key, value in strategy.state().items())
    lone = maker(ao.Space([ao.Categorical([3])]), seed=0)
    assert len(search(lone, lambda _: 1.0, 10)[1]) == 1


@BOTH
def test_small_gains_count_beside_large_losses(maker: Any) -> None:
    """Far values lose a million times what the last steps gain; none of those is left out."""
    target = np.array([7, 30, 12, 39, 21, 3])
    space = ao.Space([ao.Integer(0, 40)] * len(target))
    strategy = maker(space, seed=0)
    best, _ = search(strategy, lambda x: -float((np.abs(x - target) ** 6.0).sum()), 1_000)
    assert best == 0.0


@BOTH
@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9])
def test_plateaus_of_integers_at_any_scale(maker: Any, scale: float) -> None:
    """Gains of 0 come first, and say nothing about how large a gain typically is."""
    target, found = np.array([70, 300, 120, 390, 210, 30]), 0
    space = ao.Space([ao.Integer(0, 400)] * len(target))
    for seed in range(5):
        f = lambda x: -scale * float(np.minimum(np.abs(x - target), 60).sum())  # noqa: E731
        found += search(maker(space, seed=seed), f, 500)[0] == 0.0
    assert found == 5


def test_rounding_does_not_affect_the_typical_gain() -> None:
    """Five of ten variables have no effect except for rounding, or none at all."""
    space, typical = ao.Space([ao.Integer(0, 400)] * 10), []

    def f(x: Any, rounded: bool) -> float:
        value = 3.0 + float(np.cos(np.asarray(x[:5]) / 7.0).sum())
        for k in x[5:].tolist() if rounded else []:
            value = value * (k + 1.1) / (k + 1.1)
        return value

    for rounded in (False, True):
        strategy = DeltaSearch(space, seed=0)
        search(strategy, functools.partial(f, rounded=rounded), 500)
        typical.append(strategy.landscape.gains.scalar(layout.TYPICAL))
    assert typical[0] == pytest.approx(typical[1], abs=0.01)


def kicked(strategy: DeltaSearch, seeds: int, *, gentle: bool) -> list[Any]:
    """Kicks of its best point."""
    points = []
    for _ in range(seeds):
        strategy.landscape.gains.go_to(strategy._best.point, strategy._best.value)
        strategy.landscape.kick(gentle=gentle)
        points.append(strategy.landscape.gains.point.copy())
    return points


@pytest.mark.parametrize(("n", "least"), [(24, 4), (64, 8), (200, 12)])
def test_gentle_kicks_lose_less_and_differ(n: int, least: int) -> None:
    weights = np.random.default_rng(0).exponential(size=n)
    strategy = DeltaSearch(ao.Space.binary(n), seed=0)
    search(strategy, lambda x: float(weights @ x), 3 * n)
    assert strategy._best.point.all()
    random, gentle = (np.array(kicked(strategy, 400, gentle=kind)) == 0 for kind in (False, True))
    counts = gentle.sum(axis=1)
    assert (
        np.quantile(counts, 0.05) == least
    )  # one less where all that was drawn is changed already
    assert counts.max() <= n // 2
    # For each change: the exponential weights of random ones have the mean 1.
    loss, small = ((weights * kind).sum() / kind.sum() for kind in (random, gentle))
    assert small < 0.7 * loss
    assert gentle.any(axis=0).sum() > n / 2
    assert len(np.unique(gentle, axis=0)) > 100


def test_gentle_kicks_know_no_table_of_values() -> None:
    strategy = DeltaSearch(MIXED, seed=0)
    search(strategy, separable, 400)
    for point in kicked(strategy, 200, gentle=True):
        assert (point >= 0).all()
        assert (point < MIXED.cardinalities).all()
        assert 1 <= np.count_nonzero(point != strategy._best.point) <= len(MIXED) // 2


@BOTH
def test_runs_in_a_session(maker: Any) -> None:
    problem = ao.problems.nk(24, 2, seed=0)
    result = ao.maximize(problem, budget=300, algorithm=maker.name, seed=0)
    assert result.evaluations == 300
    assert result.best_value > 0.7


def test_the_portfolio_uses_all_operators() -> None:
    """All but those that change conditions, of which there are none here."""
    problem = ao.problems.get("nk:n=64,k=4,seed=0")
    strategy = AutoSearch(problem.space, seed=0)
    search(strategy, problem, 2_000)
    facts = strategy.facts()
    assert sum(facts["shares"].values()) == pytest.approx(1, abs=0.01)
    assert {name for name, count in facts["operators"].items() if not count} == {"branch"}


def test_importing_the_library_does_not_import_numba() -> None:
    code = "import sys, anyorder; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("maker", [DeltaSearch, AutoSearch])
def test_proposals_that_are_given_up_are_not_made_again(maker: Any) -> None:
    """As with `on_failure="skip"`: a third of the points is never answered."""
    f, _ = quadratic(16, 0.2)
    strategy, lost, best = maker(ao.Space.binary(16), seed=1), set(), -np.inf
    for _ in range(600):
        ((ticket, codes),) = zip(*strategy.propose(1), strict=True)
        point = codes.tobytes()
        assert point not in lost
        if sum(point) % 3 == 0:
            lost.add(point)
            strategy.give_up([ticket])
        else:
            best = max(best, f(codes))
            strategy.learn([Answer(ticket, codes, f(codes))])
    assert lost
    assert best > f(np.zeros(16, np.int32))


def test_knapsacks_need_exchanges() -> None:
    """Single changes of a full knapsack are worse; exchanges of two items lead on."""
    rng = np.random.default_rng(0)
    weights, values = rng.integers(10, 60, 40), rng.integers(10, 60, 40)

    def f(x: Any) -> float:
        return float(values @ x - 50 * max(weights @ x - 400, 0))

    def run(maker: Any, seed: int) -> float:
        strategy, best = maker(ao.Space.binary(40), seed=seed), -np.inf
        for _ in range(1_000):
            ((ticket, codes),) = zip(*strategy.propose(1), strict=True)
            best = max(best, f(codes))
            strategy.learn([Answer(ticket, codes, f(codes))])
        return best

    auto = [run(AutoSearch, seed) for seed in range(8)]
    climbing = [run(ao.strategies.HillClimber, seed) for seed in range(8)]
    assert np.mean(auto) > np.mean(climbing) + 10


def test_noise_does_not_stop_a_climb() -> None:
    """Gains as large as the noise are still worth an evaluation."""
    rng = np.random.default_rng(0)
    strategy, reached = AutoSearch(ao.Space.binary(40), seed=0), []
    for _ in range(1_500):
        ((ticket, codes),) = zip(*strategy.propose(1), strict=True)
        reached.append(int(codes.sum()))
        strategy.learn([Answer(ticket, codes, codes.sum() + rng.normal())])
    assert max(reached) >= 35


def test_spaces_too_large_for_the_tables(caplog: pytest.LogCaptureFixture) -> None:
    """The default is then another algorithm, which is said; by name it is refused."""
    space = ao.Space.binary(5_000)
    assert ao.Optimizer(space, seed=0).strategy.name == "ils"
    assert "5000 variables are too many for the algorithm 'auto': using 'ils'" in caplog.text
    with pytest.raises(ValueError, match="tables over pairs of 5000 variables"):
        ao.Optimizer(space, algorithm="auto")


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown setting of auto 'population'"):
        ao.Optimizer(ao.Space.binary(3), algorithm="auto+population=3")
