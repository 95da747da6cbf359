"""Algorithms by name at equal terms, and the statistics of their table."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner, Result
from conftest import refused
from scipy import stats

import anyorder as ao
from anyorder.bench import algorithms
from anyorder.bench.compare import Comparison, compare, mann_whitney
from anyorder.cli import main

PROBLEM = ao.problems.onemax(6)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def values_of(name: str, budget: int, seed: int) -> list[float]:
    values: list[float] = []
    algorithms.run(name, PROBLEM, budget, seed, [budget], each=values.append)
    return values


@pytest.mark.parametrize("name", algorithms.available("strategy"))
def test_every_strategy_has_a_name(name):
    values = values_of(name, 60, seed=3)
    assert len(values) == 60
    assert values == values_of(name, 60, seed=3)
    result = ao.maximize(PROBLEM, budget=60, algorithm=name, seed=3, cache=False)
    assert values == result.history.values.tolist()


def test_anyorder_by_name():
    alone = ao.maximize(PROBLEM, PROBLEM.space, 30, seed=1, algorithm="policy:paper", cache=False)
    assert values_of("policy:paper", 30, seed=1) == alone.history.values.tolist()


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1.0, 2, 3, 4], [3.0, 5, 6, 7, 8]),
        ([1.0, 1, 2, 2, 2], [2.0, 2, 3, 3]),
        (np.arange(30) / 7, np.arange(25) / 5),
    ],
)
def test_mann_whitney_is_scipys(x, y):
    expected = stats.mannwhitneyu(x, y, method="asymptotic").pvalue
    assert mann_whitney(np.array(x, float), np.array(y, float)) == pytest.approx(expected)


def test_mann_whitney_of_equals():
    assert mann_whitney(np.ones(5), np.ones(7)) == 1.0


def test_table():
    best = np.array(
        [[[1.0, 2], [2, 4], [0, 3]], [[5.0, 5], [6, 7], [4, 9]], [[0.0, 3], [1, 3], [1, 3]]]
    )
    rows = Comparison("p", ("a", "b", "c"), best, (1.0, 2.0, 3.0)).rows()
    assert [row["mean"] for row in rows] == [3, 7, 3]
    assert [row["rank"] for row in rows] == [2, 1, 2]
    assert [row["sd"] for row in rows] == [1, 2, 0]
    assert rows[1]["p"] is None
    assert rows[0]["p"] == pytest.approx(mann_whitney(best[0, :, -1], best[1, :, -1]))


def test_same_seeds_for_all():
    result = compare(PROBLEM, ["random", "rls"], runs=3, budget=20, seed=5)
    for a, name in enumerate(result.algorithms):
        for r in range(3):
            values = values_of(name, 20, seed=5 + r)
            np.testing.assert_array_equal(result.best[a, r], np.maximum.accumulate(values))


def test_bad_arguments():
    with refused(ValueError, "'taboo'", "did you mean 'tabu'"):
        compare(PROBLEM, ["taboo"], 1, 10)
    with refused(ValueError, "runs", "0"):
        compare(PROBLEM, ["rls"], 0, 10)
    with refused(ValueError, "budget", "0"):
        compare(PROBLEM, ["rls"], 1, 0)
    with refused(ValueError, "each once"):
        compare(PROBLEM, ["rls", "rls"], 1, 10)


def test_command(tmp_path):
    figure = tmp_path / "compare.png"
    arguments = ["compare", "onemax:n=8", "--algorithms", "policy, rls,random",
                 "--runs", "3", "--budget", "60"]  # fmt: skip
    text = run(*arguments, "--output", str(figure))
    assert text.exit_code == 0, text.output
    for word in ("policy", "rls", "random", "Mann-Whitney", "rank"):
        assert word in text.output
    assert figure.read_bytes().startswith(b"\x89PNG")
    table = json.loads(run(*arguments, "--json").output)["table"]
    assert [row["algorithm"] for row in table] == ["policy", "rls", "random"]
    wrong = run("compare", "onemax", "--algorithms", "rsl")
    assert wrong.exit_code == 2
    assert "did you mean" in wrong.output


def test_solve_by_a_baseline(tmp_path):
    arguments = ["solve", "onemax:n=8", "--algorithm", "tabu", "--budget", "200"]
    answer = json.loads(run(*arguments, "--seed", "4", "--json").output)
    assert answer["best_value"] == 8
    assert answer["best"] == [1] * 8
    assert answer["algorithm"] == "tabu"
    assert len(answer["best_every_100"]) == 2
    text = run(*arguments, "--output", str(tmp_path / "x.png"))
    assert text.exit_code == 0
    assert "best value   8" in text.output
    assert "11111111" in text.output
    wrong = run("solve", "onemax", "--algorithm", "tabu:paper")
    assert wrong.exit_code == 2
    assert "tabu has no presets" in wrong.output
