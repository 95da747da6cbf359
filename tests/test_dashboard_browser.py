"""The page of studies in a browser: live, as a file, with odd studies, by keyboard."""

from __future__ import annotations

import ast
import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from browser import Visits
from conftest import ctrl_c_is_heard
from dashboards import HOSTILE, MIXED, mixed, odd_studies, record, serving

import anyorder as ao
from anyorder.dashboard.pages import write_report

pytestmark = pytest.mark.slow
pytest.importorskip("starlette")
expect = pytest.importorskip("playwright.sync_api").expect

TRACE = "[data-figure=convergence] .main-svg .trace"
WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return odd_studies(tmp_path_factory.mktemp("studies"))


def facts(page: Any) -> dict[str, str]:
    rows = page.locator("[data-part=facts] tr").all()
    return {row.locator("th").inner_text(): row.locator("td").inner_text() for row in rows}


def test_the_page_follows_a_run(visit: Visits, tmp_path: Path) -> None:
    path = record(tmp_path / "run.db", MIXED, mixed, 20)
    with serving(path) as address:
        page = visit(address)
        page.locator(TRACE).first.wait_for()
        assert facts(page)["evaluations"] == "20 of 20"
        ao.maximize(mixed, MIXED, budget=50, study=path, algorithm="random", seed=0,
                    progress=False, on_failure="worst")  # fmt: skip
        page.locator("[data-part=facts]").get_by_text("50 of 50").wait_for()
        path.unlink()
        page.locator("[data-figure=convergence]").get_by_text("there is no study").wait_for()
        visit.close()  # before the server ends


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_fits_its_window_in_light_and_dark(
    visit: Visits, studies: dict[str, Path], tmp_path: Path, width: int, scheme: str
) -> None:
    out = tmp_path / "run.html"
    write_report([studies["mixed"]], out)
    page = visit(out, width=width, scheme=scheme)
    page.locator(TRACE).first.wait_for()
    assert not page.evaluate(WIDE)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 24, 28)"}[scheme]
    for name in ("over", "against", "importance", "workers", "parallel"):
        place = page.locator(f"[data-part={name}] .chart")
        place.scroll_into_view_if_needed()
        place.locator(".main-svg").first.wait_for()


def test_odd_studies_are_shown(visit: Visits, studies: dict[str, Path], tmp_path: Path) -> None:
    with serving(studies["mixed"].parent) as address:
        for path in studies.values():
            page = visit(f"{address}#study={path.name}")
            page.locator("[data-part=points] :is(tbody tr, .note)").first.wait_for()
            assert "cannot be shown" not in page.locator("main").inner_text()
        visit.close()  # before the server ends


