"""What the pages of the default say is what its code says."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import anyorder as ao
from anyorder.strategies import AutoSearch, GPSearch
from anyorder.strategies.base import Search

ROOT = Path(__file__).parent.parent


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script that writes the tables of the documentation."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import default_tables

    return default_tables


def test_tables_in_the_documentation_are_those_that_the_script_writes(tables: Any) -> None:
    for name in ("worth", "constants", "choice", "small budgets"):  # others read many runs
        page = (ROOT / "docs" / tables.PAGES[name]).read_text(encoding="utf-8")
        assert tables.put(page, name, tables.WRITERS[name]()) == page


def test_every_constant_has_a_reason_and_no_name_has_two_values(tables: Any) -> None:
    values: dict[str, set[str]] = defaultdict(set)
    for constant in tables.constants():
        assert constant.reason, constant
        values[constant.name].add(constant.value)
    assert len(values) > 100
    assert {name: found for name, found in values.items() if len(found) > 1} == {}


def test_what_the_ablation_replaces_is_there(tables: Any) -> None:
    from unittest import mock

    operators = {name for name in tables.VARIANTS if name.startswith("no ")}
    for operator in AutoSearch.operators:
        assert f"no {operator.name}" in operators
    for variant in tables.VARIANTS.values():
        assert set(variant.groups) <= set(tables.GROUPS)
        for change in variant.changes:
            with mock.patch.object(*change):  # an AttributeError if it is not there
                pass


def test_every_operator_has_a_line_in_the_documentation() -> None:
    page = (ROOT / "docs" / "default.md").read_text(encoding="utf-8")
    for operator in AutoSearch.operators:
        name = operator.name.removeprefix("list ")
        assert f"{name}" in page
        assert f"{operator.prior:g}".lstrip("0") in page


@pytest.mark.parametrize("maker", [AutoSearch, GPSearch])
def test_classes_are_small_and_shallow(maker: Any) -> None:
    """At most twenty attributes of its own, and two levels above what all strategies are."""
    space = ao.Space({"x": ao.Binary(), "y": ao.Integer(1, 5), "z": ao.Subset(["a", "b", "c"])})
    seen: list[Any] = []

    def visit(found: Any) -> None:
        if isinstance(found, dict):
            for value in found.values():
                visit(value)
        folder = type(found).__module__.removeprefix("anyorder.strategies.").partition(".")[0]
        if folder in ("auto", "models", "gp") and not any(found is one for one in seen):
            seen.append(found)
            for value in vars(found).values() if hasattr(found, "__dict__") else ():
                visit(value)

    common = vars(ao.strategies.RandomSearch(space, 0)).keys()
    visit(maker(space, 0))
    for found in seen:
        if hasattr(found, "__dict__"):
            own = vars(found).keys() - (common if isinstance(found, Search) else set())
            assert len(own) <= 20, (type(found), sorted(own))
        bases = [b for b in type(found).__mro__ if b.__module__.startswith("anyorder.strategies")]
        assert len(bases) <= 3, bases
    assert len(seen) > 5


def test_rows_of_another_machine_are_merged_once(tables: Any, tmp_path: Path) -> None:
    del tables  # which makes the scripts importable
    import merge

    lines = ["problem,seed,variant,evaluations,best", "a,0,auto,25,1.0", "a,1,auto,25,2.0"]
    one, other = tmp_path / "one.csv", tmp_path / "other.csv.gz"
    one.write_text("\n".join(lines[:2]) + "\n", encoding="utf-8")
    with merge.opened(other, "w") as file:
        file.write("\n".join([lines[0], "a,0,auto,25,9.0", lines[2]]) + "\n")
    for added in (1, 0):
        assert merge.merge(one, [other]) == added
    assert one.read_text(encoding="utf-8").splitlines() == lines
    other.with_suffix("").write_text("problem,best\na,1\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="has the columns"):
        merge.merge(one, [other.with_suffix("")])
