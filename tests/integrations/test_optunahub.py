"""The folder for OptunaHub: it is laid out as its registry requires, and loads."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
REGISTRY = ROOT / "integrations" / "optunahub"
FOLDER = REGISTRY / "samplers" / "anyorder"


def test_the_folder_has_what_the_registry_requires() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    _, front, body = readme.split("---\n", 2)
    fields = dict(re.findall(r"^(\w+): (.+)$", front, re.MULTILINE))
    assert fields.keys() == {
        "author", "title", "description", "tags", "optuna_versions", "license",
    }  # fmt: skip
    assert "sampler" in fields["tags"].strip("[]").split(", ")
    assert fields["license"] == "MIT License"
    assert (FOLDER / "LICENSE").read_text("utf-8") == (ROOT / "LICENSE").read_text("utf-8")
    for title in ("Abstract", "APIs", "Installation", "Example"):
        assert f"\n## {title}\n" in body
    assert {path.name for path in FOLDER.iterdir()} >= {"__init__.py", "example.py", "tests"}


def test_it_is_loaded_and_searches() -> None:
    optunahub = pytest.importorskip("optunahub")
    import optuna

    module = optunahub.load_local_module("samplers/anyorder", registry_root=str(REGISTRY))
    sampler = module.AnyOrderSampler(seed=0, algorithm="ils")
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(lambda trial: trial.suggest_int("x", 0, 20), n_trials=21)
    assert study.best_value == 20
    assert len({trial.params["x"] for trial in study.trials}) == 21  # none is repeated


@pytest.mark.slow
def test_its_example_and_its_readme_run(tmp_path: Path) -> None:
    pytest.importorskip("optunahub")
    done = subprocess.run(
        [sys.executable, str(FOLDER / "example.py")], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "'kind': 'tree', 'depth': 8" in done.stdout
    (code,) = re.findall(
        r"```python\n(.*?)```", (FOLDER / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
    local = f'load_local_module("samplers/anyorder", registry_root={str(REGISTRY)!r})'
    exec(code.replace('load_module(package="samplers/anyorder")', local), {})
