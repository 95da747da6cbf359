"""The page of a campaign: what it holds, and that it works in a browser."""

from __future__ import annotations

import html
import json
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import refused
from test_bench_stats import cell, results

from anyorder.bench import report, stats, tables, typeset
from anyorder.bench.results import Results
from anyorder.bench.store import Finished, Spec, Store
from anyorder.cli.bench import bench

GRID = list(range(100, 2001, 100))
NASTY = [
    "</script><script>document.title='broken'</script>",
    "a & \"b\" 'c' <b>$x ${y}",
    "σ\u2028\\",
]


def made(seed: int = 0, runs: int = 12) -> Results:
    """Three distributions, four algorithms with labels of all kinds; one cell is not there."""
    rng = np.random.default_rng(seed)
    cells = {}
    for d, (label, scale) in enumerate({"NK 64": 0.7, NASTY[1]: 1e3, "QUBO": 40.0}.items()):
        for a, algorithm in enumerate(["anyorder", NASTY[0], "(1+1) EA", NASTY[2]]):
            if (d, a) == (1, 3):
                continue
            ends = scale * (1 - 0.02 * ((a + d) % 4) + 0.005 * rng.normal(size=(runs, 1)))
            rise = 1 - 0.3 * np.exp(-np.array(GRID) / rng.uniform(200, 900))
            cells[label, algorithm] = cell(GRID, ends * rise)
    failed = {("QUBO", "(1+1) EA"): {"TimeoutError": 2}, (NASTY[1], NASTY[2]): {"<MemoryError>": 7}}
    return results(cells, 'a <campaign> & "more"', failed)


SOME = made()


def short(label: str, most: int = 40) -> str:
    half = most // 2
    return label if len(label) <= most else f"{label[:half]}…{label[half + 1 - most :]}"


def decoded(steps: list[int | None], decimals: int = 0) -> np.ndarray:
    values = np.array([np.nan if s is None else s for s in steps])
    summed = np.nancumsum(values) * 10.0**-decimals
    return np.where(np.isnan(values), np.nan, summed)


def test_data_is_what_was_measured():
    found = json.loads(json.dumps(report.data(SOME)))
    labels = [item["label"] for item in found["algorithms"]]
    assert tuple(labels) == SOME.algorithms
    _, shares = stats.ecdf(SOME)
    seen = {label: [] for label in labels}
    for d, row in enumerate(found["distributions"]):
        assert decoded(row["grid"]).tolist() == GRID
        for g in (0, 7, 19):
            expected = stats.rank_table(SOME, GRID[g])[d]
            ranks = [np.nan if c is None else c["rank"][g] / 2 for c in row["cells"]]
            assert np.array_equal(ranks, expected, equal_nan=True)
        for label, entry in zip(labels, row["cells"], strict=True):
            if entry is None:
                assert (row["label"], label) not in SOME.cells
                continue
            curves = SOME.cells[row["label"], label].curves
            unit = 100 * 10.0 ** -row["decimals"]  # of intervals; means are finer
            mean = decoded(entry["mean"], row["decimals"])
            assert mean == pytest.approx(curves.mean(axis=0), abs=0.0051 * unit)
            assert unit < 1e-4 * abs(mean).max()
            low, high = stats.interval(curves)
            assert mean - unit * np.array(entry["below"]) == pytest.approx(low, abs=1.01 * unit)
            assert mean + unit * np.array(entry["above"]) == pytest.approx(high, abs=1.01 * unit)
            assert entry["sd"] == pytest.approx(curves.std(axis=0, ddof=1), rel=1e-3)
            seen[label].append(decoded(entry["share"]) / 1e4)
    for label, share in shares.items():
        assert np.mean(seen[label], axis=0) == pytest.approx(share, abs=1e-4)


