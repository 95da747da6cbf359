from __future__ import annotations

import importlib.util
import json
import os
import pickle
import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from anyorder import problems
from anyorder.problems import NK, Problem, Qubo
from anyorder.problems.qubo import _EDGES, puboi_clauses, sum_terms
from anyorder.strategies.policy import engines

SHARED = Path(__file__).parents[1].parent / "shared" / "known_answers"
with_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="shared/known_answers is not beside the repository"
)


NEEDS = {"pbo": "ioh", "features": "sklearn"}
NASBENCH = SHARED.parent / "data" / "nasbench101.npz"
if NASBENCH.is_file():
    os.environ.setdefault("ANYORDER_NASBENCH101", str(NASBENCH))


def available(name: str) -> bool:
    if name == "nasbench":
        return "ANYORDER_NASBENCH101" in os.environ
    return name not in NEEDS or importlib.util.find_spec(NEEDS[name]) is not None


def devices() -> list[str]:
    if importlib.util.find_spec("torch") is None:
        return []
    return ["cpu", "cuda"] if engines._may_have_a_gpu() and has_gpu() else ["cpu"]


def has_gpu() -> bool:
    import torch  # takes seconds, so only where there may be one

    return bool(torch.cuda.is_available())


NAMES = [name for name in sorted(problems.registry) if available(name)]
SEEDED = [name for name in NAMES if "seed" in problems.registry[name].parameters]
WITH_GRAPH = ["maxcut", "maxsat", "nk", "nkd", "onemax", "qubo", "trap"]
DEVICES = devices()
TORCH = [pytest.param(name, marks=pytest.mark.gpu) for name in DEVICES]


def small(name: str, n: int = 14) -> Problem:
    """The registered problem at a size that can be enumerated (14 is the least n of qubo)."""
    if name == "features":  # four of them, so that every subset is scored once
        return problems.make(name, data="iris", folds=2)
    return problems.make(name, **({"n": n} if "n" in problems.registry[name].parameters else {}))


def draw(problem: Problem, shape: tuple[int, ...], seed: int = 0) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, problem.space.cardinalities, size=(*shape, len(problem.space)))


def bits(text: str) -> NDArray[np.uint8]:
    return np.unpackbits(np.frombuffer(bytes.fromhex(text), dtype=np.uint8))


# Every registered problem -----------------------------------------------------------------------


@pytest.fixture(params=NAMES)
def problem(request: pytest.FixtureRequest) -> Problem:
    return small(request.param)


def test_name_finds_the_same_problem(problem: Problem) -> None:
    again = problems.get(problem.name)
    x = draw(problem, (50,))
    assert again.name == problem.name
    assert again is not problem
    assert np.array_equal(again.evaluate(x), problem.evaluate(x))


def test_defaults_make_a_problem(problem: Problem) -> None:
    entry = problems.registry[problem.name.partition(":")[0]]
    made = problems.get(problem.name.partition(":")[0])
    assert made.direction == "maximize"
    assert len(entry.description) > 10
    assert "\n" not in entry.description
    if "seed" in entry.parameters:
        assert made.seed == entry.parameters["seed"] == 0
    assert np.isfinite(made(draw(made, ())))


@pytest.mark.parametrize("name", SEEDED)
def test_another_seed_is_another_problem(name: str) -> None:
    problem = small(name)
    assert problem.seed == 0
    other = problems.get(problem.name.replace("seed=0", "seed=1"))
    x = draw(problem, (50,))
    assert not np.array_equal(other.evaluate(x), problem.evaluate(x))


def test_batch_equals_loop(problem: Problem) -> None:
    x = draw(problem, (3, 7))
    values = problem.evaluate(x)
    assert values.dtype == np.float64
    assert values.shape == (3, 7)
    assert [[problem(p) for p in row] for row in x] == values.tolist()
    assert problem.evaluate(x[0, 0]).shape == ()
    assert problem.evaluate(x[:, :0]).shape == (3, 0)


