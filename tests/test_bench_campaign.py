"""Campaign files: the runs they ask for, and what is refused before anything runs."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from conftest import refused

from anyorder import problems
from anyorder.bench import algorithms, campaign, runner
from anyorder.bench.store import Spec, Store
from anyorder.cli import main

GOOD = """\
budget = 250
runs = 2
instances = 3

[[algorithm]]
name = "random"

[[algorithm]]
name = "umda+population=20"
label = "UMDA"

[[problem]]
problem = "nk:n=8,k=2"

[[problem]]
problem = "onemax:n=6"
name = "ones"
budget = 90
grid = [10, 50]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "small.toml"


def written(path: Path, text: str) -> campaign.Campaign:
    path.write_text(text, "utf-8")
    return campaign.read(path)


# --- what it asks for -----------------------------------------------------------------------------


def test_the_runs_of_a_file(path: Path) -> None:
    found = written(path, GOOD)
    nk = [
        Spec(
            label, method, "nk:n=8,k=2", f"nk:n=8,k=2,seed={i}", i, seed, 250, (100, 200, 250)
        )
        for label, method in [
            ("random", "random"),
            ("UMDA", "umda+population=20"),
        ]
        for i in range(3)
        for seed in range(2)
    ]  # fmt: skip
    ones = [
        Spec(label, method, "ones", "onemax:n=6", 0, seed, 90, (10, 50, 90))
        for label, method in [
            ("random", "random"),
            ("UMDA", "umda+population=20"),
        ]
        for seed in range(2)
    ]
    assert found == campaign.Campaign("small", (*nk, *ones), None, None)


def test_defaults_are_ten_instances_ten_runs_and_every_hundred(path: Path) -> None:
    found = written(
        path,
        'budget = 1000\n[[algorithm]]\nname = "random"\n[[problem]]\nproblem = "nk:n=8"\n',
    )
    assert len(found.specs) == 100
    assert {spec.grid for spec in found.specs} == {tuple(range(100, 1001, 100))}
    assert {spec.instance for spec in found.specs} == set(range(10))
    assert {spec.seed for spec in found.specs} == set(range(10))


def test_what_stands_at_the_top(path: Path) -> None:
    top = 'name = "mine"\nseed = 7\nseconds = 1.5\nmemory = "1.5 GB"\n'
    found = written(path, top + GOOD)
    assert (found.name, found.seconds, found.memory) == ("mine", 1.5, 1_500_000_000)
    assert {spec.seed for spec in found.specs} == {7, 8}


@pytest.mark.parametrize(
    ("given", "size"),
    [("4_000", 4_000), ('"4 kB"', 4_000), ('"3MB"', 3_000_000), ('"0.5 T"', 5 * 10**11)],
)
def test_sizes(path: Path, given: str, size: int) -> None:
    assert written(path, f"memory = {given}\n{GOOD}").memory == size


def test_pbo_counts_its_instances_from_one(path: Path) -> None:
    pytest.importorskip("ioh")
    text = GOOD.replace("nk:n=8,k=2", "pbo:function=LeadingOnes,n=9")
    specs = [spec for spec in written(path, text).specs if spec.problem.startswith("pbo")]
    assert {(spec.instance, spec.problem) for spec in specs} == {
        (i, f"pbo:function=LeadingOnes,n=9,instance={i}") for i in (1, 2, 3)
    }


@pytest.mark.parametrize("kind", ["nk", "nkd", "qubo", "maxcut", "maxsat", "table", "pbo"])
def test_names_of_instances_are_what_the_problems_call_themselves(kind: str) -> None:
    if kind == "pbo":
        pytest.importorskip("ioh")
    found = campaign.distribution(kind, instances=[5, 12, 1], budget=10)
    varies = "instance" if kind == "pbo" else "seed"
    for instance, name in found.instances.items():
        assert name == problems.get(f"{kind}:{varies}={instance}").name
    assert list(found.instances) == [5, 12, 1]