def test_hostile_names_are_text(visit: Visits, studies: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "hostile.html"
    write_report([studies["hostile"]], out, title=HOSTILE[0])
    page = visit(out)
    page.on("dialog", lambda dialog: visit.wrong.append(f"dialog: {dialog.message}"))
    page.locator("[data-part=points] tbody tr").first.wait_for()
    assert page.locator("h1").inner_text() == HOSTILE[0]
    for place in page.locator(".panels:visible").all():
        place.scroll_into_view_if_needed()
    page.wait_for_timeout(500)
    assert page.locator("main img, main a, main svg a").count() == 0
    heads = page.locator("[data-part=points] thead th").all_inner_texts()
    assert HOSTILE[0] in heads
    assert HOSTILE[1] in heads


def test_points_are_filtered_sorted_and_copied(
    visit: Visits, studies: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "run.html"
    write_report([studies["mixed"]], out)
    page = visit(out, permissions=["clipboard-read", "clipboard-write"])
    rows = page.locator("[data-part=points] tbody tr")
    rows.first.wait_for()
    whole = rows.count()
    page.fill("[data-part=points] input", "depth >= 5, algo = a")
    some = rows.count()
    assert 0 < some < whole

    def cells(name: str) -> list[str]:
        heads = page.locator("[data-part=points] thead th").all_inner_texts()
        at = [re.sub(r"\W+$", "", head) for head in heads].index(name)
        return [row.locator("td").nth(at).inner_text() for row in rows.all()]

    assert set(cells("algo")) == {"a"}
    assert min(map(int, cells("depth"))) >= 5
    page.locator("[data-part=points] thead button", has_text="depth").click()
    assert cells("depth") == sorted(cells("depth"), key=int)
    page.locator("[data-part=points] thead button", has_text="depth").click()
    assert cells("depth") == sorted(cells("depth"), key=int, reverse=True)

    def copied(form: str) -> str:
        page.get_by_role("button", name=f"Copy {form}").click()
        page.get_by_text(f"{some} points copied as {form}").wait_for()
        return str(page.evaluate("navigator.clipboard.readText()"))

    points = json.loads(copied("JSON"))
    assert points == ast.literal_eval(copied("Python"))
    assert [point["depth"] for point in points] == [*map(int, cells("depth"))]
    assert all("tree" not in point for point in points)
    lines = copied("CSV").splitlines()
    assert lines[0] == "algo,depth,tree,sub,order,value,candidate,seconds"
    assert len(lines) == some + 1


def test_ranges_are_chosen_by_dragging(
    visit: Visits, studies: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "run.html"
    write_report([studies["mixed"]], out)
    page = visit(out)
    chart = page.locator("[data-part=parallel] .chart")
    chart.scroll_into_view_if_needed()
    chart.locator(".main-svg").first.wait_for()
    rows = page.locator("[data-part=points] tbody tr")
    whole = rows.count()
    box = chart.locator(".nsewdrag").first.bounding_box()
    assert box is not None
    # the axis of `depth` is the second: from above its middle to its upper end
    axes = page.locator("[data-part=parallel] .xtick text").count()
    across = box["x"] + box["width"] * (1 + 0.4) / (axes - 1 + 0.8)
    page.mouse.move(across - 12, box["y"] + box["height"] * 0.4)
    page.mouse.down()
    page.mouse.move(across + 12, box["y"] + box["height"] * 0.02, steps=5)
    page.mouse.up()
    expect(rows).not_to_have_count(whole)
    kept = [row.locator("td").nth(5).inner_text() for row in rows.all()]
    assert kept
    assert min(map(int, kept)) >= 5
    page.mouse.dblclick(across + 40, box["y"] + box["height"] * 0.5)
    expect(rows).to_have_count(whole)


def test_the_page_is_used_by_keyboard(visit: Visits, studies: dict[str, Path]) -> None:
    with serving(studies["mixed"].parent) as address:
        page = visit(f"{address}#study=mixed.db")
        page.locator("#studies input").first.wait_for()
        page.locator("[data-part=points] tbody tr").first.wait_for()
        reached: set[str] = set()
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.add(page.evaluate(
                "(({tagName, id, textContent}) => id || tagName + ' ' + textContent.slice(0, 12))"
                "(document.activeElement)"
            ))  # fmt: skip
        assert {"theme", "variable"} <= reached
        assert {"SUMMARY Which intera", "BUTTON Copy Python"} <= reached
        page.locator("#variable").focus()
        page.keyboard.press("End")
        page.keyboard.press("Tab")
        page.wait_for_url("**variable=4*")
        box = page.locator("#studies input[value='one.db']")
        box.focus()
        page.keyboard.press("Space")
        expect(page.locator("[data-part=facts] h3")).to_have_count(2)
        assert page.evaluate("document.activeElement.value") == "one.db"
        visit.close()


def test_the_page_says_when_its_server_is_gone(visit: Visits, studies: dict[str, Path]) -> None:
    with serving(studies["mixed"]) as address:
        page = visit(address)
        page.locator(TRACE).first.wait_for()
    page.get_by_text("The server does not answer").wait_for()
    assert facts(page)["evaluations"] == "60 of 60"
    visit.wrong.clear()  # the browser notes the connections that were refused


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGINT for others")
def test_ctrl_c_ends_the_server_and_nothing_else(visit: Visits, studies: dict[str, Path]) -> None:
    command = [sys.executable, "-m", "anyorder", "dashboard", str(studies["mixed"]), "--port", "0"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with (
        ctrl_c_is_heard(),
        subprocess.Popen([*command, "--no-browser"], **pipes) as server,
    ):
        assert server.stdout is not None
        line = server.stdout.readline()
        page = visit("http://" + line.split("http://")[1].split()[0])
        page.locator(TRACE).first.wait_for()
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0
        assert server.stdout.read() == ""
        visit.close()
        visit.wrong.clear()  # the browser notes the connection that ended


def test_a_page_of_a_copied_study_needs_a_token(visit: Visits, tmp_path: Path) -> None:
    path = tmp_path / "copy.db"
    shutil.copy(record(tmp_path / "run.db", MIXED, mixed, 20), path)
    with serving(path, "--token", "s3cret") as address:
        assert "?token=s3cret" in address
        page = visit(address)
        page.locator(TRACE).first.wait_for()
        assert "token" not in page.url
        other = visit(address.partition("?")[0])
        assert "token" in other.locator("body").inner_text()
        visit.close()
        visit.wrong.clear()  # 401