def test_batch_is_split_without_trace(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    x = draw(problem, (101,))
    whole = problem.evaluate(x)
    monkeypatch.setattr("anyorder.problems.base._BLOCK", 10 * x.shape[1] + 1)
    assert np.array_equal(problem.evaluate(x), whole)


def test_layout_and_type_do_not_matter(problem: Problem) -> None:
    x = draw(problem, (20,))
    values = problem.evaluate(x)
    for kind in (np.int8, np.uint8, np.int32, np.uint64):
        assert np.array_equal(problem.evaluate(x.astype(kind)), values)
    assert np.array_equal(problem.evaluate(np.asfortranarray(x)), values)
    assert np.array_equal(problem.evaluate(x.tolist()), values)
    if problem.space.cardinalities.max() == 2:
        assert np.array_equal(problem.evaluate(x.astype(bool)), values)


def test_evaluation_leaves_the_points_alone(problem: Problem) -> None:
    x = draw(problem, (20,))
    for given in (x.copy(), x.astype(np.int32), np.asfortranarray(x.astype(np.int32))):
        problem.evaluate(given)
        assert np.array_equal(given, x)


def test_no_point_beats_what_is_known(problem: Problem) -> None:
    best = problem.evaluate(draw(problem, (20_000,))).max()
    for limit in (problem.optimum, problem.best_known, getattr(problem, "upper_bound", None)):
        assert limit is None or best <= limit


@pytest.mark.parametrize(
    "problem", [problems.onemax(14), problems.trap(3, 4), problems.get("table")], ids=str
)
def test_optimum_by_enumeration(problem: Problem) -> None:
    points = np.array(list(product(*map(range, problem.space.cardinalities.tolist()))))
    assert problem.optimum == problem.best_known == problem.evaluate(points).max()


def second_differences(problem: Problem, i: int, j: int) -> NDArray[np.float64]:
    """f(x) - f(x with i changed) - f(x with j changed) + f(x with both), at 40 points."""
    corners = np.tile(draw(problem, (40,)), (4, 1, 1))
    corners[2:, :, i] = (corners[2:, :, i] + 1) % problem.space.cardinalities[i]
    corners[1::2, :, j] = (corners[1::2, :, j] + 1) % problem.space.cardinalities[j]
    a, b, c, d = problem.evaluate(corners)
    return np.asarray(a - b - c + d)


@pytest.mark.parametrize("name", WITH_GRAPH)
def test_interaction_graph_is_true(name: str) -> None:
    problem = small(name)
    graph = problem.interaction_graph()
    assert graph is not None
    n = len(problem.space)
    assert graph.dtype == np.bool_
    assert graph.shape == (n, n)
    assert np.array_equal(graph, graph.T)
    assert not graph.diagonal().any()
    absent = [(i, j) for i in range(n) for j in range(i) if not graph[i, j]]
    assert absent
    for i, j in absent:
        assert np.abs(second_differences(problem, i, j)).max() < 1e-9, (i, j)


@pytest.mark.parametrize("name", ["nk", "nkd", "qubo"])
def test_interaction_graph_has_no_idle_edge(name: str) -> None:
    problem = small(name)
    graph = problem.interaction_graph()
    assert graph is not None
    assert graph.any()
    for i, j in np.argwhere(graph):
        assert np.abs(second_differences(problem, i, j)).max() > 1e-9, (i, j)


@pytest.mark.parametrize("name", WITH_GRAPH)
def test_graph_is_a_copy(name: str) -> None:
    problem = small(name)
    graph = problem.interaction_graph()
    assert graph is not None
    graph[:] = True
    fresh = problem.interaction_graph()
    assert fresh is not None
    assert not fresh.all()


def test_bad_points(problem: Problem) -> None:
    n = len(problem.space)
    x = draw(problem, (5,))
    with pytest.raises(ValueError, match=rf"shape \(5, {n - 1}\), expected \(\.\.\., {n}\)"):
        problem.evaluate(x[:, :-1])
    with pytest.raises(ValueError, match="use evaluate for a batch"):
        problem(x)
    with pytest.raises(ValueError, match=r"shape \(\)"):
        problem.evaluate(3)
    with pytest.raises(TypeError, match="float64, expected integers"):
        problem.evaluate(x.astype(float))
    for value in (-1, int(problem.space.cardinalities[2])):
        wrong = x.copy()
        wrong[3, 2] = value
        with pytest.raises(ValueError, match=rf"variable 2 is {value}, expected 0 to"):
            problem.evaluate(wrong)
        with pytest.raises(ValueError, match=rf"variable 2 is {value}, expected 0 to"):
            problem(wrong[3])


# On torch, and together --------------------------------------------------------------------------


def torch_device(name: str) -> Any:
    import torch

    return torch.empty(0, device=name).device


@pytest.fixture(params=TORCH)
def device(request: pytest.FixtureRequest) -> Any:
    return torch_device(request.param)


@pytest.fixture(params=["numpy", *TORCH])
def place(request: pytest.FixtureRequest) -> Any:
    """A device of torch, or None for NumPy."""
    return None if request.param == "numpy" else torch_device(request.param)


def put(points: NDArray[Any], place: Any) -> Any:
    if place is None:
        return points
    import torch

    return torch.as_tensor(points, device=place)


def assert_values(got: Any, expected: NDArray[np.float64], place: Any) -> None:
    """Equal, on torch to rounding, and of the kind the points were."""
    rounding = 0.0
    if place is not None:
        import torch

        assert got.dtype == torch.float64
        assert got.device == place
        got = got.cpu().numpy()
        # The order of a sum shows in the last digits; whole numbers have none to lose.
        rounding = 0.0 if np.array_equal(expected, np.rint(expected)) else 1e-13
    assert isinstance(got, np.ndarray)
    assert got.dtype == np.float64
    assert got.shape == expected.shape
    assert np.allclose(got, expected, rtol=rounding, atol=0)


def other(problem: Problem) -> Problem:
    """A second instance of the same space, with another seed where there is one."""
    return problems.get(problem.name.replace("seed=0", "seed=1"))


class NoTorch(Problem):
    """A problem that says nothing of torch."""

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__(f"no torch {factor}", problems.nkd(14).space)
        self.factor = factor

    def _values(self, points: NDArray[Any]) -> NDArray[np.float64]:
        values: NDArray[np.float64] = self.factor * points[:, 0]
        return values


def test_torch_equals_numpy(problem: Problem, device: Any) -> None:
    for shape in ((), (50,), (3, 7), (2, 0), (2, 3, 4)):
        x = draw(problem, shape)
        assert_values(problem.evaluate(put(x, device)), problem.evaluate(x), device)
    x = np.asfortranarray(draw(problem, (50,)))
    assert_values(problem.evaluate(put(x, device)), problem.evaluate(x), device)


@pytest.mark.parametrize(
    "kind", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
def test_torch_types(problem: Problem, device: Any, kind: str) -> None:
    check_torch_type(problem, device, kind)


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in ("nkd", "nasbench", "table")]
)
def test_torch_bool(name: str, device: Any) -> None:
    check_torch_type(small(name), device, "bool")


