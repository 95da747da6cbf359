"""It learns: better than methods that do not, by a stated test at fixed seeds."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import stats

import anyorder as ao

# duplicates are paid for, as in solve_many and in the paper
paid = partial(ao.maximize, cache=False)


def best_values(algorithm: str, runs: int, budget: int) -> list[float]:
    """The best values on NK landscapes of 64 bits, K = 4, instance and seed 0, 1, ..."""
    problems = [ao.problems.nk(64, 4, seed) for seed in range(runs)]
    return [
        paid(
            problem, budget=budget, algorithm=algorithm, seed=seed,
            vectorized=algorithm == "policy",  # one at a time those that have no batches
        ).best_value
        for seed, problem in enumerate(problems)
    ]  # fmt: skip


def is_better(ours: list[float], other: list[float]) -> None:
    """One-sided Wilcoxon signed-rank test at 0.01."""
    test = stats.wilcoxon(np.subtract(ours, other), alternative="greater")
    assert test.pvalue < 0.01, (np.mean(ours), np.mean(other), test.pvalue)


def test_beats_random_search() -> None:
    """After 400 evaluations, on 7 instances."""
    is_better(best_values("policy", 7, 400), best_values("random", 7, 400))


@pytest.mark.slow
def test_beats_random_search_and_the_one_plus_one_ea() -> None:
    """After 3,000 evaluations, on 12 instances."""
    ours = best_values("policy", 12, 3_000)
    for other in ("random", "one-plus-one"):
        is_better(ours, best_values(other, 12, 3_000))


def test_dependencies_are_learned_not_only_marginals() -> None:
    """Pairs that must be equal: all marginals stay 1/2 on average, so only contexts can tell."""
    space = ao.Space.binary(16)

    def equal_pairs(points: np.ndarray) -> np.ndarray:
        return (points[:, 0::2] == points[:, 1::2]).sum(axis=1).astype(float)

    config = ao.policy.Config(input_rate=None, restart_agreement=None)
    results = {
        network: [
            paid(
                equal_pairs, space, 600, seed=seed, vectorized=True,
                algorithm=ao.policy.Policy(config.replace(network=network)),
            ).history.values[-100:].mean()
            for seed in range(8)
        ]
        for network in ("separate", "univariate")
    }  # fmt: skip
    test = stats.mannwhitneyu(results["separate"], results["univariate"], alternative="greater")
    assert test.pvalue < 0.01, results


def test_ordered_and_mixed_spaces_are_solved() -> None:
    space = ao.Space(
        {f"i{k}": ao.Integer(0, 9) for k in range(6)}
        | {f"c{k}": ao.Categorical(["x", "y", "z"]) for k in range(4)}
        | {"flag": ao.Binary()}
    )

    def f(point: dict[str, object]) -> float:
        miss = sum(abs(int(point[f"i{k}"]) - (3 + k) % 10) for k in range(6))  # type: ignore[call-overload]
        hits = sum(point[f"c{k}"] == "xyz"[k % 3] for k in range(4))
        return hits - miss + 2.0 * bool(point["flag"])

    best = [paid(f, space, 3_000, seed=seed, target=6.0).best_value for seed in range(5)]
    assert np.median(best) == 6.0
