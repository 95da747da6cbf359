"""The shell of pages: what is in it runs, what is in its data does not."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from browser import Visits

from anyorder.charts import page

HOSTILE = "</script><img src=x onerror=alert(1)>"
FIGURE = {"data": [{"type": "scatter", "y": [1, 3, 2]}], "layout": {"font": {"size": 12}}}
DRAW = "anyorder.draw(document.getElementById('chart'), anyorder.data().figure);"


def test_plotly_is_the_file_that_its_project_published() -> None:
    script = page.part("plotly.js")
    assert hashlib.sha256(script.encode("utf-8")).hexdigest() == page.PLOTLY_SHA256
    assert f"plotly.js (cartesian - minified) v{page.PLOTLY_VERSION}" in script[:200]


def test_a_page_allows_its_own_scripts_only_and_escapes_its_data() -> None:
    text = page.write_page(HOSTILE, "<p>body</p>", {"name": HOSTILE}, scripts=["const one = 1;"])
    assert HOSTILE not in text
    policy = re.search(r'Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "unsafe" not in policy[1]
    assert "http" not in policy[1]
    assert policy[1].startswith("default-src 'none'; ")
    assert policy[1].count("'sha256-") == 4  # style, Plotly, page.js, the page's own script


def test_charts_keep_what_is_sent_to_a_cloud_off() -> None:
    assert "&quot;showSendToCloud&quot;:false" in page.head("title", "")
    assert "&quot;displaylogo&quot;:false" in page.head("title", "")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_draws_in_the_colours_that_its_reader_prefers(
    visit: Visits, tmp_path: Path, scheme: str
) -> None:
    expect = pytest.importorskip("playwright.sync_api").expect
    file = tmp_path / "page.html"
    body = '<button id="theme"></button><div class="chart" id="chart"></div>'
    file.write_text(page.write_page("A & B", body, {"figure": FIGURE}, scripts=[DRAW]), "utf-8")
    opened = visit(file, scheme=scheme)
    opened.wait_for_selector("#chart .main-svg .trace")
    tick = opened.locator("#chart .xtick text").first
    light, dark = "rgb(34, 34, 34)", "rgb(216, 216, 216)"
    expect(tick).to_have_css("fill", {"light": light, "dark": dark}[scheme])
    opened.click("#theme")
    expect(tick).to_have_css("fill", {"light": dark, "dark": light}[scheme])
    assert opened.title() == "A & B"
