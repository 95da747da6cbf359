"""Check what `python -m build` made: what is in it, and that it installs outside the tree.

Usage: check_dist.py FOLDER, with one wheel and one sdist in it. Run by `make dist-check`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LARGEST = 2_000_000  # bytes of the wheel
IN_SDIST = (
    "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md",
    "oldest.txt", "pyproject.toml", ".ci/run", "docs/design.md", "examples/demo.py",
    "examples/gcc/problem.toml", "benchmarks/engines.py", "tests/conftest.py",
    "tests/data/histories.json", "tests/test_packaging_minimal.py", "results/engines.csv",
)  # fmt: skip


def one(folder: Path, pattern: str) -> Path:
    """Return the only file there of that name."""
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise SystemExit(f"{len(found)} files {pattern} in {folder}, expected one")
    return found[0]


def package_files() -> set[str]:
    """Return what git knows under src, or all there is where this is no clone."""
    listed = subprocess.run(
        ["git", "ls-files", "src"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
    ).stdout.split()
    files = [ROOT / name for name in listed] or sorted((ROOT / "src").rglob("*.*"))
    return {
        file.relative_to(ROOT / "src").as_posix()
        for file in files
        if file.is_file() and "__pycache__" not in file.parts and "egg-info" not in str(file)
    }


def complain(what: str, names: set[str]) -> None:
    """Stop if there are any."""
    if names:
        raise SystemExit(f"{what}: {', '.join(sorted(names))}")


def check_contents(wheel: Path, sdist: Path) -> None:
    """Everything is in both, nothing else in the wheel, and no path leads out of it."""
    wanted = package_files()
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        shipped = {name: archive.read(name) for name in names & wanted}
    complain("missing in the wheel", wanted - names)
    extra = {name for name in names - wanted if ".dist-info/" not in name}
    complain("in the wheel by mistake", extra)
    outside = {name for name, text in shipped.items() if re.search(rb"\.\./|shared/", text)}
    complain("names a path outside the package", outside)
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    complain("missing in the sdist", {*IN_SDIST, *(f"src/{name}" for name in wanted)} - names)
    complain(
        "in the sdist by mistake", {name for name in names if name.endswith((".pyc", ".db-wal"))}
    )


def check_installation(archive: Path) -> None:
    """In an environment of its own, from a copy of the script: nothing leads back to the tree."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        venv.create(place / "venv", with_pip=True)
        scripts = place / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
        python = str(scripts / "python")
        install = [python, "-m", "pip", "install", "-qq", "--no-compile", str(archive.resolve())]
        subprocess.run(install, check=True)
        script = place / "tests" / "minimal.py"
        script.parent.mkdir()
        script.write_bytes((ROOT / "tests" / "test_packaging_minimal.py").read_bytes())
        subprocess.run([python, "-I", str(script)], cwd=place, check=True)
        shown = subprocess.run(
            [str(scripts / "anyorder"), "--version"], cwd=place, check=True, capture_output=True
        )
        version = archive.name.split("-")[1].removesuffix(".tar.gz")
        if version not in shown.stdout.decode():
            raise SystemExit(f"anyorder --version is {shown.stdout.decode()!r}, not {version}")


def main() -> None:
    """Check the folder that the command line names."""
    folder = Path(sys.argv[1])
    wheel, sdist = one(folder, "*.whl"), one(folder, "*.tar.gz")
    check_contents(wheel, sdist)
    if wheel.stat().st_size > LARGEST:
        raise SystemExit(f"{wheel.name} has {wheel.stat().st_size} bytes, at most {LARGEST} wanted")
    for archive in (wheel, sdist):
        check_installation(archive)
        print(f"{archive.name}: {archive.stat().st_size / 1e6:.1f} MB, installs and runs")


if __name__ == "__main__":
    main()
