"""Algorithms for IOHprofiler: what its files have, read back by iohinspector."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ioh")
import ioh

import anyorder as ao
from anyorder.integrations.ioh import Algorithm


def experiment(folder: Path, algorithm: Algorithm, **options: Any) -> Path:
    ioh.Experiment(
        algorithm, [1, 2], [1, 2], [16], reps=2, problem_class=ioh.ProblemClass.PBO,
        output_directory=str(folder), folder_name="runs", zip_output=False,
        run_attributes=["run_seed"], **options,
    )()  # fmt: skip
    return folder / "runs"


def runs_in(folder: Path) -> dict[tuple[int, int, float], tuple[int, float]]:
    """Evaluations and the best value, by function, instance and seed."""
    found = {}
    for path in folder.rglob("*.json"):
        about = json.loads(path.read_text(encoding="utf-8"))
        assert about["algorithm"]["name"] == "ils"
        for scenario in about["scenarios"]:
            for run in scenario["runs"]:
                key = about["function_id"], run["instance"], run["run_seed"]
                found[key] = run["evals"], run["best"]["y"]
    return found


@pytest.mark.filterwarnings("ignore:There is already a folder")
def test_an_experiment_has_its_runs_and_is_repeatable(tmp_path: Path) -> None:
    first = runs_in(experiment(tmp_path / "a", Algorithm("ils", budget=200, seed=3)))
    assert len(first) == 8  # seeds differ from run to run
    assert {evaluations for evaluations, _ in first.values()} == {200}
    again = runs_in(experiment(tmp_path / "b", Algorithm("ils", budget=200, seed=3)))
    assert again == first
    other = runs_in(experiment(tmp_path / "c", Algorithm("ils", budget=200, seed=4)))
    assert not other.keys() & first.keys()


def test_its_folder_is_read_by_iohinspector(tmp_path: Path) -> None:
    inspector = pytest.importorskip("iohinspector")
    manager = inspector.DataManager()
    manager.add_folder(str(experiment(tmp_path, Algorithm("ils", budget=120, seed=0))))
    overview = manager.overview
    assert sorted(overview["function_name"].unique()) == ["LeadingOnes", "OneMax"]
    assert overview["algorithm_name"].unique().to_list() == ["ils"]
    assert len(overview) == 8
    best = overview.filter(overview["function_id"] == 1, overview["instance"] == 1)["best_y"]
    assert best.to_list() == [16.0, 16.0]
    data = manager.load(monotonic=True, include_meta_data=True)
    assert data["evaluations"].max() <= 120


def test_problems_of_integers_and_minima() -> None:
    def distance(x: list[int]) -> float:
        return float(sum(abs(value - 5) for value in x))

    ioh.problem.wrap_integer_problem(distance, "AnyorderDistance", ioh.OptimizationType.MIN, 0, 9)
    problem = ioh.get_problem("AnyorderDistance", 1, 4, ioh.ProblemClass.INTEGER)
    Algorithm("ils", budget=300, seed=0, target=0)(problem)
    assert problem.state.current_best.y == 0
    assert problem.state.evaluations < 300


def test_known_points_cost_nothing_with_a_cache() -> None:
    problem = ioh.get_problem(1, 1, 4, ioh.ProblemClass.PBO)
    Algorithm("ils", budget=100, seed=0, cache=True)(problem)
    assert problem.state.evaluations == 16


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(
        TypeError, match=r"Algorithm got unexpected .*bugdet \(did you mean 'budget'"
    ):
        Algorithm("ils", bugdet=3)
    with pytest.raises(ValueError, match="budget is 0, expected an integer of at least 1"):
        Algorithm("ils", budget=0)
    sphere = ioh.get_problem(1, 1, 3, ioh.ProblemClass.BBOB)
    with pytest.raises(TypeError, match=r"Sphere.*expected one of integers"):
        Algorithm("ils", budget=10)(sphere)


def test_algorithms_have_names_and_pickle() -> None:
    assert str(Algorithm()) == "auto"
    assert str(Algorithm("boa+population=50")) == "boa+population=50"
    assert str(Algorithm(ao.policy.Policy("paper"))) == "Policy"
    assert str(Algorithm("ils", name="mine")) == "mine"
    again = pickle.loads(pickle.dumps(Algorithm("ils", budget=7, seed=1)))
    assert (str(again), again.budget) == ("ils", 7)