def check_torch_type(problem: Problem, device: Any, kind: str) -> None:
    import torch

    x = draw(problem, (50,))
    points = put(x, device).to(getattr(torch, kind))
    assert_values(problem.evaluate(points), problem.evaluate(x), device)
    assert np.array_equal(points.cpu().numpy(), x)


def test_torch_batch_is_split_without_trace(
    problem: Problem, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = draw(problem, (3, 101))
    runs = [problem, other(problem), problem]
    expected = problems.together(runs)(x)
    for block in ("_BLOCK", "_DEVICE_BLOCK"):
        monkeypatch.setattr(f"anyorder.problems.base.{block}", 30 * x.shape[-1] + 1)
    assert_values(problems.together(runs)(put(x, device)), expected, device)


def test_torch_bad_points(problem: Problem, device: Any) -> None:
    n = len(problem.space)
    x = put(draw(problem, (5,)), device)
    with pytest.raises(ValueError, match=rf"shape \(5, {n - 1}\), expected \(\.\.\., {n}\)"):
        problem.evaluate(x[:, :-1])
    with pytest.raises(ValueError, match=r"shape \(\)"):
        problem.evaluate(x[0, 0])
    for wrong in (x.double(), x.bfloat16()):
        with pytest.raises(TypeError, match=r"float.*, expected integers"):
            problem.evaluate(wrong)
    if x.device.type != "cpu":
        return
    for value in (-1, int(problem.space.cardinalities[2])):
        wrong = x.clone()
        wrong[3, 2] = value
        with pytest.raises(ValueError, match=rf"variable 2 is {value}, expected 0 to"):
            problem.evaluate(wrong)


# Run p is of instance pattern[p]: alone, all different, repeated alike and not.
@pytest.mark.parametrize("pattern", [[0], [0, 1], [0, 0, 0], [0, 1, 0, 1], [1, 0, 0, 0, 1]])
def test_together_equals_loop(problem: Problem, place: Any, pattern: list[int]) -> None:
    instances = [problem, other(problem)]
    runs = [instances[i] for i in pattern]
    evaluate = problems.together(runs)
    for shape in ((), (6,), (2, 3), (0,)):
        x = draw(problem, (len(runs), *shape))
        expected = np.array([p.evaluate(y) for p, y in zip(runs, x, strict=True)])
        assert_values(evaluate(put(x, place)), expected, place)


@pytest.mark.parametrize(
    "runs",
    [
        [problems.nk(14, 4), problems.nk(14, 2), problems.nk(14, 4, 1)],
        [problems.qubo(14), problems.onemax(14), problems.qubo(14, seed=1)],
        [problems.nkd(14), NoTorch(), NoTorch(2.5)],
    ],
    ids=["another k", "two classes", "no kernel"],
)
def test_together_of_different_kinds(runs: list[Problem], place: Any) -> None:
    x = draw(runs[0], (3, 6))
    expected = np.array([p.evaluate(y) for p, y in zip(runs, x, strict=True)])
    assert_values(problems.together(runs)(put(x, place)), expected, place)


def test_together_bad_input(problem: Problem) -> None:
    n = len(problem.space)
    alien = problems.onemax(n + 1)
    names = rf"{re.escape(problem.name)} has .*{alien.name} has .*one space"
    with pytest.raises(ValueError, match=names):
        problems.together([problem, problem, alien])
    with pytest.raises(ValueError, match="problems is empty"):
        problems.together([])
    evaluate = problems.together([problem, other(problem)])
    x = draw(problem, (3, 5))
    with pytest.raises(ValueError, match=rf"shape \(3, 5, {n}\), expected \(2, \.\.\., {n}\)"):
        evaluate(x)
    with pytest.raises(ValueError, match=rf"shape \({n},\), expected \(2, \.\.\., {n}\)"):
        evaluate(x[0, 0])
    with pytest.raises(ValueError, match=rf"{n - 1}\), expected \(\.\.\., {n}\)"):
        evaluate(x[:2, :, 1:])


@pytest.mark.parametrize("kind", ["numpy", *TORCH[:1]])
def test_together_names_the_problem_of_a_bad_point(kind: str) -> None:
    evaluate = problems.together([problems.nk(14), problems.nk(14, seed=1)])
    x = np.zeros((2, 5, 14), dtype=np.int64)
    x[1, 3, 2] = 2
    points = put(x, None if kind == "numpy" else torch_device(kind))
    with pytest.raises(ValueError, match=r"nk:n=14,k=4,seed=1: variable 2 is 2, expected 0 to 1"):
        evaluate(points)


def test_torch_without_a_kernel(device: Any) -> None:
    problem = NoTorch(0.3)
    x = draw(problem, (3, 7))
    assert_values(problem.evaluate(put(x, device)), problem.evaluate(x), device)


def test_a_new_function_does_not_inherit_the_kernel(device: Any) -> None:
    class Twice(problems.OneMax):
        def _values(self, points: NDArray[Any]) -> NDArray[np.float64]:
            return 2 * super()._values(points)

    problem = Twice(14)
    x = draw(problem, (7,))
    assert_values(problem.evaluate(put(x, device)), 2.0 * x.sum(axis=-1), device)


def test_constants_go_to_a_device_once(
    problem: Problem, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = draw(problem, (2, 5))
    evaluate = problems.together([problem, other(problem)])
    points = put(x, device)
    first, pair = problem.evaluate(points), evaluate(points)

    def refuse(*args: Any) -> None:
        raise AssertionError("asked for a kernel again")

    monkeypatch.setattr(type(problem), "_kernel", refuse)
    assert (problem.evaluate(points) == first).all()
    assert (evaluate(points) == pair).all()


def test_pickle_after_torch(problem: Problem, device: Any) -> None:
    x = draw(problem, (5,))
    values = problem.evaluate(put(x, device))
    again = pickle.loads(pickle.dumps(problem))
    assert np.array_equal(again.evaluate(x), problem.evaluate(x))
    assert_values(again.evaluate(put(x, device)), values.cpu().numpy(), device)


@pytest.mark.gpu
@pytest.mark.skipif("cuda" not in DEVICES, reason="there is no CUDA device")
@pytest.mark.parametrize("name", ["nk", "nkd", "qubo", "onemax"])
def test_cuda_graph(name: str) -> None:
    device = torch_device("cuda")
    import torch

    problem = small(name)
    runs = [problem, other(problem), problem]
    evaluate = problems.together(runs)
    points = put(draw(problem, (3, 10)), device)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        problem.evaluate(points), evaluate(points)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        alone, all_runs = problem.evaluate(points), evaluate(points)
    for seed in (1, 2):
        x = draw(problem, (3, 10), seed)
        points.copy_(put(x, device))
        graph.replay()
        assert_values(alone, problem.evaluate(x), device)
        assert_values(all_runs, problems.together(runs)(x), device)


# NK ---------------------------------------------------------------------------------------------

# Copied from shared/known_answers/nk.json, which has the conventions.
TINY: list[dict[str, Any]] = [
    {
        "D": 2,
        "neighbours": [[0, 4, 3], [1, 4, 2], [2, 1, 0], [3, 4, 2], [4, 1, 0]],
        "tables": [
            [0.57, 0.38, 0.18, 0.11, 0.68, 0.88, 0.81, 0.05],
            [0.76, 0.5, 0.57, 0.83, 0.94, 0.78, 0.83, 0.2],
            [0.79, 0.01, 0.67, 0.08, 0.07, 0.04, 0.24, 0.3],
            [0.76, 0.03, 0.99, 0.59, 0.41, 0.56, 0.75, 0.25],
            [0.66, 0.29, 0.81, 0.37, 0.63, 0.0, 0.84, 0.1],
        ],
        "answers": [
            {"x": [0, 0, 0, 0, 0], "f": 0.708},
            {"x": [0, 1, 0, 1, 0], "f": 0.642},
            {"x": [0, 1, 1, 0, 1], "f": 0.41},
            {"x": [1, 0, 0, 1, 0], "f": 0.47},
        ],
        "optimum": {"x": [[0, 1, 0, 0, 0]], "f": 0.75},
        "mean_f_over_all_x": 0.48275,
    },
    {
        "D": 3,
        "neighbours": [[0, 2], [1, 2], [2, 3], [3, 2]],
        "tables": [
            [0.85, 0.44, 0.18, 0.48, 0.01, 0.47, 0.61, 0.35, 0.82],
            [0.58, 0.88, 0.76, 0.29, 0.71, 0.0, 0.84, 0.79, 0.18],
            [0.56, 0.47, 0.2, 0.43, 0.26, 0.07, 0.73, 0.25, 0.09],
            [0.65, 0.87, 0.43, 0.87, 0.51, 0.11, 0.02, 0.07, 0.84],
        ],
        "answers": [
            {"x": [0, 1, 2, 0], "f": 0.335},
            {"x": [1, 2, 2, 2], "f": 0.395},
            {"x": [2, 0, 1, 0], "f": 0.6325},
        ],
        "optimum": {"x": [[0, 2, 0, 1]], "f": 0.7575},
        "mean_f_over_all_x": 0.46305555555555555,
    },
]


def check_nk(answers: dict[str, Any]) -> None:
    problem = NK(answers["neighbours"], answers["tables"], d=answers["D"])
    for answer in answers["answers"]:
        assert problem(answer["x"]) == pytest.approx(answer["f"], abs=1e-9)
    points = np.array(list(product(range(answers["D"]), repeat=problem.n)))
    values = problem.evaluate(points)
    assert values.mean() == pytest.approx(answers["mean_f_over_all_x"], abs=1e-9)
    assert values.max() == pytest.approx(answers["optimum"]["f"], abs=1e-9)
    assert points[values >= values.max() - 1e-9].tolist() == answers["optimum"]["x"]


@pytest.mark.parametrize("answers", TINY)
def test_nk_known_answers(answers: dict[str, Any]) -> None:
    check_nk(answers)


@with_shared
def test_nk_known_answers_shared() -> None:
    instances = json.loads((SHARED / "nk.json").read_text(encoding="utf-8"))["instances"]
    assert len(instances) == 2
    for answers in instances:
        check_nk(answers)


def test_nk_draws() -> None:
    problem = problems.nkd(n=7, k=3, d=3, seed=5)
    rng = np.random.default_rng(5)
    for i in range(7):
        others = [j for j in range(7) if j != i]
        drawn = rng.choice(6, 3, replace=False)
        assert problem.neighbours[i].tolist() == [i, *(others[j] for j in drawn)]
    assert np.array_equal(problem.tables, rng.random((7, 81)))
    # The same on every machine and version: the streams of NumPy could change under us.
    assert problems.nk(16, 3, 1)([0, 1] * 8) == pytest.approx(0.5430601763078549, abs=1e-12)


def test_nk_is_nkd_of_two_values() -> None:
    a, b = problems.nk(20, 4, 7), problems.nkd(20, 4, 2, 7)
    assert np.array_equal(a.tables, b.tables)
    assert np.array_equal(a.neighbours, b.neighbours)


def test_nk_neighbours_are_random_and_unsorted() -> None:
    others = problems.nk(64, 4, 0).neighbours[:, 1:]
    assert (np.diff(others) < 0).any()
    counts = np.bincount(others.ravel(), minlength=64)
    # 256 picks over 64 variables, each about binomial of mean 4: beyond 16 has chance < 1e-4.
    assert counts.max() <= 16


@pytest.mark.parametrize("k", [0, 5])
def test_nk_extremes(k: int) -> None:
    problem = problems.nk(6, k, 0)
    graph = problem.interaction_graph()
    assert graph is not None
    assert graph.sum() == (0 if k == 0 else 30)
    x = draw(problem, (64,))
    index = x[:, problem.neighbours] @ (2 ** np.arange(k, -1, -1))
    assert np.allclose(problem.evaluate(x), problem.tables[np.arange(6), index].mean(axis=1))


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: problems.nk(0, 0), ValueError, "n is 0, expected an integer of at least 1"),
        (lambda: problems.nk(5, 5), ValueError, "k is 5, expected an integer from 0 to 4"),
        (lambda: problems.nk(5, -1), ValueError, "k is -1"),
        (lambda: problems.nk(5, 2, -3), ValueError, "seed is -3"),
        (lambda: problems.nk(5.5, 2), TypeError, "n is 5.5"),
        (lambda: problems.nk(True, 0), TypeError, "n is True"),
        (lambda: problems.nkd(5, 2, 1), ValueError, "d is 1, expected an integer of at least 2"),
        (lambda: problems.nk(100, 40), ValueError, "contributions, expected at most"),
        (lambda: NK([[0, 1], [1, 1]], np.zeros((2, 4))), ValueError, r"neighbours\[1\] is \[1, 1"),
        (lambda: NK([[1, 0], [0, 2]], np.zeros((2, 4))), ValueError, r"variables 0 to 1"),
        (lambda: NK([[0], [0]], np.zeros((2, 2))), ValueError, r"expected 1 and distinct others"),
        (lambda: NK([0, 1], np.zeros((2, 4))), ValueError, r"shape \(2,\), expected \(n, k"),
        (lambda: NK([[0.0]], np.zeros((1, 2))), TypeError, "float64, expected integers"),
        (lambda: NK([[0, 1], [1, 0]], np.zeros((2, 8))), ValueError, r"= \(2, 4\)"),
        (lambda: NK([[0]], [[0.1, np.nan]]), ValueError, "not finite"),
    ],
)
def test_nk_bad_input(make: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        make()


# QUBO -------------------------------------------------------------------------------------------

# Copied from shared/known_answers/puboi.json: facts of three published files.
POINTS = {"all_plus_one": "ff" * 8, "alternating": "aa" * 8, "rng_1": "7324cf908a41d694"}
PUBOI: list[dict[str, Any]] = [
    {
        **{"n": 64, "type": 2, "seed": 0, "r": 0.05, "d": 8.0, "alpha": 1.1125, "m": 101},
        "clauses_per_function": [28, 23, 30, 20],
        "bound": -362,
        "nonzero_terms": 142,
        "first_clauses": [
            {"function": 1, "vars": [6, 1, 5, 9], "coef": [2, 2, -1, 2]},
            {"function": 1, "vars": [2, 15, 14, 7], "coef": [2, 2, 1, -2]},
        ],
        "last_clauses": [
            {"function": 4, "vars": [5, 0, 12, 2], "coef": [1, 1, 1, -1]},
            {"function": 4, "vars": [40, 57, 63, 28], "coef": [1, 1, 1, -1]},
        ],
        "first_terms": [[-1, 1, 6], [7, 1, 5], [-6, 5, 9], [3, 6, 9]],
        "last_terms": [[1, 40, 57], [1, 57, 63], [1, 28, 63], [-1, 28, 40]],
        "f": {"all_plus_one": -10, "alternating": 14, "rng_1": -22},
        "best_known": {"f": 160, "x_hex": "6b8a6d27be3ee2a3"},
    },
    {
        **{"n": 64, "type": 4, "seed": 0, "r": 0.2, "d": 8.0, "alpha": 1.0, "m": 403},
        "clauses_per_function": [103, 98, 108, 94],
        "bound": -1419,
        "nonzero_terms": 389,
        "first_clauses": [{"function": 1, "vars": [13, 1, 27, 36], "coef": [-2, -2, 1, -2]}],
        "last_clauses": [{"function": 4, "vars": [15, 13, 4, 5], "coef": [-1, 1, -1, -1]}],
        "first_terms": [[2, 1, 13], [-2, 1, 27], [1, 27, 36], [-1, 13, 36]],
        "last_terms": [[1, 2, 31], [-1, 10, 36], [1, 1, 36], [-1, 13, 17]],
        "f": {"all_plus_one": 7, "alternating": 21, "rng_1": -3},
        "best_known": {"f": 343, "x_hex": "a9af65803f82578d"},
    },
    {
        **{"n": 64, "type": 1, "seed": 1, "r": 0.05, "d": 8.0, "alpha": 1.0, "m": 101},
        "clauses_per_function": [27, 25, 26, 23],
        "bound": -359,
        "nonzero_terms": 151,
        "first_clauses": [{"function": 1, "vars": [12, 3, 6, 9], "coef": [2, 2, -1, 2]}],
        "last_clauses": [{"function": 4, "vars": [9, 10, 6, 49], "coef": [1, 1, 1, -1]}],
        "first_terms": [[4, 3, 12], [4, 3, 6], [-3, 6, 9], [-2, 9, 12]],
        "last_terms": [[-1, 4, 12], [1, 15, 43], [-1, 7, 43], [1, 6, 49]],
        "f": {"all_plus_one": 19, "alternating": -35, "rng_1": 11},
        "best_known": {"f": 141, "x_hex": "2774a14b4273958f"},
    },
]


def terms_of(problem: Qubo) -> list[list[float]]:
    return [[w, *pair] for w, pair in zip(problem.weights, problem.pairs.tolist(), strict=True)]


def check_qubo(answers: dict[str, Any], points: dict[str, str]) -> None:
    problem = problems.qubo(answers["n"], answers["type"], answers["seed"])
    terms = terms_of(problem)
    assert len(terms) == answers["nonzero_terms"]
    assert terms[: len(answers["first_terms"])] == answers["first_terms"]
    assert terms[-len(answers["last_terms"]) :] == answers["last_terms"]
    assert problem.upper_bound == -answers["bound"]
    for name, value in answers["f"].items():
        assert problem(bits(points[name])) == value
        assert problem(1 - bits(points[name])) == value
    best = answers["best_known"]
    assert problem(bits(best["x_hex"])) == best["f"]
    assert problem.best_known == (best["f"] if answers["n"] == 64 else None)


def check_clauses(answers: dict[str, Any]) -> None:
    clauses = puboi_clauses(
        answers["n"], answers["r"], answers["d"], answers["alpha"], answers["seed"]
    )
    listed = [
        {"function": function + 1, "vars": variables, "coef": coefficients}
        for function, variables, coefficients in zip(*(a.tolist() for a in clauses), strict=True)
    ]
    assert len(listed) == answers["m"]
    assert np.bincount(clauses.functions).tolist() == answers["clauses_per_function"]
    assert listed[: len(answers["first_clauses"])] == answers["first_clauses"]
    assert listed[-len(answers["last_clauses"]) :] == answers["last_clauses"]


@pytest.mark.parametrize("answers", PUBOI, ids=lambda a: f"type{a['type']}")
def test_qubo_known_answers(answers: dict[str, Any]) -> None:
    check_qubo(answers, POINTS)
    check_clauses(answers)


@with_shared
def test_qubo_known_answers_shared() -> None:
    known = json.loads((SHARED / "puboi.json").read_text(encoding="utf-8"))
    assert len(known["instances"]) == 11
    for answers in known["instances"]:
        check_qubo(answers, known["x_vectors"]["hex"][str(answers["n"])])
        check_clauses(answers)


@with_shared
def test_qubo_best_known_shared() -> None:
    known = json.loads((SHARED / "puboi.json").read_text(encoding="utf-8"))["best_known_n64"][
        "types"
    ]
    for kind in range(6):
        values = [problems.qubo(64, kind, seed).best_known for seed in range(10)]
        assert values == known[str(kind)]["best"]
    assert problems.qubo(64, 0, 10).best_known is None
    assert problems.qubo(64, 1, 0, "text").best_known is None


def test_qubo_parameters_of_the_text() -> None:
    for kind in (0, 3):
        files, text = (problems.qubo(64, kind, 0, p) for p in ("files", "text"))
        assert terms_of(files) == terms_of(text)
    for kind, degree, factor in ((1, 10.0, 1.0), (2, 10.0, 1.09)):
        pairs, weights = sum_terms(puboi_clauses(64, 0.05, degree, factor, 3))
        text = problems.qubo(64, kind, 3, "text")
        assert np.array_equal(text.pairs, pairs)
        assert np.array_equal(text.weights, weights)
        assert terms_of(text) != terms_of(problems.qubo(64, kind, 3))


def test_qubo_is_the_sum_of_its_clauses() -> None:
    clauses = puboi_clauses(20, 0.2, 1.0, 1.0, 4)
    problem = problems.qubo(20, 3, 4)
    x = draw(problem, (30,))
    spins = 2 * x - 1
    energy = np.zeros(30)
    for variables, coefficients in zip(clauses.variables, clauses.coefficients, strict=True):
        for (a, b), w in zip(_EDGES, coefficients, strict=True):
            energy += w * spins[:, variables[a]] * spins[:, variables[b]]
    assert np.array_equal(problem.evaluate(x), -energy)
    assert (problem.weights != 0).all()
    assert len(np.unique(problem.pairs, axis=0)) == len(problem.pairs)


def test_qubo_of_real_and_of_large_weights() -> None:
    rng = np.random.default_rng(0)
    pairs = np.array([(i, j) for i in range(12) for j in range(i)])
    for weights in (rng.normal(size=66), rng.integers(-(2**40), 2**40, size=66)):
        problem = Qubo(12, pairs, weights)
        x = draw(problem, (50,))
        spins = 2 * x - 1
        expected = -(spins[:, pairs[:, 0]] * spins[:, pairs[:, 1]] * weights).sum(axis=1)
        assert np.allclose(problem.evaluate(x), expected, rtol=1e-12, atol=1e-12)


def test_qubo_equal_pairs_add_up() -> None:
    problem = Qubo(3, [(0, 1), (1, 0), (1, 2), (2, 1)], [1, 2, 5, -5])
    graph = problem.interaction_graph()
    assert np.argwhere(graph).tolist() == [[0, 1], [1, 0]]
    assert problem([1, 1, 0]) == -3
    assert problem([0, 1, 0]) == 3


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: problems.qubo(13), ValueError, "n is 13, expected an integer of at least 14"),
        (lambda: problems.qubo(64, 6), ValueError, "type is 6, expected an integer from 0 to 5"),
        (lambda: problems.qubo(64, 0, -1), ValueError, "seed is -1"),
        (lambda: problems.qubo(64, 0, 2**32), ValueError, "seed is 4294967296"),
        (lambda: problems.qubo(64, 0, 0, "paper"), ValueError, r"'paper', expected one of \['fil"),
        (lambda: problems.qubo("64"), TypeError, "n is '64'"),
        (lambda: Qubo(3, [(0, 3)], [1]), ValueError, r"pairs\[0\] is \[0 3\]"),
        (lambda: Qubo(3, [(0, 1), (1, 1)], [1, 1]), ValueError, r"pairs\[1\] is \[1 1\]"),
        (lambda: Qubo(3, [(0, 1)], [1, 2]), ValueError, r"expected \(t, 2\) and \(t,\)"),
        (lambda: Qubo(3, [(0.0, 1.0)], [1]), TypeError, "float64, expected integers"),
        (lambda: Qubo(3, [(0, 1)], [np.inf]), ValueError, "not finite"),
    ],
)
def test_qubo_bad_input(make: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        make()


def test_qubo_smallest() -> None:
    for kind in range(6):
        for seed in range(20):
            assert len(problems.qubo(14, kind, seed).pairs) > 0


# Names ------------------------------------------------------------------------------------------


def test_get_reads_parameters() -> None:
    problem = problems.get("nk:n=20, k=3,seed=9")
    assert isinstance(problem, NK)
    assert (problem.n, problem.k, problem.seed) == (20, 3, 9)
    assert problem.name == "nk:n=20,k=3,seed=9"
    assert repr(problem) == "<problem nk:n=20,k=3,seed=9>"
    text = problems.get("qubo:n=32,type=2,parameters=text")
    assert text.name == "qubo:n=32,type=2,seed=0,parameters=text"
    assert problems.make("onemax", n=7).optimum == 7


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("nkk", "unknown problem 'nkk' .did you mean 'nk'.., expected one of nk, "),
        ("", "unknown problem ''"),
        ("nk:m=3", "unknown parameter of nk 'm', expected one of n, k, seed"),
        ("nk:sed=3", "did you mean 'seed'"),
        ("nk:n", "'n' in 'nk:n', expected parameter=value"),
        ("nk:n=8,", "'' in 'nk:n=8,', expected parameter=value"),
        ("nk:n=8,n=9", "each at most once"),
        ("nk:n=eight", "n is 'eight', expected an integer"),
        ("nk:n=1e3", "n is '1e3', expected an integer"),
        ("nk:n=-5", "n is -5, expected an integer of at least 1"),
    ],
)
def test_get_bad_names(text: str, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        problems.get(text)


def test_register(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyorder.problems.catalogue.registry", dict(problems.registry))
    problems.register("mine", lambda n=4: problems.onemax(n), "my own")
    assert problems.get("mine:n=6").optimum == 6
    with pytest.raises(ValueError, match="'nk' is registered already"):
        problems.register("nk", problems.nk, "again")


@pytest.mark.parametrize("k", [1, 2, 5])
def test_trap_by_hand(k: int) -> None:
    problem = problems.trap(2, k)
    for x in product((0, 1), repeat=2 * k):
        value = sum(k if sum(b) == k else k - 1 - sum(b) for b in (x[:k], x[k:]))
        assert problem(x) == value
    assert problem.optimum == 2 * k == problem([1] * 2 * k)
