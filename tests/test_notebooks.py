"""What notebooks show: summaries, tables and pictures, escaped and without scripts."""

from __future__ import annotations

import builtins
import contextlib
import html.parser
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anyorder as ao
from anyorder.bench import results, tables
from anyorder.run.progress import NoBar, progress_bar

EVIL = "<img src=x onerror=alert(1)>"
SPACE = ao.Space(
    {
        EVIL: ao.Categorical(["</td><script>", "b"]),
        "depth": ao.Integer(1, 8),
        "tree": ao.Integer(1, 3, when={"depth": 1}),
    }
)


class Reader(html.parser.HTMLParser):
    """Tags and texts of a piece of HTML, which must be closed in the order of opening."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.sources: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not any(name.startswith("on") for name, _ in attrs)
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


ALLOWED = {"div", "p", "strong", "table", "tr", "th", "td", "img"}


def read(shown: Any) -> Reader:
    page = Reader(shown._repr_html_())
    assert page.tags <= ALLOWED
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)
    return page


@pytest.fixture(scope="module")
def result() -> ao.Result:
    def f(point: dict[str, Any]) -> float:
        if point["depth"] == 7:
            raise RuntimeError(EVIL)
        return float(point["depth"])

    options: dict[str, Any] = {"on_failure": "worst", "progress": False}
    return ao.maximize(f, SPACE, budget=20, seed=0, algorithm="random", **options)


def test_a_result_shows_its_best_point_and_its_convergence(result: ao.Result) -> None:
    page = read(result)
    assert {"best value 8", EVIL, "depth", "8", "budget", "random"} <= set(page.texts)
    assert len(page.sources) == 1


def test_a_result_without_matplotlib_says_what_to_install(
    result: ao.Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    original = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == "matplotlib":
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = read(result)
    assert not page.sources
    assert any("anyorder[plot]" in text for text in page.texts)


def test_a_result_without_a_value_says_so() -> None:
    failed = ao.maximize(
        lambda x: 1 / 0, ao.Space.binary(4), 5, seed=0, algorithm="random", on_failure="worst",
        progress=False,
    )  # fmt: skip
    assert "no evaluation gave a value" in read(failed).texts


def test_a_long_vector_is_one_row() -> None:
    found = ao.maximize(
        lambda x: float(x.sum()), ao.Space.binary(500), 5, seed=0, algorithm="random",
        progress=False,
    )  # fmt: skip
    assert len(found._repr_html_()) < 200_000
    assert len(read(found).texts) < 40


def test_a_space_has_a_row_for_each_variable_and_one_for_equal_ones() -> None:
    page = read(SPACE)
    assert {EVIL, "depth", "Integer", "3 variables, 20 points"} <= set(page.texts)
    assert "128 times" in read(ao.Space.binary(128)).texts
    assert "60 variables" in read(ao.Space({f"x{k}": ao.Binary() for k in range(60)})).texts


def test_a_history_shows_its_ends_and_what_is_absent(result: ao.Result) -> None:
    page = read(result.history)
    assert f"{len(result.history)} entries" in page.texts
    absent = [point for point in result.history.points[:5] if "tree" not in point]
    assert page.texts.count("\N{EN DASH}") >= len(absent) > 0
    assert "..." in page.texts


def test_runs_show_each_run_and_the_mean_curve() -> None:
    runs = ao.policy.solve_many(
        ao.problems.onemax(8), runs=12, budget=20, grid=[10, 20], config="paper",
        engine="reference", progress=False,
    )  # fmt: skip
    page = read(runs)
    assert "and 2 more" in page.texts
    assert len(page.sources) == 1


def test_campaign_tables_show_the_best_in_bold_and_escape_names() -> None:
    grid, two = np.array([10]), np.arange(2)
    cells = {
        ("row", label): results.Cell(grid, np.array([[low], [low + 1]]), two, two, np.ones(2))
        for label, low in (("A & B", 1.0), (EVIL, 3.0))
    }
    found = results.Results("a <b>", ("A & B", EVIL), ("row",), cells)
    page = read(tables.table(found))
    assert {"A & B", EVIL, "a <b>: mean best value at the end"} <= set(page.texts)
    assert read(tables.measures(found, "area")).tags == {
        "div",
        "p",
        "strong",
        "table",
        "tr",
        "th",
        "td",
    }


def test_a_figure_is_a_picture_in_a_notebook(result: ao.Result) -> None:
    assert result.plot()._repr_png_().startswith(b"\x89PNG")
    assert ao.plotting.convergence({"a": result})._repr_png_().startswith(b"\x89PNG")


def test_the_bar_appears_by_itself_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(progress_bar(10, None), NoBar)  # tests have no terminal
    shell = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=None))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    with contextlib.closing(progress_bar(10, None)) as bar:
        assert not isinstance(bar, NoBar)
    terminal = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython", terminal)
    assert isinstance(progress_bar(10, None), NoBar)  # IPython in a pipe


NOTEBOOKS = sorted((Path(__file__).parent.parent / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_the_notebooks_of_the_documentation_run(path: Path, tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code)  # kept without outputs
    if "import optuna" in "".join(cell.source for cell in code):
        pytest.importorskip("optuna")
    place = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=200, kernel_name="python3", resources=place).execute()
    shown = [output.get("data", {}) for cell in code for output in cell.outputs]
    results = [data["text/html"] for data in shown if "<Result:" in data.get("text/plain", "")]
    assert results
    assert all("data:image/png;base64," in text for text in results)


def test_there_are_notebooks_to_run() -> None:
    assert {path.name for path in NOTEBOOKS} == {"coming_from_optuna.ipynb", "five_minutes.ipynb"}
