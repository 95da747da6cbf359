"""The tree is the architecture: no import cycles, and nothing imports what is above it."""

from __future__ import annotations

import ast
import functools
import importlib
import re
from graphlib import TopologicalSorter
from pathlib import Path

import anyorder

PACKAGE = Path(anyorder.__file__).parent
ROOT = Path(__file__).parent.parent
# From the bottom to the top: a part imports from its own layer and from those below.
LAYERS = (
    {"_version", "_internal", "errors"},
    {"space"},
    {"archive"},
    {"strategies", "problems"},
    {"constraints", "testing", "plotting", "charts"},
    {"proposer"},
    {"optimizer", "_optimizer_state"},
    {"result"},
    {"run"},
    {"optimize", "policy", "program", "integrations"},
    {"bench", "dashboard"},
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


# What named tuples and `os` call so themselves.
NO_SECRETS = {"_fields", "_replace", "_exit"}
# Parts whose modules know each other's insides, or those of another library.
INTIMATE = {"bench", "integrations", "problems", "space", "strategies"}


def test_no_module_reaches_into_the_objects_of_another() -> None:
    for name, path in modules().items():
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        accesses = [
            (ast.unparse(node.value).rpartition(".")[2], node.attr) for node in nodes
            if isinstance(node, ast.Attribute) and re.fullmatch(r"_[a-z]\w*(?<!_)", node.attr)
        ]  # fmt: skip
        own = NO_SECRETS | {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        own |= {inner for owner, inner in accesses if owner in ("self", "cls")}
        for owner, inner in accesses:
            if owner.lower().strip("_") in {"optimizer", "proposer"} - {name}:
                raise AssertionError(f"{name}: {owner}.{inner}")
            assert inner in own or name.split(".")[0] in INTIMATE, f"{name}: {owner}.{inner}"


def test_files_stay_readable() -> None:
    """Longer files are those that a compiler wants in one piece; others split at an interface."""
    long = {
        name for name, path in modules().items()
        if len(path.read_text(encoding="utf-8").splitlines()) > 600
    }  # fmt: skip
    assert long == {"strategies.policy.engines.kernels"}


def tree() -> list[str]:
    """The paths in the tree of docs/design.md, folders with a slash at their ends."""
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    block = page.partition("## The tree\n```\n")[2].partition("```")[0]
    found: list[str] = []
    above: list[str] = []
    for line in block.splitlines()[1:]:
        indent, name = re.match(r"( *)(\S+)", line).groups()  # type: ignore[union-attr]
        depth = len(indent) // 2 - 1
        if depth > len(above) or not re.fullmatch(r"\w+(/|\.py)", name):
            continue  # the second line of a description
        above[depth:] = [name]
        found.append("".join(above))
    return found


def test_the_tree_of_the_design_page_is_that_of_the_package() -> None:
    listed = tree()
    assert len(set(listed)) == len(listed)
    folders = {f"{file.parent.relative_to(PACKAGE)}/" for file in PACKAGE.rglob("__init__.py")}
    files = {path.name for path in PACKAGE.glob("[a-z]*.py")}
    assert set(listed) == (folders - {"./"}) | files


# --- what is public -------------------------------------------------------------------------------

# The modules that users import from, beside the package itself; what is in their `__all__` counts.
PUBLIC = ("plotting", "policy", "problems", "program", "strategies", "testing")
# Those of other libraries, which are not imported here: a library may be missing.
ADAPTERS = {
    "integrations.ioh": {"Algorithm"},
    "integrations.nevergrad": {"AnyOrder", "AnyOrderILS", "AnyOrderOptimizer", "AnyOrderPolicy"},
    "integrations.optuna": {"AnyOrderSampler"},
    "integrations.ray": {"AnyOrderSearch"},
    "integrations.sklearn": {"AnyOrderSearchCV", "AnyOrderSelector"},
}


def test_the_public_names_are_there_and_nothing_else_shows() -> None:
    assert dir(anyorder) == sorted(anyorder.__all__)
    assert set(PUBLIC) < set(anyorder.__all__)
    for name in anyorder.__all__:
        assert hasattr(anyorder, name), name
    for part in PUBLIC:
        module = importlib.import_module(f"anyorder.{part}")
        assert getattr(anyorder, part) is module
        for name in module.__all__:
            assert hasattr(module, name), f"{part}.{name}"


def documents() -> dict[str, str]:
    """The pages and the examples, as text."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").rglob("*.py")]
    return {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in pages}


def test_pages_and_examples_use_public_names_only() -> None:
    for page, text in documents().items():
        for name, _, inner in re.findall(r"\bao\.(\w+)(\.(\w+))?", text):
            assert name in anyorder.__all__, f"{page}: ao.{name}"
            if name in PUBLIC and inner:
                module = importlib.import_module(f"anyorder.{name}")
                assert inner in module.__all__, f"{page}: ao.{name}.{inner}"
        imports = r"^from anyorder(\.[\w.]+)? import ([\w, ]+?)(?:  #.*)?$"
        for module, names in re.findall(imports, text, re.M):
            public = ADAPTERS.get(module[1:])
            if public is None:
                assert module[1:] in ("", *PUBLIC), f"{page}: anyorder{module}"
                public = set(importlib.import_module(f"anyorder{module}").__all__)
            assert set(re.split(", *", names)) <= public, f"{page}: {names}"


def test_adapters_have_their_public_names() -> None:
    for name, public in ADAPTERS.items():
        text = modules()[name].read_text(encoding="utf-8")
        defined = set(re.findall(r"^(?:class (\w+)|(\w+) = )", text, re.M))
        assert public <= {one or other for one, other in defined}, name


def test_no_module_but_its_own_knows_the_policy() -> None:
    """What a session needs to know of a strategy is in the protocol."""
    own = ("strategies.policy", "policy", "bench", "strategies.registry", "strategies")
    for name, path in modules().items():
        if name in own or name.startswith(("strategies.policy.", "policy.", "bench.")):
            continue
        text = path.read_text(encoding="utf-8")
        assert "PolicySearch)" not in text, name
        assert not re.search('[!=]= "policy"', text), name
