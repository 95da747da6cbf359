"""Strategies and problems from elsewhere: registered by a call, or by another package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import assert_same

import anyorder as ao
from anyorder.bench import algorithms
from anyorder.problems import catalogue
from anyorder.strategies import registry

MODULE = '''
import numpy as np
import anyorder as ao

class Blind(ao.strategies.Search):
    name = "blind"

    def __init__(self, space, seed=None, step=1):
        super().__init__(space, seed)
        self.step = step

    def _propose(self, count):
        return self._uniform(count)

    def _learn(self, answers):
        self.generation += self.step

class Broken(Blind):
    name = "broken"

class Named(Blind):
    name = "another"

class Tabu(Blind):
    name = "tabu"

def halves(n: int = 6, seed: int = 0):
    """Ones in the first half.

    More about it.
    """
    return Halves(n)

class Halves(ao.problems.Problem):
    def __init__(self, n):
        super().__init__(f"halves:n={n}", ao.Space.binary(n))
        self.half = n // 2

    def _values(self, X):
        return X[:, : self.half].sum(axis=1).astype(float)
'''
ENTRIES = """
[anyorder.strategies]
blind = other_package:Blind
broken = other_package:Missing
gone = no_such_module:Gone
misnamed = other_package:Named
tabu = other_package:Tabu

[anyorder.problems]
halves = other_package:halves
"""


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A distribution on `sys.path` that offers a strategy, a problem, and some that do not load."""
    (tmp_path / "other_package.py").write_text(MODULE, encoding="utf-8")
    info = tmp_path / "other_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(textwrap.dedent(ENTRIES), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("other_package", None)


@pytest.fixture(autouse=True)
def tables() -> Iterator[None]:
    kept = dict(registry.REGISTRY), dict(catalogue.registry)
    yield
    for table, before in zip((registry.REGISTRY, catalogue.registry), kept, strict=True):
        table.clear()
        table.update(before)


class Mine(ao.strategies.Search):
    name = "mine"

    def __init__(self, space: ao.Space, seed: Any = None, shift: int = 1) -> None:
        super().__init__(space, seed)
        self.shift = shift

    def _propose(self, count: int) -> Any:
        return (self._uniform(count) + self.shift) % 2

    def _learn(self, answers: Any) -> None:
        pass


def total(x: np.ndarray) -> float:
    return float(x.sum())


def test_a_registered_strategy_is_known_everywhere(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown algorithm 'mine'"):
        ao.maximize(total, ao.Space.binary(6), 10, algorithm="mine")
    ao.strategies.register("mine", Mine)
    assert "mine" in ao.strategies.names()
    study = tmp_path / "study.db"
    options: dict[str, Any] = {"algorithm": "mine+shift=3", "seed": 1}
    whole = ao.maximize(total, ao.Space.binary(6), 30, **options)
    assert whole.settings == {"shift": 3}
    ao.maximize(total, ao.Space.binary(6), 12, study=study, **options)
    result = ao.resume(study, total, 30)
    assert_same(result.history, whole.history)
    assert result.settings == {"shift": 3}
    optimizer = ao.Optimizer(ao.Space.binary(6), 0, algorithm="mine")
    again = ao.Optimizer.from_state(optimizer.state_dict())
    assert isinstance(again.strategy, Mine)
    trace = algorithms.run("mine+shift=2", ao.problems.onemax(6), 20, 0, [20])
    assert trace.configuration == {"shift": 2}
    with pytest.raises(ValueError, match=r"unknown setting of mine 'shfit' .*'shift'"):
        ao.Optimizer(ao.Space.binary(6), algorithm="mine+shfit=2")


def test_what_cannot_be_registered() -> None:
    with pytest.raises(ValueError, match="strategy 'tabu' is registered already"):
        ao.strategies.register("tabu", type("Tabu", (Mine,), {"name": "tabu"}))
    for name in ("mine:x", "a+b", "", 3):
        with pytest.raises(ValueError, match="expected letters, digits"):
            ao.strategies.register(name, Mine)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"Mine\.name is 'mine', expected 'yours' as registered"):
        ao.strategies.register("yours", Mine)
    with pytest.raises(TypeError, match="cls is 3"):
        ao.strategies.register("three", 3)  # type: ignore[arg-type]


def test_strategies_of_other_packages(elsewhere: Path) -> None:
    with pytest.warns(RuntimeWarning) as caught:
        names = ao.strategies.names()
    assert "blind" in names
    assert not {"broken", "gone", "misnamed", "another"} & set(names)
    said = [str(warning.message) for warning in caught]
    assert len(said) == 4
    assert all("of other-package is left out" in text for text in said)
    for text in ("'broken'", "no_such_module", "expected 'misnamed'", "'tabu' is registered"):
        assert sum(text in warning for warning in said) == 1, text
    result = ao.maximize(total, ao.Space.binary(6), 10, algorithm="blind+step=2")
    assert (result.algorithm, result.settings) == ("blind", {"step": 2})
    assert type(ao.Optimizer(ao.Space.binary(3), algorithm="tabu").strategy) is (
        ao.strategies.TabuSearch
    )


@pytest.mark.filterwarnings("ignore:.*is left out:RuntimeWarning")
def test_a_name_that_is_not_known_yet_is_looked_for(elsewhere: Path) -> None:
    assert "blind" not in registry.REGISTRY
    assert ao.Optimizer(ao.Space.binary(3), algorithm="blind").strategy.name == "blind"


def test_problems_of_other_packages(elsewhere: Path) -> None:
    problem = ao.problems.get("halves:n=8")
    assert problem([1, 1, 1, 1, 0, 0, 0, 0]) == 4
    assert "halves" in ao.problems.names()
    assert ao.problems.entry("halves").description == "Ones in the first half."
    assert ao.problems.entry("halves").parameters == {"n": 6, "seed": 0}


def test_the_command_line_and_studies_know_them_in_processes_of_their_own(elsewhere: Path) -> None:
    """And nothing of it is imported before it is asked for."""
    code = "import sys, anyorder; assert 'other_package' not in sys.modules"
    python = [sys.executable, "-W", "ignore"]
    path = os.pathsep.join([str(elsewhere), str(Path(ao.__file__).parents[1])])
    env = {**os.environ, "PYTHONPATH": path}
    options: dict[str, Any] = {"env": env, "encoding": "utf-8", "check": True}
    subprocess.run([*python, "-c", code], **options)
    command = [*python, "-m", "anyorder", "solve", "halves:n=8", "--algorithm", "blind"]
    done = subprocess.run(
        [*command, "--budget", "40", "--seed", "0", "--json"], capture_output=True, **options
    )
    found = json.loads(done.stdout)
    assert (found["problem"], found["algorithm"]) == ("halves:n=8", "blind")
    assert found["settings"] == {"step": 1}
