"""The tree is the architecture: no import cycles, and nothing imports what is above it."""

from __future__ import annotations

import ast
import functools
from graphlib import TopologicalSorter
from pathlib import Path

import anyorder

PACKAGE = Path(anyorder.__file__).parent
# From the bottom to the top: a part imports from its own layer and from those below.
LAYERS = (
    {"_version", "_checks", "errors"},
    {"_sqlite", "space"},
    {"archive", "candidate", "history", "knowledge", "toml_file"},
    {"strategies", "problems"},
    {
        "testing",
        "plotting",
        "optimizer",
        "optimizer_state",
        "feasibility",
        "effects",
        "moves",
        "samples",
    },
    {"result"},
    {"session"},
    {"optimize", "many", "program"},
    {"baselines", "bench"},
    {"cli", "__main__"},
)


def modules() -> dict[str, Path]:
    """All modules by their names without the package's."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, names: set[str]) -> set[str]:
    """What a module imports, in functions as well; not what it imports for its types only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "anyorder":
            assert node.level == 0, f"{path}: imports are absolute"
            base = (node.module or "").partition(".")[2]
            for alias in node.names:
                full = f"{base}.{alias.name}".strip(".")
                found.add(full if full in names else base)
    return found - {""}


@functools.cache
def imports_of_all() -> dict[str, set[str]]:
    names = modules()
    return {name: imports(path, set(names)) for name, path in names.items() if name}


def test_there_are_no_import_cycles() -> None:
    graph = {name: others - {name} for name, others in imports_of_all().items()}
    list(TopologicalSorter(graph).static_order())  # CycleError names a cycle


def test_nothing_imports_what_is_above_it() -> None:
    height = {part: k for k, layer in enumerate(LAYERS) for part in layer}
    for name, others in imports_of_all().items():
        here = height[name.split(".")[0]]
        for other in others:
            there = height[other.split(".")[0]]
            assert there <= here, f"{name} imports {other}, which is above it"


def test_files_stay_readable() -> None:
    """Files of more than 400 lines are those that a compiler wants in one piece."""
    long = {
        name for name, path in modules().items()
        if len(path.read_text(encoding="utf-8").splitlines()) > 410
    }  # fmt: skip
    assert long == {"strategies.policy.engines.kernels"}