def test_a_file_of_a_graph_has_one_instance(tmp_path: Path, path: Path) -> None:
    graph = tmp_path / "graph.txt"
    graph.write_text("4 3\n1 2 1\n2 3 1\n3 4 1\n", encoding="utf-8")
    specs = written(path, GOOD.replace("nk:n=8,k=2", f"maxcut:file={graph}")).specs
    assert sum("maxcut" in spec.problem for spec in specs) == 4  # two algorithms, two seeds


def test_few_instances_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some take half a second each, and there are tables of 40 distributions and 96 methods."""
    made = []
    plain = problems.get

    def noted(text: str) -> problems.Problem:
        made.append(text)
        return plain(text)

    monkeypatch.setattr(problems, "get", noted)
    found = campaign.distribution("nk:n=8", instances=50, budget=10)
    for k in range(20):
        assert len(list(found.specs(f"{k}", f"umda+population={k + 2}"))) == 500
    assert len(made) <= 2


@pytest.mark.parametrize(
    ("grid", "budget", "expected"),
    [
        (100, 300, (100, 200, 300)),
        (100, 250, (100, 200, 250)),
        (100, 50, (50,)),
        (1, 3, (1, 2, 3)),
        ([3, 1, 3], 7, (1, 3, 7)),
        ([7], 7, (7,)),
    ],
)
def test_marks(grid: Any, budget: int, expected: tuple[int, ...]) -> None:
    assert campaign.marks(grid, budget) == expected


def changed(**fields: Any) -> str:
    spec = Spec("A", "random", "D", "onemax:n=4", 0, 1, 10, (5, 10))
    return dataclasses.replace(spec, **fields).key


def test_a_run_is_known_by_what_it_is_and_not_by_what_it_is_called() -> None:
    assert changed(algorithm="B", distribution="E") == changed()
    others = [
        changed(method="rls"),
        changed(problem="onemax:n=5"),
        changed(seed=2),
        changed(budget=11),
        changed(grid=(10,)),
    ]
    assert len({*others, changed()}) == 6


GROWN = [
    ("runs = 2", "runs = 5"),
    ("instances = 3", "instances = 8"),
    ("[[problem]]", '[[algorithm]]\nname = "rls"\n[[problem]]', 1),
    ("[[problem]]", '[[problem]]\nproblem = "trap:blocks=2"\n[[problem]]', 1),
]


@pytest.mark.parametrize("change", GROWN)
def test_one_that_grows_keeps_the_runs_it_had(path: Path, change: Any) -> None:
    before = {spec.key for spec in written(path, GOOD).specs}
    after = {spec.key for spec in written(path, GOOD.replace(*change)).specs}
    assert before < after


def test_labels_do_not_make_other_runs(path: Path) -> None:
    text = GOOD.replace('"UMDA"', '"other"').replace('"ones"', '"others"')
    before, after = written(path, GOOD), written(path, text)
    assert [spec.key for spec in before.specs] == [spec.key for spec in after.specs]
    assert before != after


# --- what is refused ------------------------------------------------------------------------------


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


REFUSED = {
    "unknown algorithm": ('"random"', '"randon"', "", "'random'"),
    "unknown preset": ('"random"', '"policy:papre"', "", "'policy:paper'"),
    "unknown library": ('"random"', '"basline:random"', "", "random, rls"),
    "unknown setting": ("umda+population", "umda+populaton", "populaton", "'population'"),
    "bad setting": ("umda+population=20", "umda+population=-3", "population", "-3"),
    "unknown problem": ("nk:n=8,k=2", "nc:n=8,k=2", "", "'nk'"),
    "unknown parameter": ("onemax:n=6", "onemax:nn=6", "nn", "did you mean 'n'"),
    "bad parameter": ("onemax:n=6", "onemax:n=six", "n is 'six'", "an integer"),
    "impossible parameter": ("nk:n=8,k=2", "nk:n=8,k=20", "k is 20", "expected"),
    "instance in the name": ("nk:n=8,k=2", "nk:n=8,seed=2", "no seed", "instances"),
    "typo at the top": ("instances", "instanses", "instanses", "'instances'"),
    "typo of an algorithm": ("label =", "labal =", "labal", "'label'"),
    "typo of a problem": ("grid =", "gird =", "gird", "'grid'"),
    "key in the wrong place": ("budget = 90", "seconds = 9", "seconds", "above the first"),
    "section that there is not": ('[[problem]]\nproblem = "nk', '[[problems]]\nproblem = "nk',
                                  "problems", "'problem'"),
    "budget of nothing": ("budget = 250", "budget = 0", "budget is 0", "from 1 to"),
    "budget of text": ("budget = 250", 'budget = "250"', "budget is '250'", "integer"),
    "budget of half": ("budget = 250", "budget = 2.5", "budget is 2.5", "integer"),
    "budget that is true": ("budget = 250", "budget = true", "budget is True", "integer"),
    "endless budget": ("budget = 250", f"budget = {10**30}", f"budget is {10**30}", "from 1 to"),
    "budget of too many marks": ("budget = 250", "budget = 99999999", "at most 100000 points"),
    "own budget": ("budget = 90", "budget = -90", "budget is -90", "from 1 to"),
    "grid of nothing": ("grid = [10, 50]", "grid = 0", "grid is 0", "from 1 to"),
    "empty grid": ("grid = [10, 50]", "grid = []", "grid is []", "integer"),
    "grid beyond the budget": ("grid = [10, 50]", "grid = [10, 91]", "91", "the budget, 90"),
    "grid from 0": ("grid = [10, 50]", "grid = [0, 50]", "grid is 0", "at least 1"),
    "grid of text": ("grid = [10, 50]", 'grid = [10, "50"]', "grid is '50'", "integer"),
    "no runs": ("runs = 2", "runs = 0", "runs is 0", "from 1 to"),
    "endless runs": ("runs = 2", "runs = 3000000000", "runs is 3000000000", "from 1 to 1000000"),
    "no instances": ("instances = 3", "instances = 0", "instances is 0", "from 1 to"),
    "endless instances": (
        "instances = 3", "instances = 3000000000", "instances is 3000000000", "from 1 to 1000000"
    ),
    "instance below 0": ("instances = 3", "instances = [0, -1]", "instances is -1", "at least 0"),
    "seed below 0": ("runs = 2", "seed = -1", "seed is -1", "from 0"),
    "seed too large": ("runs = 2", f"seed = {2**32}", str(2**32), "from 0"),
    "no time": ("runs = 2", "seconds = 0", "seconds is 0", "above 0"),
    "endless time": ("runs = 2", "seconds = inf", "seconds is inf", "finite"),
    "a key of many parts": ("runs = 2", ".".join("a" * 50_000) + " = 1", "more than 100 parts", ""),
    "many brackets": ("runs = 2", "runs = " + "[" * 50_000, "nested too deeply", ""),
    "no memory": ("runs = 2", "memory = 0", "memory is 0", "'4 GB'"),
    "memory in words": ("runs = 2", 'memory = "a lot"', "a lot", "'4 GB'"),
    "memory of points": ("runs = 2", 'memory = "1.2.3 GB"', "1.2.3", "'4 GB'"),
    "memory that is true": ("runs = 2", "memory = true", "True", "'4 GB'"),
    "label twice": ('"UMDA"', '"random"', "is there already", "label"),
    "empty label": ('"UMDA"', '""', "label is ''", "not empty"),
    "label of a number": ('"UMDA"', "3", "label is 3", "text"),
    "algorithm twice": ('"umda+population=20"', '"random"', "is there already",
                        "each once"),
    "distribution twice": ('"ones"', '"nk:n=8,k=2"', "is there already", "its own name"),
    "no TOML": ("runs = 2", "runs 2", "line 2", ""),
    "no file": ("onemax:n=6", "maxcut:file=/nowhere/g", "/nowhere/g", ""),
}  # fmt: skip


def test_too_many_runs(path: Path) -> None:
    with pytest.raises(ValueError, match="line 13: 3 instances with 900000 runs each, expected at"):
        written(path, GOOD.replace("runs = 2", "runs = 900000"))


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_the_line_and_what_was_meant(path: Path, case: str) -> None:
    old, new, *said = REFUSED[case]
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    with pytest.raises(ValueError, match="line") as error:
        written(path, text)
    message = str(error.value)
    assert str(path) in message
    assert f"line {line_of(GOOD, old)}" in message, message
    for part in said:
        assert part in message


def test_the_same_problem_under_two_names(path: Path) -> None:
    text = GOOD + '[[problem]]\nproblem = "nk:k=2,n=8"\ninstances = [2, 7]\nname = "again"\n'
    with pytest.raises(ValueError, match=r"line 21: nk:n=8,k=2,seed=2 is there already, in 'nk:"):
        written(path, text)


def test_a_problem_too_large_for_memory_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    with refused(ValueError, "c.toml, line 5: not enough memory"):
        written(
            path, 'budget = 5\n[[algorithm]]\nname = "random"\n[[problem]]\n'
            'problem = "onemax:n=100000000000000000"\n',
        )  # fmt: skip


@pytest.mark.parametrize("section", ["algorithm", "problem"])
@pytest.mark.parametrize("how", ["none", "empty", "one", "of text"])
def test_no_algorithm_or_no_problem(path: Path, section: str, how: str) -> None:
    kept = [part for part in GOOD.split("[[") if not part.startswith(section)]
    text = "[[".join(kept)
    text = {"none": "", "empty": f"{section} = []\n", "of text": f'{section} = ["x"]\n'}.get(
        how, ""
    ) + text
    text += f'[{section}]\nname = "x"\n' if how == "one" else ""
    with pytest.raises(ValueError, match=section):
        written(path, text)


def test_a_file_without_a_budget(path: Path) -> None:
    with pytest.raises(ValueError, match="'budget' is missing, and is required"):
        written(path, GOOD.replace("budget = 250\n", ""))


def test_a_file_that_is_not_text(path: Path) -> None:
    path.write_bytes(b"budget = 250\n# caf\xe9\nruns = 2\n")
    with pytest.raises(ValueError, match=r"small\.toml: 'utf-8' codec .*\(at line 2\)"):
        campaign.read(path)


def test_line_ends_of_another_system(path: Path) -> None:
    path.write_bytes(GOOD.replace("runs = 2", "runs = 0").replace("\n", "\r\n").encode())
    with pytest.raises(ValueError, match="line 2: runs is 0"):
        campaign.read(path)


def test_pbo_has_no_instance_0(path: Path) -> None:
    pytest.importorskip("ioh")
    text = GOOD.replace("nk:n=8,k=2", "pbo:n=9").replace("instances = 3", "instances = [1, 0]")
    with pytest.raises(ValueError, match=r"line 13: instances is 0, expected .* at least 1"):
        written(path, text)


def test_a_missing_package_is_named_with_the_line(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = importlib.import_module

    def without(name: str, *rest: Any) -> Any:
        if name == "optuna":
            raise ModuleNotFoundError("No module named 'optuna'", name="optuna")
        return plain(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(ImportError, match=r"line 6: .* requires optuna: .*anyorder\[peers\]"):
        written(path, GOOD.replace("random", "optuna:TPE"))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("policy", "policy:default"),
        ("policy:default+population=10", "policy"),
        ("umda+population=20", "umda+population=20"),
    ],
)
def test_the_same_algorithm_under_two_names(path: Path, first: str, second: str) -> None:
    text = GOOD.replace("random", first).replace("umda+population=20", second)
    with pytest.raises(ValueError, match=r"line 9: .* is there already.*expected each once"):
        written(path, text)


def test_a_graph_that_is_not_known(path: Path) -> None:
    text = GOOD.replace("random", "policy+graph=known")
    assert written(path, text.replace("onemax:n=6", "trap:blocks=2,k=3")).specs
    with pytest.raises(ValueError, match=r"line 13: graph is 'known', but .* does not know its"):
        written(path, text.replace("nk:n=8,k=2", "table:variables=3"))


def test_an_engine_that_is_not_here(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(algorithms, "why_not", lambda engine: "there is no GPU")
    path.write_text(GOOD.replace("random", "policy+engine=cuda"), encoding="utf-8")
    out = path.with_suffix(".db")
    got = CliRunner().invoke(main, ["bench", "run", str(path), "--output", str(out)])
    assert got.exit_code == 1
    assert "policy+engine=cuda: engine cuda cannot run here: there is no GPU" in got.output
    assert not out.exists()


def test_a_module_that_breaks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path.parent / "breaks.py").write_text("1 / 0", encoding="utf-8")
    monkeypatch.setattr("sys.path", [*sys.path])
    with pytest.raises(ValueError, match="line 1: module 'breaks' cannot be imported: ZeroDiv"):
        written(path, 'modules = ["breaks"]\n' + GOOD)


def test_nothing_is_made_of_a_file_that_is_refused(path: Path, tmp_path: Path) -> None:
    path.write_text(GOOD.replace("random", "randon"), encoding="utf-8")
    arguments = ["bench", "run", str(path), "--output", str(tmp_path / "runs.db")]
    got = CliRunner().invoke(main, arguments)
    assert got.exit_code == 2
    assert "line 6" in got.output
    assert "did you mean 'random'" in got.output
    assert list(tmp_path.iterdir()) == [path]


MINE = """
import anyorder as ao