def test_one_file_that_asks_for_nothing(tmp_path):
    report.write(SOME, tmp_path / "a.html", notes=["One <b>note</b>."], versions={"numpy": "2"})
    report.write(SOME, tmp_path / "b.html", notes=["One <b>note</b>."], versions={"numpy": "2"})
    page = (tmp_path / "a.html").read_text("utf-8")
    assert (tmp_path / "b.html").read_text("utf-8") == page
    assert "default-src 'none'" in page
    assert set(re.findall(r"https?://[^\"'\s]+", page)) == {"http://www.w3.org/2000/svg"}
    assert "<h1>a &lt;campaign&gt; &amp; &quot;more&quot;</h1>" in page
    assert "<p>One &lt;b&gt;note&lt;/b&gt;.</p>" in page
    assert page.count("</script>") == 2  # none of them from a label
    assert "4 algorithms; 3 distributions; 2,000 evaluations a run" in page
    assert "<td>numpy</td><td>2</td>" in page
    assert "9 more failed" in page
    assert "<td>(1+1) EA</td><td>QUBO</td><td>TimeoutError</td><td>2</td>" in page
    assert "<td>&lt;MemoryError&gt;</td><td>7</td>" in page  # where no run has finished


def test_table_without_javascript(tmp_path):
    report.write(SOME, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    body = page[page.index('<table id="scores">') : page.index("</tfoot>")]
    rows = [
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall("<tr>.*?</tr>", body)
    ]
    assert [html.unescape(label) for label in rows[0]] == ["distribution", *SOME.algorithms]
    wanted = tables.table(SOME, spread="interval")
    for row, label, entries in zip(rows[1:], wanted.rows, wanted.entries, strict=False):
        assert html.unescape(row[0]) == label
        form = typeset.form([e.summary.mean for e in entries if e])
        for text, entry in zip(row[1:], entries, strict=True):
            if entry is None:
                assert text == "-"
                continue
            assert ("<b>" in text) is entry.best
            assert ("*" in text) is entry.star
            shown = re.sub("<[^>]*>", "", text).split()
            assert shown[0].rstrip("*") == form(entry.summary.mean)
            assert shown[1] == f"{entry.rank:g}/{entry.of}"
    assert rows[-2][1:] == [f"{r:.2f}" for r in wanted.mean_ranks]
    assert rows[-1][1:] == [str(w) for w in wanted.wins]


def test_measures_without_javascript(tmp_path):
    report.write(SOME, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    found = re.findall(r'<table class="measure">(.*?)</table>', page, re.DOTALL)
    assert len(found) == len(tables.MEASURES)
    for text, name in zip(found, tables.MEASURES, strict=True):
        made = tables.measures(SOME, name)
        rows = re.findall("<tr data-distribution.*?</tr>", text)
        assert len(rows) == len(made.rows)
        for d, row in enumerate(rows):
            label, *cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)
            assert html.unescape(label) == made.label(d)
            assert ["<b>" in c for c in cells] == [made.is_best(d, v) for v in made.values[d]]
            shown = [re.sub("<[^>]*>", "", c).split()[0] for c in cells]
            assert shown == [made.text(v) for v in made.values[d]]
        assert html.escape(made.notes[0]) in page
    assert "<h3>P-values against anyorder at the end</h3>" in page


def test_ours_are_told_by_the_results():
    found = report.data(replace(SOME, ours=frozenset({"(1+1) EA"})))
    assert [item["ours"] for item in found["algorithms"]] == [False, False, True, False]


def test_large_page_is_small(tmp_path):
    rng = np.random.default_rng(1)
    grid = list(range(100, 10_001, 100))
    rise = np.log(np.array(grid))
    cells = {
        (f"d{d}", f"a{a}"): cell(grid, rise * rng.uniform(5, 500) + rng.normal(size=(5, 1)))
        for d in range(6)
        for a in range(15)
    }
    report.write(results(cells), tmp_path / "page.html")
    # of 42 distributions: 3 MB; the scripts and styles are there once
    assert (tmp_path / "page.html").stat().st_size < 3e6 / 7 + 60_000


def test_refused(tmp_path):
    with refused(ValueError, "none has no finished runs", "expected some"):
        report.write(Results("none", ("a",), ("d",), {}), tmp_path / "page.html")
    with refused(ValueError, "notes is 'one'", "a list of sentences"):
        report.write(SOME, tmp_path / "page.html", notes="one")


# --- through a file of runs ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "runs.db"
    specs = [
        Spec(algorithm, algorithm, f"nk:n=16,k={k}", f"nk:n=16,k={k},seed={seed % 2}",
             seed % 2, seed, 100, (10, 50, 100))
        for k in (1, 2) for algorithm in ("anyorder", "ea, plain", "RLS") for seed in range(4)
    ]  # fmt: skip
    with Store(path) as store:
        store.request("small", specs)
        for spec in store.claim(len(specs)):
            curve = np.array([0.1, 0.5, 0.6]) + 0.01 * len(spec.algorithm) + 0.001 * spec.seed
            versions = {"anyorder": "0.1", "numpy": "2"}
            done = Finished(curve, curve[-1], [0] * 16, 100, 0.5, {}, versions)
            assert store.finish((spec, done))
    return path


def ran(*arguments: object, code: int = 0) -> str:
    found = CliRunner().invoke(bench, [str(argument) for argument in arguments])
    assert found.exit_code == code, found.output
    return found.output


def test_report_command(runs, tmp_path):
    out = tmp_path / "page.html"
    ran("report", runs, "-o", out, "--title", "A <title>", "--note", "Made up.")
    page = out.read_text("utf-8")
    assert "<title>A &lt;title&gt;</title>" in page
    assert "<p>Made up.</p>" in page
    assert "<td>anyorder</td><td>0.1</td>" in page
    ran("report", runs, "-o", out, "--algorithms", "RLS, ea, plain,anyorder")
    labels = json.loads(re.search(r'id="data">(.*?)</script>', out.read_text("utf-8"))[1])
    assert [a["label"] for a in labels["algorithms"]] == ["RLS", "ea, plain", "anyorder"]
    said = ran("report", runs, "-o", out, "--algorithms", "RLS,tabu", code=2)
    assert "'tabu' is not in small" in said
    assert "there is no such folder" in ran("report", runs, "-o", tmp_path / "no/x.html", code=2)


@pytest.mark.parametrize("form", ["text", "markdown", "csv", "latex"])
def test_table_command(runs, tmp_path, form):
    with Store(runs, existing=True) as store:
        found = store.results()
    expected = getattr(tables.table(found, 50, spread="sd"), f"to_{form}")()
    options = ["--at", 50, "--spread", "sd", "--format", form]
    assert ran("table", runs, *options) == expected
    ran("table", runs, *options, "-o", tmp_path / "t")
    assert (tmp_path / "t").read_text("utf-8") == expected
    assert "nk:n=16,k=2" not in ran("table", runs, "--distributions", "nk:n=16,k=1", *options)
    said = ran("table", runs, "--at", 51, code=2)
    assert "evaluations is 51" in said
    assert "'anyorder' on 'nk:n=16,k=1'" in said
    for show in tables.MEASURES:
        expected = getattr(tables.measures(found, show), f"to_{form}")()
        assert ran("table", runs, "--show", show, "--format", form) == expected


def test_table_command_refuses(runs):
    assert "algorithms is ()" in ran("table", runs, "--algorithms", "", code=2)
    assert "'RLS' once" in ran("table", runs, "--algorithms", "RLS,RLS", code=2)
    said = ran("table", runs, "--show", "area", "--spread", "sd", code=2)
    assert "--spread goes with means" in said
    said = ran("table", runs, "--show", "running-time", "--at", 50, code=2)
    assert "evaluations is 50, expected none" in said


def test_failures_and_ours_through_a_file(tmp_path):
    specs = [
        Spec(label, method, "D", "onemax:n=4", 0, seed, 10, (10,))
        for label, method in (("mine", "anyorder:text+beta=2"), ("theirs", "baseline:rls"))
        for seed in range(2)
    ]
    with Store(tmp_path / "runs.db") as store:
        store.request("before", [Spec("old", "anyorder", "D", "onemax:n=4", 0, 0, 10, (10,))])
        store.fail(*((spec, "no longer asked for") for spec in store.claim(1)))
        store.request("small", specs)
        for spec in store.claim(4):
            if spec.algorithm == "mine":
                store.fail((spec, "ValueError: no"))
            else:
                store.finish((spec, Finished(np.array([3.0]), 3.0, [0] * 4, 10, 0.5, {}, {})))
        found = store.results()
    assert found.failed == {("D", "mine"): {"ValueError: no": 2}}
    assert found.ours == {"mine"}
    assert "2 of mine on D: ValueError: no." in ran("table", tmp_path / "runs.db")
    ran("report", tmp_path / "runs.db", "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "2 more failed" in page
    assert "<td>mine</td><td>D</td><td>ValueError: no</td><td>2</td>" in page


@pytest.mark.parametrize("kind", ["convergence", "ranks", "ecdf", "critical"])
def test_figure_command(runs, tmp_path, kind):
    ran("figure", runs, kind, "-o", tmp_path / "f.png", "--dark")
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")


def test_figure_command_refuses(runs, tmp_path):
    assert "--at is 50" in ran("figure", runs, "ecdf", "-o", tmp_path / "f.png", "--at", 50, code=2)
    assert "--log" in ran("figure", runs, "ranks", "-o", tmp_path / "f.png", "--log", code=2)


# --- in a browser -------------------------------------------------------------------------------

_BROWSER = [shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")]
needs_browser = pytest.mark.skipif(not all(_BROWSER), reason="needs Chromium and ChromeDriver")


class Browser:
    """Headless Chromium, by the few words of the WebDriver protocol that are needed here."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.driver = subprocess.Popen(
            [str(_BROWSER[1]), f"--port={port}"], stdout=subprocess.DEVNULL
        )
        self.address = f"http://127.0.0.1:{port}"
        for _ in range(200):
            try:
                self.call("GET", "/status")
                break
            except OSError:
                time.sleep(0.05)
        flags = ["headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
                 "disable-background-networking", "disable-component-update", "disable-sync",
                 "window-size=1400,1000", f"user-data-dir={folder}"]  # fmt: skip
        options = {"binary": _BROWSER[0], "args": [f"--{flag}" for flag in flags]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        try:
            made = self.call("POST", "/session", capabilities={"alwaysMatch": wanted})
        except BaseException:
            self.driver.terminate()
            raise
        self.address += f"/session/{made['sessionId']}"

    def call(self, method: str, path: str, **body: object) -> object:
        text = json.dumps(body).encode() if method == "POST" else None
        request = urllib.request.Request(self.address + path, text, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from error

    def __call__(self, script: str, *values: object) -> object:
        return self.call("POST", "/execute/sync", script=script, args=values)

    def texts(self, selector: str) -> list[str]:
        script = "return [...document.querySelectorAll(arguments[0])]"
        return self(script + ".map((e) => e.innerText ?? e.textContent)", selector)

    def element(self, selector: str) -> str:
        found = self.call("POST", "/element", using="css selector", value=selector)
        return next(iter(found.values()))

    def click(self, selector: str) -> None:
        self.call("POST", f"/element/{self.element(selector)}/click")

    def write(self, selector: str, text: str) -> None:
        self.call("POST", f"/element/{self.element(selector)}/value", text=text)

    def keys(self, *keys: str) -> None:
        pressed = [{"type": kind, "value": k} for k in keys for kind in ("keyDown", "keyUp")]
        self.call("POST", "/actions", actions=[{"type": "key", "id": "keys", "actions": pressed}])

    def point(self, selector: str, share: float) -> None:
        """Move the mouse to a share of an element's width, half its height."""
        script = (
            "const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center'});"
        )
        script += "const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]"
        x, y, width, height = self(script, selector)
        to = {"type": "pointerMove", "x": int(x + share * width), "y": int(y + height / 2)}
        mouse = {"type": "pointer", "id": "mouse", "actions": [{**to, "duration": 0}]}
        self.call("POST", "/actions", actions=[mouse])

    def close(self) -> None:
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    found = Browser(tmp_path_factory.mktemp("chromium"))
    yield found
    found.close()


@pytest.fixture
def page(chromium, tmp_path):
    """The browser with the page of `SOME`; nothing may have gone wrong in it in the end."""
    report.write(SOME, tmp_path / "page.html")
    chromium.call("POST", "/url", url=(tmp_path / "page.html").as_uri())
    yield chromium
    assert chromium.call("POST", "/se/log", type="browser") == []


@needs_browser
def test_page_shows_the_table_at_any_evaluations(page):
    assert page("return document.title") == 'a <campaign> & "more"'
    for g in (19, 3, 0):
        page("const e = document.getElementById('evaluations'); e.value = arguments[0];"
             "e.dispatchEvent(new Event('input'))", g)  # fmt: skip
        assert page.texts("#at") == [f"{GRID[g]:,}"]
        wanted = tables.table(SOME, GRID[g], spread="interval")
        assert page.texts("#scores thead th") == ["distribution", *SOME.algorithms]
        assert page.texts("#scores tbody th") == list(SOME.distributions)
        shown = iter(page.texts("#scores tbody td"))
        bold = iter(page("return [...document.querySelectorAll('#scores tbody td')]"
                         ".map((e) => !!e.querySelector('b'))"))  # fmt: skip
        for entries in wanted.entries:
            form = typeset.form([e.summary.mean for e in entries if e])
            for entry in entries:
                text, best = next(shown).split(), next(bold)
                if entry is None:
                    assert text == ["-"]
                    continue
                assert best is entry.best
                assert text[0] == form(entry.summary.mean) + "*" * entry.star
                assert text[1] == f"{entry.rank:g}/{entry.of}"
                low, high = (float(t) for t in re.findall(r"[\d.]+", " ".join(text[2:])))
                assert [low, high] == pytest.approx(
                    [entry.summary.low, entry.summary.high], rel=1e-3
                )
        feet = page.texts("#scores tfoot td")
        assert feet == [*(f"{r:.2f}" for r in wanted.mean_ranks), *map(str, wanted.wins)]


@needs_browser
def test_page_counts_as_stats_does(page):
    rng = np.random.default_rng(5)
    for _ in range(20):
        x, y = rng.normal(size=rng.integers(2, 40)), rng.normal(1, 3, size=rng.integers(2, 40))
        sides = [{"mean": v.mean(), "sd": v.std(ddof=1), "runs": len(v)} for v in (x, y)]
        p = page("return welch(arguments[0], arguments[1])", *sides)
        assert p == pytest.approx(stats.welch(x, y), rel=1e-9)
    for rows, k in [(2, 2), (5, 4), (40, 15)]:
        table = np.array([stats.ranks(row) for row in rng.integers(0, 6, (rows, k))])
        p = page("return friedman(arguments[0])", table.tolist())
        assert p == pytest.approx(stats.friedman(table).p, rel=1e-9)
    agreed = [[1, 2, 3], [1, 2, 3]]
    p = page("return friedman(arguments[0])", agreed)
    assert p == pytest.approx(stats.friedman(agreed).p, rel=1e-9)
    for means in ([10, 5], [0.7603, 0.1]):
        for spread in (0.5657, 31.0, 2e-7, 1e-13):
            texts = page("return arguments[0].map(formOf(arguments[0], arguments[1]))",
                         means, spread)  # fmt: skip
            assert texts == [typeset.form(means, spread)(x) for x in means]
    for means in ([1227.2, 1100], [0.7603, 0.1], [12, 63], [1.5e10], [2e-7, 1e-8], [-3.25, 2], [0]):
        texts = page("return arguments[0].map(formOf(arguments[0]))", means)
        assert texts == [typeset.form(means)(x) for x in means]
    wanted = stats.critical(SOME.only(distributions=["NK 64", "QUBO"]))
    page.write("#pick-distributions input[type=search]", "nk 64, qubo")
    texts = page.texts("#critical text")
    assert f"critical difference {wanted.difference:.2f}" in texts
    for label, rank in zip(wanted.algorithms, wanted.ranks, strict=True):
        assert any(short(label, 30).strip() in t and f"{rank:.2f}" in t for t in texts)
    assert f"= {wanted.friedman.p:.3f}" in page.texts("#critical-text")[0]


@needs_browser
def test_page_sorts_and_filters(page):
    assert page.texts("#scores tbody th") == list(SOME.distributions)
    ranks = stats.rank_table(SOME)[:, 1]
    up = [SOME.distributions[k] for k in np.argsort(ranks, kind="stable")]
    page.click("#scores thead th:nth-child(3) button")
    assert page.texts("#scores tbody th") == up
    assert page.texts("#scores [aria-sort=ascending] button") == [SOME.algorithms[1]]
    page.click("#scores thead th:nth-child(3) button")
    assert page.texts("#scores tbody th") == up[::-1]
    page.click("#scores thead th:nth-child(3) button")
    assert page.texts("#scores tbody th") == list(SOME.distributions)
    page.click("#scores tfoot tr:first-child button")
    means = [float(text) for text in page.texts("#scores tfoot tr:first-child td")]
    assert means == sorted(means)

    page.write("#pick-distributions input[type=search]", "nk")
    assert page.texts("#scores tbody th") == ["NK 64"]
    assert page.texts("#ranks tbody th") == ["NK 64"]
    assert page.texts("#distribution option") == ["NK 64"]
    page.click("#pick-algorithms summary")
    page.click("#pick-algorithms .choices label:first-child input")
    assert "anyorder" not in page.texts("#scores thead th")
    fewer = SOME.only(SOME.algorithms[1:], ["NK 64"])
    shown = {text.split()[1] for text in page.texts("#scores tbody td")}
    assert shown == {f"{r:g}/3" for r in stats.rank_table(fewer)[0]}
    page.click("#pick-algorithms button:nth-of-type(2)")  # none of them: nothing breaks
    assert page.texts("#scores tbody td") == []
    page.click("#pick-algorithms button:nth-of-type(1)")
    assert "anyorder" in page.texts("#scores thead th")


@needs_browser
def test_page_sorts_and_filters_measures(page):
    table = ".measure[data-test] "
    page("document.querySelectorAll('.measure')[1].dataset.test = 1")
    assert page.texts(table + "tbody th") == list(SOME.distributions)
    areas = stats.areas(SOME)[:, 3]
    up = np.argsort(areas, kind="stable").tolist()  # what has none is the last, either way
    assert np.isnan(areas[up[-1]])
    for order in (up, [*up[-2::-1], up[-1]], range(3)):
        page.click(table + "thead th:nth-child(5) button")
        assert page.texts(table + "tbody th") == [SOME.distributions[k] for k in order]
    page.click(table + "thead th:first-child button")
    assert page.texts(table + "tbody th") == sorted(SOME.distributions, key=str.lower)
    assert page.texts(table + "[aria-sort=ascending]") == ["distribution"]
    page.write("#pick-distributions input[type=search]", "nk")
    page.write("#pick-algorithms input[type=search]", "ea")
    shown = "return [...document.querySelectorAll('.measure[data-test] tbody td')]"
    texts = page(shown + ".filter((e) => e.checkVisibility()).map((e) => e.textContent)")
    assert texts == [f"{stats.areas(SOME)[0, 2]:.3f}"]


@needs_browser
def test_page_hides_an_algorithm_by_its_legend(page):
    lines = "return document.querySelectorAll('#convergence polyline').length"
    assert page(lines) == 4
    page.click("#convergence-legend tbody tr:nth-child(3) button")
    assert page(lines) == 3
    assert page.texts("#convergence-legend [aria-pressed=false]") == ["(1+1) EA"]
    assert "(1+1) EA" not in page.texts("#scores thead th")
    page.keys("\ue007")  # Enter: the focus is still on it
    assert page(lines) == 4


@needs_browser
def test_page_tells_the_values_at_the_pointer(page):
    page("const e = document.getElementById('distribution'); e.value = 2;"
         "e.dispatchEvent(new Event('change'))")  # fmt: skip
    row = SOME.row("QUBO")
    form = typeset.form([c.curves[:, -1].mean() for c in row.values()])

    def agrees() -> int:
        at = int(page.texts("#convergence-legend caption")[0].split()[1].replace(",", ""))
        shown = [
            text.rstrip("*") for text in page.texts("#convergence-legend tbody td:nth-child(2)")
        ]
        assert shown == [form(c.at(at).mean()) for c in row.values()]
        return at

    assert agrees() == 2000
    page.point("#convergence svg", 0.5)
    at = agrees()
    assert 600 < at < 1400
    told = page.texts("#convergence .tip")[0]
    assert told.startswith(f"{at:,} evaluations, ")
    ends = [f"{short(label)}: {form(c.at(at).mean())}" for label, c in row.items()]
    assert told.endswith(tuple(ends))
    page("document.querySelector('#convergence svg').focus()")
    page.keys("\ue014")  # right
    assert agrees() == at + 100
    page.keys("\ue011", "\ue014")  # home, right
    assert agrees() == 200
    page.click("#log")
    grid, shares = stats.ecdf(SOME)
    page.point("#ecdf svg", 0.6)
    at = int(page.texts("#ecdf-legend caption")[0].split()[1].replace(",", ""))
    share = [float(text) for text in page.texts("#ecdf-legend tbody td:nth-child(2)")]
    place = grid.tolist().index(at)
    assert share == pytest.approx([s[place] for s in shares.values()], abs=1e-3)


@needs_browser
def test_page_opens_the_convergence_of_a_rank(page):
    page.click("#ranks tbody tr:nth-child(3) td:nth-child(2)")
    assert page("return document.getElementById('distribution').selectedOptions[0].text") == "QUBO"
    page("document.querySelector('#ranks td[tabindex=\"0\"]').focus()")
    page.keys("\ue015", "\ue014", "\ue007")  # down, right, Enter
    chosen = page("return document.getElementById('distribution').selectedOptions[0].text")
    assert chosen == " ".join(SOME.distributions[1].split())


@needs_browser
def test_page_is_dark_where_wanted(page):
    ground = "return getComputedStyle(document.body).backgroundColor"
    assert page(ground) == "rgb(255, 255, 255)"
    page.click("#theme")
    assert page(ground) == "rgb(22, 24, 28)"
    page.click("#theme")
    assert page(ground) == "rgb(255, 255, 255)"
    media = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    page.call("POST", "/goog/cdp/execute", cmd="Emulation.setEmulatedMedia", params=media)
    page.call("POST", "/refresh")
    assert page(ground) == "rgb(22, 24, 28)"
    assert page.texts("#theme") == ["Light"]
    page.call(
        "POST", "/goog/cdp/execute", cmd="Emulation.setEmulatedMedia", params={"features": []}
    )


@needs_browser
def test_page_of_odd_results(chromium, tmp_path):
    """One run, no value, other budgets, one point: everything is drawn, nothing goes wrong."""
    nothing = [[-np.inf, np.nan, 2.0]] * 3
    odd = results(
        {
            ("short", "a"): cell([1], [[3.0], [4]]),
            ("long", "a"): cell([10, 20, 50], nothing),
            ("long", "b"): cell([10, 20], [[1.0, 2.0]]),
            ("long", "c"): cell([5, 50], [[1e12, 1e12 + 1], [1e12, 1e12 + 2]]),
            ("same", "b"): cell([10, 20], [[0.0, 0], [0, 0]]),
        }
    )
    report.write(odd, tmp_path / "page.html")
    chromium.call("POST", "/url", url=(tmp_path / "page.html").as_uri())
    for g in range(5):
        chromium("const e = document.getElementById('evaluations'); e.value = arguments[0];"
                 "e.dispatchEvent(new Event('input'))", g)  # fmt: skip
        for d in range(3):
            chromium("STATE.shown = arguments[0]; draw()", d)
            chromium.point("#convergence svg", 0.5)
    assert chromium.texts("#at") == ["50"]
    assert chromium.texts("#scores tbody tr:nth-child(2) td")[1] == "-"  # its runs are shorter
    assert chromium("return document.querySelector('main').innerHTML.includes('NaN')") is False
    assert chromium.call("POST", "/se/log", type="browser") == []
