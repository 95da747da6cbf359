"""The page of a campaign: what it holds, and that it works in a browser."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from browser import Visits
from click.testing import CliRunner
from conftest import refused
from test_bench_stats import cell, results

from anyorder.bench import report, stats, tables, typeset
from anyorder.bench.results import Results
from anyorder.bench.store import Finished, Spec, Store
from anyorder.charts.base import escape
from anyorder.charts.page import part
from anyorder.cli.bench import bench

if TYPE_CHECKING:
    from playwright.sync_api import Page

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
        for a, algorithm in enumerate(["policy", NASTY[0], "(1+1) EA", NASTY[2]]):
            if (d, a) == (1, 3):
                continue
            ends = scale * (1 - 0.02 * ((a + d) % 4) + 0.005 * rng.normal(size=(runs, 1)))
            rise = 1 - 0.3 * np.exp(-np.array(GRID) / rng.uniform(200, 900))
            cells[label, algorithm] = cell(GRID, ends * rise)
    failed = {("QUBO", "(1+1) EA"): {"TimeoutError": 2}, (NASTY[1], NASTY[2]): {"<MemoryError>": 7}}
    return results(cells, 'a <campaign> & "more"', failed)


SOME = made()


def unpacked(page: str) -> dict[str, Any]:
    text = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    return json.loads(gzip.decompress(base64.b64decode(text)))


def numbers(values: list[float | None]) -> np.ndarray:
    return np.array([np.nan if x is None else x for x in values])


def test_data_is_what_was_measured():
    found = json.loads(json.dumps(report.data(SOME)))
    labels = [item["label"] for item in found["algorithms"]]
    assert tuple(labels) == SOME.algorithms
    _, shares = stats.ecdf(SOME)
    seen = {label: [] for label in labels}
    for d, row in enumerate(found["distributions"]):
        assert row["grid"] == GRID
        for g in (0, 7, 19):
            expected = stats.rank_table(SOME, GRID[g])[d]
            ranks = [np.nan if c is None else c["rank"][g] for c in row["cells"]]
            assert np.array_equal(ranks, expected, equal_nan=True)
        for label, entry in zip(labels, row["cells"], strict=True):
            if entry is None:
                assert (row["label"], label) not in SOME.cells
                continue
            curves = SOME.cells[row["label"], label].curves
            mean, size = numbers(entry["mean"]), abs(curves).max()
            assert mean == pytest.approx(curves.mean(axis=0), abs=1e-7 * size)
            low, high = stats.interval(curves)
            assert numbers(entry["low"]) == pytest.approx(low, abs=1e-4 * size)
            assert numbers(entry["high"]) == pytest.approx(high, abs=1e-4 * size)
            assert entry["sd"] == pytest.approx(curves.std(axis=0, ddof=1), rel=1e-2)
            late = np.array(GRID) > 0.1 * GRID[-1]
            assert entry["view"]["late"][0] <= np.quantile(mean[late], 0.02)
            assert entry["view"]["late"][1] >= numbers(entry["high"]).max() - 1e-4 * size
            seen[label].append(entry["share"])
    for label, share in shares.items():
        assert np.mean(seen[label], axis=0) == pytest.approx(share, abs=1e-4)


def test_tests_of_the_page_are_those_of_stats():
    found = report.data(SOME)
    for row in found["distributions"]:
        values = SOME.row(row["label"])
        places = [SOME.algorithms.index(label) for label in values]
        assert len(row["better"]) == len(places) * (len(places) - 1) / 2
        for key, digits in row["better"].items():
            i, j = (SOME.algorithms[int(k)] for k in key.split("-"))
            wanted = [
                stats.welch(a, b) < report.LEVEL
                for a, b in zip(values[i].curves.T, values[j].curves.T, strict=True)
            ]
            assert digits == "".join("01"[x] for x in wanted)
    assert any("1" in digits and "0" in digits
               for row in found["distributions"] for digits in row["better"].values())  # fmt: skip
    quantiles = found["tests"]["friedman"]["quantiles"]
    ranks = np.array([[1, 2, 3, 4], [2, 1, 3, 4], [1, 3, 2, 4]])
    value = stats.friedman(ranks).statistic
    p = stats.friedman(ranks).p
    assert [value >= q for q in quantiles[2]] == [p <= level for level in report.LEVELS]
    assert found["tests"]["ranges"][2] == pytest.approx(stats.studentised_range(4), abs=1e-6)


def test_without_scipy_there_are_means_and_ranks(tmp_path, monkeypatch):
    def missing() -> None:
        raise ImportError(stats.MISSING)

    monkeypatch.setattr(stats, "scipy_stats", missing)
    report.write(SOME, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert (
        "<p>Intervals and tests require SciPy: pip install &#x27;anyorder[bench]&#x27;.</p>" in page
    )
    assert page.count('<table class="measure">') == 2
    found = unpacked(page)
    assert found["tests"] is None
    assert "require SciPy" in found["charts"]["critical"]["missing"]
    for row in found["distributions"]:
        assert row["better"] == {}
        for entry in filter(None, row["cells"]):
            assert None not in entry["mean"] + entry["rank"]
            assert set(entry["low"] + entry["high"]) == {None}


def test_figures_are_what_plotly_knows():
    plotly = pytest.importorskip("plotly.io")
    found = report.data(SOME)
    row = found["distributions"][0]
    for log in (False, True):
        layout = dict(found["charts"]["convergence"]["layout"])
        layout |= {"xaxis": row["log" if log else "x"], "yaxis": row["y"]}
        traces = [{**item[name], "x": [1], "y": [2]} for item in found["algorithms"]
                  for name in ("curve", "band", "beyond")]  # fmt: skip
        made = {"data": traces, "layout": layout}
        plotly.from_json(json.dumps(made), skip_invalid=False)
    plotly.from_json(json.dumps(found["charts"]["ecdf"]), skip_invalid=False)
    critical = found["charts"]["critical"]
    dot = {**found["algorithms"][0]["curve"], **critical["dot"], "x": [1], "y": [1]}
    made = {"data": [dot], "layout": critical["layout"]}
    plotly.from_json(json.dumps(made), skip_invalid=False)
    names = [item["curve"]["name"] for item in found["algorithms"]]
    assert not any("<" in name for name in names)


def test_algorithms_are_told_apart_without_colours():
    found = report.data(SOME)["algorithms"]
    curves = [item["curve"] for item in found]
    looks = [(c["line"]["dash"], c["line"]["width"], c["marker"]["symbol"]) for c in curves]
    assert len(set(looks)) == len(found)
    light = [0.3 * r + 0.59 * g + 0.11 * b for r, g, b in report.data(SOME)["shades"]]
    assert light == sorted(light, reverse=True)


def test_one_file_that_asks_for_nothing(tmp_path):
    report.write(SOME, tmp_path / "a.html", notes=["One <b>note</b>."], versions={"numpy": "2"})
    report.write(SOME, tmp_path / "b.html", notes=["One <b>note</b>."], versions={"numpy": "2"})
    page = (tmp_path / "a.html").read_text("utf-8")
    assert (tmp_path / "b.html").read_text("utf-8") == page
    assert "default-src 'none'" in page
    assert "unsafe" not in page[: page.index("<body>")]
    assert "http" not in page.replace(part("plotly.js"), "").replace("http-equiv", "")
    assert "<h1>a &lt;campaign&gt; &amp; &quot;more&quot;</h1>" in page
    assert "<p>One &lt;b&gt;note&lt;/b&gt;.</p>" in page
    assert page.replace(part("plotly.js"), "").count("</script>") == 6  # none from a label
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
    assert "<h3>P-values against policy at the end</h3>" in page


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
        for a in range(9)
    }
    report.write(results(cells), tmp_path / "page.html")
    # of 42 distributions: 2.5 MB; scripts and styles are there once
    shared = sum(len(part(name).encode()) for name in ("plotly.js", "page.js", "page.css"))
    shared += sum(
        path.stat().st_size for path in Path(report.__file__).parent.glob("report*.[jch]*")
    )
    assert shared + 7 * ((tmp_path / "page.html").stat().st_size - shared) < 2.5e6


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
        for k in (1, 2) for algorithm in ("policy", "ea, plain", "RLS") for seed in range(4)
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
    ran("report", runs, "-o", out, "--algorithms", "RLS, ea, plain,policy")
    labels = unpacked(out.read_text("utf-8"))
    assert [a["label"] for a in labels["algorithms"]] == ["RLS", "ea, plain", "policy"]
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
    assert "'policy' on 'nk:n=16,k=1'" in said
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
        for label, method in (("mine", "policy:paper+beta=2"), ("theirs", "rls"))
        for seed in range(2)
    ]
    with Store(tmp_path / "runs.db") as store:
        store.request("before", [Spec("old", "policy", "D", "onemax:n=4", 0, 0, 10, (10,))])
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


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "page.html"
    report.write(SOME, path)
    return path


@pytest.fixture
def page(visit: Visits, written: Path) -> Page:
    """The page of `SOME`; nothing may have gone wrong in it in the end."""
    return opened(visit, written)


def opened(visit: Visits, path: Path, **options: Any) -> Page:
    found = visit(path, **options)
    found.wait_for_selector("#scores tfoot button")  # the scripts have made the table
    return found


def texts(page: Page, selector: str) -> list[str]:
    return [" ".join(text.split()) for text in page.locator(selector).all_inner_texts()]


def one_line(labels: tuple[str, ...]) -> list[str]:
    return [" ".join(label.split()) for label in labels]


def go_to(page: Page, g: int) -> None:
    page.evaluate(
        "g => { const e = byId('evaluations'); e.value = g; e.dispatchEvent(new Event('input')) }",
        g,
    )


def drawn(page: Page, name: str) -> list[dict[str, Any]]:
    """The traces of a figure, once it is drawn."""
    page.locator(f"#{name}").scroll_into_view_if_needed()
    page.wait_for_selector(f"#{name} .main-svg")
    return page.evaluate("n => byId(n).data", name)


def test_page_shows_the_table_at_any_evaluations(page):
    assert page.title() == 'a <campaign> & "more"'
    for g in (19, 3, 0):
        go_to(page, g)
        assert texts(page, "#at") == [f"{GRID[g]:,}"]
        wanted = tables.table(SOME, GRID[g], spread="interval")
        assert texts(page, "#scores thead th") == ["distribution", *one_line(SOME.algorithms)]
        assert texts(page, "#scores tbody th") == one_line(SOME.distributions)
        shown = iter(texts(page, "#scores tbody td"))
        bold = iter(page.locator("#scores tbody td").evaluate_all(
            "all => all.map((e) => !!e.querySelector('b'))"))  # fmt: skip
        for d, entries in enumerate(wanted.entries):
            last = [c.curves[:, -1].mean() for c in SOME.row(SOME.distributions[d]).values()]
            for entry in entries:
                text, best = next(shown).split(), next(bold)
                if entry is None:
                    assert text == ["-"]
                    continue
                assert best is entry.best
                assert text[0] == typeset.form(last)(entry.summary.mean) + "*" * entry.star
                assert text[1] == f"{entry.rank:g}/{entry.of}"
                low, high = (float(t) for t in re.findall(r"[\d.]+", " ".join(text[2:])))
                assert [low, high] == pytest.approx(
                    [entry.summary.low, entry.summary.high], rel=1e-3
                )
        feet = texts(page, "#scores tfoot td")
        assert feet == [*(f"{r:.2f}" for r in wanted.mean_ranks), *map(str, wanted.wins)]


def test_page_counts_as_python_does(page):
    rng = np.random.default_rng(5)
    tests = {
        "ranges": [stats.studentised_range(k) for k in range(2, 16)],
        "friedman": {"levels": report.LEVELS, "quantiles": [[3.0, 5.0]] * 14},
    }
    for rows, k in [(2, 2), (5, 4), (40, 15)]:
        table = np.array([stats.ranks(row) for row in rng.integers(0, 6, (rows, k))])
        found = page.evaluate("([t, q]) => criticalOf(t, q)", [table.tolist(), tests])
        assert found["gap"] == pytest.approx(stats.critical_difference(k, rows), rel=1e-9)
        assert found["ranks"] == pytest.approx(sorted(table.mean(axis=0)), rel=1e-12)
        value = stats.friedman(table).statistic
        assert found.get("level") == (None if value < 3 else report.LEVELS[0 if value < 5 else 1])
    for means in ([1227.2, 1100], [0.7603, 0.1], [12, 63], [1.5e10], [2e-7, 1e-8], [-3.25, 2], [0]):
        size, decimals = typeset.digits(means)
        for spread in (0, 0.5657, 31.0, 2e-7, 1e-13):
            given = [means, {"size": size, "decimals": decimals}, spread]
            shown = page.evaluate("([m, d, s]) => m.map(formOf(d, s))", given)
            assert shown == [typeset.form(means, spread)(x) for x in means]


def test_page_sorts_and_filters(page):
    rows = one_line(SOME.distributions)
    assert texts(page, "#scores tbody th") == rows
    ranks = stats.rank_table(SOME)[:, 1]
    up = [rows[k] for k in np.argsort(ranks, kind="stable")]
    by = page.locator("#scores thead th:nth-child(3) button")
    for order, named in ((up, ["ascending"]), (up[::-1], ["descending"]), (rows, [])):
        by.click()
        assert texts(page, "#scores tbody th") == order
        assert page.locator("#scores th[aria-sort]").evaluate_all(
            "all => all.map((e) => e.ariaSort)") == named  # fmt: skip
    page.click("#scores tfoot tr:first-child button")
    means = [float(text) for text in texts(page, "#scores tfoot tr:first-child td")]
    assert means == sorted(means)
    page.fill("#pick-distributions input[type=search]", "nk")
    for place in ("#scores tbody th", "#ranks tbody th", "#distribution option"):
        assert texts(page, place) == ["NK 64"]
    page.click("#pick-algorithms summary")
    page.click("#pick-algorithms .choices label:first-child input")
    assert "policy" not in texts(page, "#scores thead th")
    fewer = SOME.only(SOME.algorithms[1:], ["NK 64"])
    shown = {text.split()[1] for text in texts(page, "#scores tbody td")}
    assert shown == {f"{r:g}/3" for r in stats.rank_table(fewer)[0]}
    page.click("#pick-algorithms button:nth-of-type(2)")  # none of them: nothing breaks
    assert texts(page, "#scores tbody td") == []
    page.click("#pick-algorithms button:nth-of-type(1)")
    assert "policy" in texts(page, "#scores thead th")


def test_page_sorts_and_filters_measures(page):
    table = ".measure >> nth=1 >> "
    assert texts(page, table + "tbody th") == one_line(SOME.distributions)
    areas = stats.areas(SOME)[:, 3]
    up = np.argsort(areas, kind="stable").tolist()  # what has none is the last, either way
    assert np.isnan(areas[up[-1]])
    rows = one_line(SOME.distributions)
    for order in (up, [*up[-2::-1], up[-1]], range(3)):
        page.click(table + "thead th:nth-child(5) button")
        assert texts(page, table + "tbody th") == [rows[k] for k in order]
    page.click(table + "thead th:first-child button")
    assert texts(page, table + "tbody th") == sorted(rows, key=str.lower)
    page.fill("#pick-distributions input[type=search]", "nk")
    page.fill("#pick-algorithms input[type=search]", "ea")
    shown = page.locator(table + "tbody td").evaluate_all(
        "all => all.filter((e) => e.checkVisibility()).map((e) => e.textContent)"
    )
    assert shown == [f"{stats.areas(SOME)[0, 2]:.3f}"]


def test_page_draws_what_is_chosen(page):
    curves = drawn(page, "convergence")[1::2]
    row = SOME.row("NK 64")
    assert [c["name"] for c in curves] == [escape(label) for label in row]
    for curve, found in zip(curves, row.values(), strict=True):
        assert curve["y"] == pytest.approx(found.curves.mean(axis=0), abs=1e-6)
        assert curve["text"][-1].startswith(
            typeset.form([1.0, 0.7])(found.curves[:, -1].mean())[1:4]
        )
    page.click("#ranks tbody tr:nth-child(3) td:nth-child(2)")
    assert page.locator("#distribution option:checked").inner_text() == "QUBO"
    page.locator("#ranks tbody tr:nth-child(1) button").focus()
    page.keyboard.press("Enter")
    assert page.locator("#distribution option:checked").inner_text() == "NK 64"
    page.fill("#pick-algorithms input[type=search]", "ea")
    page.wait_for_function("() => byId('convergence').data.length === 2")
    page.fill("#pick-algorithms input[type=search]", "")
    page.check("#log")
    page.wait_for_function("() => byId('convergence').layout.xaxis.type === 'log'")

    grid, shares = stats.ecdf(SOME)
    for curve, share in zip(drawn(page, "ecdf"), shares.values(), strict=True):
        assert curve["x"] == grid.tolist()
        assert curve["y"] == pytest.approx(share, abs=1e-4)

    page.fill("#pick-distributions input[type=search]", "nk 64, qubo")
    wanted = stats.critical(SOME.only(distributions=["NK 64", "QUBO"]))
    dots = drawn(page, "critical")
    assert [dot["name"] for dot in dots] == [escape(label) for label in wanted.algorithms]
    assert [dot["x"][0] for dot in dots] == pytest.approx(wanted.ranks)
    assert [2 * dot["error_x"]["value"] for dot in dots] == pytest.approx([wanted.difference] * 4)
    said = page.inner_text("#critical-text")
    assert f"{wanted.difference:.2f} (Nemenyi, 0.05)" in said
    levels = [level for level in report.LEVELS if wanted.friedman.p < level]
    assert f"p {'< ' + str(levels[-1]) if levels else '> 0.05'} that" in said
    page.fill("#pick-distributions input[type=search]", "nk 64")
    assert page.inner_text("#critical-text").startswith("This needs two algorithms")
    assert not page.is_visible("#critical")


def test_axis_leaves_out_a_curve_far_below_and_marks_it(visit: Visits, tmp_path: Path):
    rise = 1 - 0.3 * np.exp(-np.array(GRID) / 500)
    ends = {"a": 0.7, "b": 0.72, "c": 0.75, "far": -1e6}
    cells = {
        ("D", label): cell(GRID, [end * rise, (end + 0.01) * rise]) for label, end in ends.items()
    }
    report.write(results(cells), tmp_path / "page.html")
    page = opened(visit, tmp_path / "page.html")
    traces = drawn(page, "convergence")
    assert traces[1]["y"] == pytest.approx((0.7 + 0.005) * rise, abs=1e-6)
    assert traces[0]["y"][0] == pytest.approx(0.71 * rise[0], abs=1e-4)
    low, high = page.evaluate("byId('convergence').layout.yaxis.range")
    assert 0.3 < low < 0.7 < 0.76 < high < 1
    (mark,) = [t for t in traces if t["mode"] == "markers"]
    assert (mark["name"], mark["x"], mark["y"]) == ("far", [GRID[-1]], [low])
    page.fill("#pick-algorithms input[type=search]", "far")
    page.wait_for_function("() => byId('convergence').layout.yaxis.range[1] < 0")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_is_dark_where_wanted(visit: Visits, written: Path, scheme: str):
    page = opened(visit, written, scheme=scheme, width=400)
    ground = "() => getComputedStyle(document.body).backgroundColor"
    colours = {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 24, 28)"}
    assert page.evaluate(ground) == colours[scheme]
    page.click("#theme")
    assert page.evaluate(ground) != colours[scheme]
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_page_of_odd_results(visit: Visits, tmp_path: Path):
    """One run, no value, other budgets, one point: everything is drawn, nothing goes wrong."""
    nothing = [[-np.inf, np.nan, 2.0]] * 3
    odd = results(
        {
            ("short", "a"): cell([1], [[3.0], [4]]),
            ("long", "a"): cell([10, 20, 50], nothing),
            ("long", "b"): cell([10, 20], [[1.0, 2.0]]),
            ("long", "c"): cell([5, 50], [[1e12, 1e12 + 1], [1e12, 1e12 + 2]]),
            ("same", "b"): cell([10, 20], [[0.0, 0], [0, 0]]),
            ("huge", "b"): cell([10, 20], [[-1.7e308, 1.7e308], [0, 1.7e308]]),
        }
    )
    report.write(odd, tmp_path / "page.html")
    page = opened(visit, tmp_path / "page.html")
    for g in range(5):
        go_to(page, g)
        for d in range(4):
            page.evaluate("k => draw({ shown: k })", d)
            drawn(page, "convergence")
    assert texts(page, "#at") == ["50"]
    assert texts(page, "#scores tbody tr:nth-child(2) td")[1] == "-"  # its runs are shorter
    assert "NaN" not in page.inner_html("main")
