"""`Sequence`: lists in which items are repeated, through points, files, constraints, strategies."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import anyorder as ao
from anyorder import Binary, Sequence, Space
from anyorder.archive.knowledge import read_data
from anyorder.program.file import read

SPACE = Space({"turns": Sequence(["a", "b", None], [2, 3, 1]), "fast": Binary()})
PLAIN: dict[str, Any] = {"seed": 0, "progress": False}


def late(point: dict[str, Any]) -> float:
    """How late the turns of b are."""
    return float(sum(k for k, item in enumerate(point["turns"]) if item == "b") + point["fast"])


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.integers(0, 2**32))
def test_round_trips(counts: list[int], seed: int) -> None:
    kind = Sequence([(k, "x") for k in range(len(counts))], counts)
    space, rng = Space({"s": kind}), np.random.default_rng(seed)
    assert Space.from_json(space.to_json()) == space == pickle.loads(pickle.dumps(space))
    assert space.to_dict()["version"] == 3
    total = math.factorial(sum(counts))
    assert space.points == total // math.prod(map(math.factorial, counts))
    rows = space.groups[0].uniform(5, rng)
    assert np.array_equal(space.encode(space.decode(rows)), rows)


@pytest.mark.parametrize(
    ("turns", "words"),
    [
        (["a", "b", "b", None], ("it has 4 items, expected all 6",)),
        (["a", "a", "a", "b", "b", None], ("'a' is there 3 times, expected 2",)),
        (["a", "a", "b", "b", None, None], ("None is there more than once",)),
        (["a", "a", "b", "b", "b", "c"], ("'c' is not one of its items",)),
        ("aabbb", ("expected a list",)),
    ],
)
def test_what_is_no_value(turns: Any, words: tuple[str, ...]) -> None:
    with refused(ValueError, "point 0", "'turns'", *words):
        SPACE.encode([{"turns": turns, "fast": True}])


@pytest.mark.parametrize(
    ("items", "counts", "error", "words"),
    [
        (["a", "b"], [1], ValueError, "counts is [1], expected one for each of 2 items"),
        (["a"], [0], ValueError, "counts[0] is 0, expected an integer of at least 1"),
        (["a"], [1.5], TypeError, "counts[0] is 1.5"),
        (["a"], 2, TypeError, "counts is 2, expected a list of numbers"),
        (["a", "a"], [1, 1], ValueError, "'a'"),
        (["a"], [10**9], ValueError, "counts add up to 1000000000, expected at most"),
    ],
)
def test_what_is_no_sequence(items: Any, counts: Any, error: type[Exception], words: str) -> None:
    with refused(error, words):
        Sequence(items, counts)


def test_tables_and_studies(tmp_path: Path) -> None:
    options = {**PLAIN, "algorithm": "auto"}
    whole = ao.maximize(late, SPACE, 60, **options)
    ao.maximize(late, SPACE, 25, study=tmp_path / "run.db", **options)
    again = ao.resume(tmp_path / "run.db", late, budget=60, progress=False)
    assert np.array_equal(again.history.codes, whole.history.codes)
    table = tmp_path / "data.csv"
    names = [f"turns[{k}]" for k in range(6)]
    rows = [[*names, "fast", "value"], ["b", "a", "b", "", "a", "b", "True", "2"]]
    table.write_text("\n".join(map(",".join, rows)), encoding="utf-8")
    assert read_data(table, SPACE).codes.tolist() == [[1, 0, 1, 2, 0, 1, 1]]
    first = whole.to_pandas()[names].astype(object).iloc[0]
    assert first.where(first.notna(), None).tolist() == whole.history.points[0]["turns"]
    table.write_text(table.read_text(encoding="utf-8").replace("b,a", "a,a"), encoding="utf-8")
    with refused(ValueError, "row 1", "'turns' is no value of its variable"):
        read_data(table, SPACE)


def test_problem_files(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    text = """
direction = "minimize"
budget = 5

[space]
turns = { sequence = ["a", "b"], counts = [2, 3] }

[command]
arguments = ["echo", "{turns}"]
"""
    file.write_text(text, encoding="utf-8")
    assert read(file).space == Space({"turns": Sequence(["a", "b"], [2, 3])})
    for old, new, words in (
        ('["a", "b"]', '["a,b", "c"]', "expected text without commas"),
        ("counts = [2, 3]", "counts = [2]", "expected one for each of 2 items"),
        ("counts =", "count =", "did you mean 'counts'?"),
    ):
        file.write_text(text.replace(old, new), encoding="utf-8")
        with refused(ValueError, words):
            read(file)


def test_refused_points_are_repaired() -> None:
    """Every item near its place, which hardly any of the 166,320 orders has."""
    space = Space({"s": Sequence(["w", "x", "y", "z"], [5, 2, 3, 2])})
    goal = list("wwwwwxxyyyzz")

    def misplaced(point: dict[str, Any]) -> float:
        pairs = zip(point["s"], goal, strict=True)
        return sum(abs(ord(item) - ord(other)) for item, other in pairs) - 2

    result = ao.maximize(lambda p: p["s"].index("z"), space, 40, constraint=misplaced, **PLAIN)
    assert result.best is not None
    assert misplaced(result.best) <= 0


def makespan(machines: Any, durations: Any, order: list[int]) -> float:
    """When the last operation of a job shop ends: each job's next one starts as soon as it can."""
    jobs, stages = durations.shape
    job_free, machine_free, done = np.zeros(jobs), np.zeros(stages), np.zeros(jobs, int)
    for job in order:
        stage = done[job]
        machine = machines[job, stage]
        end = max(job_free[job], machine_free[machine]) + durations[job, stage]
        job_free[job] = machine_free[machine] = end
        done[job] += 1
    return float(job_free.max())


@pytest.mark.parametrize("algorithm", ["auto", "ils"])
def test_job_shops_are_shorter_than_by_random_search(algorithm: str) -> None:
    """On ten instances of 8 jobs and 5 machines: Wilcoxon's signed-rank test, at 1 %."""
    found: dict[str, list[float]] = {algorithm: [], "random": []}
    space = Space({"order": Sequence(range(8), [5] * 8)})
    for seed in range(10):
        rng = np.random.default_rng(seed)
        machines = rng.permuted(np.tile(np.arange(5), (8, 1)), axis=1)
        durations = rng.integers(1, 100, (8, 5))

        def f(point: dict[str, Any], shop: Any = (machines, durations)) -> float:
            return makespan(*shop, point["order"])

        for name, values in found.items():
            result = ao.minimize(f, space, 300, seed=seed, algorithm=name, progress=False)
            values.append(result.best_value or math.inf)
    test = stats.wilcoxon(found[algorithm], found["random"], alternative="less")
    assert test.pvalue < 0.01
