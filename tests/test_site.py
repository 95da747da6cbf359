"""The site: every public name has a page, every page a way to it, and its search finds them.

The slow tests build it, without running the gallery. They are skipped where Sphinx is not
installed, and fail where ANYORDER_SITE=require is set, as in the job of the documentation in CI.
"""

from __future__ import annotations

import functools
import http.server
import importlib
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag

import pytest

import anyorder as ao

if TYPE_CHECKING:
    from browser import Visits

TOOLS = ("sphinx", "myst_parser", "pydata_sphinx_theme", "sphinx_gallery", "numpydoc")
DOCS = Path(__file__).parent.parent / "docs"


def documented() -> set[str]:
    """The names that the lists of the API have, each with its module."""
    names: set[str] = set()
    for page in (DOCS / "api").glob("*.md"):
        module = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if found := re.fullmatch(r"\.\. currentmodule:: ([\w.]+)", line):
                module = found[1]
            elif found := re.fullmatch(r" {3}(\w+)", line):
                names.add(f"{module}.{found[1]}")
    return names


def public() -> set[str]:
    """What the package and the modules that it names have in `__all__`."""
    names = set()
    for name in set(ao.__all__) - {"__version__"}:
        value = getattr(ao, name)
        if isinstance(value, ModuleType):
            names |= {f"anyorder.{name}.{inner}" for inner in value.__all__}
        else:
            names.add(f"anyorder.{name}")
    return names - {"anyorder.policy.PolicySearch"}  # which is among the strategies


def test_every_public_name_is_in_the_api_and_no_other() -> None:
    outside = {name for name in documented() if name.startswith("anyorder.integrations.")}
    for name in outside:  # they require the other library
        path = "src/" + name.rpartition(".")[0].replace(".", "/") + ".py"
        assert name.rpartition(".")[2] in (DOCS.parent / path).read_text(encoding="utf-8")
    assert documented() - outside == public()


def test_every_page_has_one_way_to_it() -> None:
    ways = []
    for page in DOCS.rglob("*.md"):
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            lines = [line for line in tree.splitlines() if line and not line.startswith(":")]
            entries = [re.sub(r"^.*<(.*)>$", r"\1", line) for line in lines]
            ways += [(page.parent / entry).relative_to(DOCS).as_posix() for entry in entries]
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")}
    made = {"gallery/index"}
    assert sorted(set(ways)) == sorted(ways)
    assert set(ways) == pages - {"index"} | made


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with warnings as errors."""
    try:
        for module in TOOLS:
            importlib.import_module(module)
    except ImportError as error:
        if os.environ.get("ANYORDER_SITE") == "require":
            pytest.fail(f"ANYORDER_SITE=require, and {error}")
        pytest.skip(f"{error}; pip install 'anyorder[docs]'")
    place = tmp_path_factory.mktemp("site")
    command = [
        sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-D", "plot_gallery=0",
        "-d", str(place / "doctrees"), str(DOCS), str(place / "html"),
    ]  # fmt: skip
    built = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert built.returncode == 0, built.stderr
    return place / "html"


class Links(HTMLParser):
    """What a page points to, and what in it can be pointed to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.places: set[str] = {""}
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.places.add(value)
            elif name in ("href", "src") and value:
                self.targets.append(value)


@pytest.mark.slow
def test_links_lead_to_pages_and_places_that_are_there(site: Path) -> None:
    files = [file for file in sorted(site.rglob("*.html")) if "_static" not in file.parts]
    pages = {file: Links(file) for file in files}
    assert len(pages) > 100
    wrong = []
    for page, links in pages.items():
        for target in links.targets:
            if re.match(r"\w+:|//", target):
                continue
            path, place = urldefrag(target)
            file = (page.parent / unquote(path.partition("?")[0])).resolve() if path else page
            there = pages[file].places if file in pages else {""} if file.is_file() else set()
            if unquote(place) not in there:
                wrong.append(f"{page.relative_to(site)}: {target}")
    assert wrong == []


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    """Where the site is served."""
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("constraint", "constraints.html"),
        ("parallel", "running.html"),
        ("resume", "running.html"),
        ("categorical", "spaces.html"),
    ],
)
def test_search_finds_the_page_of_a_word(
    address: str, visit: Visits, query: str, wanted: str
) -> None:
    page = visit(f"{address}/search.html?q={query}")
    page.wait_for_function(
        "/found/.test(document.querySelector('#search-results .search-summary')?.innerText)"
    )
    found = page.eval_on_selector_all(
        "#search-results ul.search > li > a", "all => all.map(a => a.getAttribute('href'))"
    )
    assert wanted in {link.partition("#")[0] for link in found[:3]}, found[:10]


@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 1280])
def test_pages_fit_the_window(address: str, visit: Visits, width: int) -> None:
    for name in ("index", "start", "choosing", "coming", "results", "api/index", "gallery/index"):
        page = visit(f"{address}/{name}.html", width=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
