"""What the package says of itself holds together: bounds, extras, versions, targets."""

from __future__ import annotations

import itertools
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import anyorder

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
SOURCE = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for path in sorted((ROOT / "src").rglob("*.py"))
}
# Beside the tools that only look at the source and those that make the site, what is never in the
# environment of oldest.txt: PyTorch of two extras is pinned or comes with its own Triton.
NOT_OLDEST = {
    "ruff", "mypy", "torch", "triton",
    "sphinx", "myst-parser", "pydata-sphinx-theme", "sphinx-gallery", "numpydoc",
}  # fmt: skip


def bounds() -> dict[str, set[str]]:
    """The lower bound, or the pin, that the package and its extras have of each dependency."""
    found: dict[str, set[str]] = {}
    for requirement in [*PROJECT["dependencies"], *itertools.chain(*EXTRAS.values())]:
        parts = re.match(r"([\w-]+)(?:\[[\w,]+\])?(?:[>=]=([\w.]+))?", requirement)
        assert parts is not None, requirement
        found.setdefault(parts[1], set()).add(parts[2])
    del found["anyorder"]
    return found


def test_every_lower_bound_is_tested() -> None:
    lines = (ROOT / "oldest.txt").read_text("utf-8").splitlines()
    oldest = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert oldest.pop("distributed") == oldest["dask"]
    allowed = {name: found for name, found in bounds().items() if name not in NOT_OLDEST}
    assert oldest.keys() == allowed.keys()
    for name, found in allowed.items():
        assert len(found) == 1, f"{name} has several bounds: {found}"
        (bound,) = found
        assert bound is not None, f"{name} has no lower bound"
        assert re.fullmatch(rf"{re.escape(bound)}(\.0)*", oldest[name]), (name, bound, oldest[name])


def test_what_everyone_installs_brings_no_pytorch() -> None:
    """The targets `demo`, `test` and `lint` start from a bare clone without gigabytes of CUDA."""
    wanted, seen = ["dev"], set()
    while wanted:
        extra = wanted.pop()
        seen.add(extra)
        for requirement in EXTRAS[extra]:
            assert not re.match("torch|triton", requirement), f"{extra}: {requirement}"
            if own := re.match(r"anyorder\[(.*)\]", requirement):
                wanted += own[1].split(",")
    assert {"plot", "test"} <= seen
    # a bound above what the public build of PyTorch demands cannot be resolved
    assert [one for one in EXTRAS["gpu-test"] if one.startswith("triton")] == [
        "triton; platform_system == 'Linux'"
    ]


def test_errors_name_extras_that_there_are() -> None:
    named = {
        (path, name)
        for path, text in SOURCE.items()
        for group in re.findall(r"anyorder\[([a-z,-]+)\]|require\(\"[\w.]+\", \"([a-z]+)\"", text)
        for name in "".join(group).split(",")
    }
    assert {name for _, name in named} >= {"plot", "pandas", "cuda"}
    assert not {(path, name) for path, name in named if name not in EXTRAS}


def test_nothing_is_read_from_outside_the_package() -> None:
    for path, text in SOURCE.items():
        assert not re.search(r"\.\./|['\"/]shared/", text), path


def test_versions_agree() -> None:
    assert f"\nversion: {anyorder.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\n## {anyorder.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_pythons_agree() -> None:
    """Those declared are those that the workflow runs."""
    declared = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert PROJECT["requires-python"] == f">={declared[0]}"
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    assert f"python: {declared}".replace("'", '"') in workflow


@pytest.mark.parametrize(
    "name", [".ci/run", "CONTRIBUTING.md", "README.md", ".github/workflows/ci.yml"]
)
def test_targets_that_are_named_are_there(name: str) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    assert set(phony[1].split()) == targets
    named = set(re.findall(r"(?:^|`|- run: )make ([a-z-]+)", (ROOT / name).read_text("utf-8"),
                           re.MULTILINE))  # fmt: skip
    assert named <= targets