class Mine(ao.problems.Problem):
    def __init__(self, n=20):
        super().__init__(f"mine:n={n}", ao.Space.binary(n))

    def _values(self, points):
        return (points * points[:, ::-1]).sum(axis=1).astype(float)

ao.problems.register("mine", Mine, "pairs of ones that mirror each other")
"""


OWN = """
budget = 40
modules = ["my_problems_of_a_test"]
[[algorithm]]
name = "rls"
[[problem]]
problem = "mine:n=12"
"""


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a module of a test registers is forgotten after it."""
    registry = dict(problems.registry)
    monkeypatch.setattr("anyorder.problems.catalogue.registry", registry)
    monkeypatch.setattr("anyorder.problems.registry", registry)
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.mark.usefixtures("own_registry")
def test_runs_that_fail_show_in_the_exit_status(tmp_path: Path) -> None:
    broken = MINE.replace("return (points", "raise OSError('no licence')\n        return (points")
    (tmp_path / "a_broken_problem_of_a_test.py").write_text(broken, encoding="utf-8")
    text = OWN.replace("my_problems_of_a_test", "a_broken_problem_of_a_test")
    (tmp_path / "c.toml").write_text(
        f'runs = 2\n{text}[[problem]]\nproblem = "onemax:n=4"\n', encoding="utf-8"
    )
    command = ["bench", "run", str(tmp_path / "c.toml"), "--output", str(tmp_path / "runs.db")]
    for to_do in (4, 0):  # they have failed still
        got = CliRunner().invoke(main, [*command, "--workers", "1"])
        assert got.exit_code == 1
        assert f"4 runs, {to_do} to do" in got.output
        assert "2 runs failed" in got.output
    with Store(tmp_path / "runs.db") as store:
        assert store.results().failed == {("mine:n=12", "rls"): {"OSError: no licence": 2}}
        assert [len(cell.curves) for cell in store.results().cells.values()] == [2]


@pytest.mark.usefixtures("own_registry")
def test_problems_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "my_problems_of_a_test.py").write_text(MINE, encoding="utf-8")
    file = tmp_path / "c.toml"
    file.write_text(OWN.replace("my_problems_of_a_test", "my_problem_of_a_test"), encoding="utf-8")
    with pytest.raises(ValueError, match="line 3: module 'my_problem_of_a_test' cannot be imp"):
        campaign.read(file)
    file.write_text(OWN, encoding="utf-8")
    read = campaign.read(file)
    assert read.modules == ("my_problems_of_a_test",)
    with Store(tmp_path / "runs.db") as store:
        store.request(read.name, read.specs[:2])
        assert runner.run(store, workers=2, modules=read.modules) == "done"
        assert [len(cell.curves) for cell in store.results().cells.values()] == [2]
