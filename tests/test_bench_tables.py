"""Tables of campaigns: what is in them, and that every rendering says the same."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess

import numpy as np
import pytest
from conftest import refused
from test_bench_stats import cell, ends, results

from anyorder.bench import stats
from anyorder.bench.results import Results
from anyorder.bench.tables import Table, measures, table
from anyorder.bench.typeset import form

RNG = np.random.default_rng(3)
SOME = ends(
    {
        "QUBO 64_0": {"policy": RNG.normal(1227.2, 1, 20), "PBIL|x": RNG.normal(1220, 1, 20),
                      "σ & 5%": RNG.normal(1100, 1, 20)},
        "NK 64": {"policy": RNG.normal(0.75, 0.01, 20), "σ & 5%": RNG.normal(0.76, 1e-4, 20)},
    }
)  # fmt: skip
MEANS = {key: float(x.curves.mean()) for key, x in SOME.cells.items()}


def marked(found: Table, what: str) -> set[tuple[str, str]]:
    return {
        (row, column)
        for row, entries in zip(found.rows, found.entries, strict=True)
        for column, entry in zip(found.columns, entries, strict=True)
        if entry is not None and getattr(entry, what)
    }


def test_what_is_in_it():
    found = table(SOME, 100)
    assert marked(found, "best") == {("QUBO 64_0", "policy"), ("NK 64", "σ & 5%")}
    assert [e and (e.rank, e.of) for e in found.entries[0]] == [(1, 3), (2, 3), (3, 3)]
    assert [e and (e.rank, e.of) for e in found.entries[1]] == [(2, 2), None, (1, 2)]
    assert found.mean_ranks == (1.5, 2, 2)
    assert found.wins == (1, 0, 1)
    assert "after 100 evaluations" in found.title


def test_stars():
    # the winners are significant; against a reference, so are all that beat it
    assert marked(table(SOME), "star") == marked(table(SOME), "best")
    assert marked(table(SOME, reference="policy"), "star") == marked(table(SOME), "best")
    assert marked(table(SOME, reference="PBIL|x"), "star") == {("QUBO 64_0", "policy")}
    assert not marked(table(SOME, level=0.0), "star")
    alike = ends({"d": {"a": [1.0, 2, 3], "b": [1.1, 2.1, 3.1], "c": [1.0]}})
    assert not marked(table(alike), "star")


def test_ties_are_all_the_best():
    found = table(ends({"d": {"a": [1.0, 3], "b": [3.0, 1], "c": [0.0, 0]}}))
    assert marked(found, "best") == {("d", "a"), ("d", "b")}
    assert found.wins == (1, 1, 0)
    assert "1.5/3" in found.to_text()


def test_text():
    text = table(SOME).to_text()
    assert f"*{MEANS['QUBO 64_0', 'policy']:.1f}† 1/3" in text
    assert f"{MEANS['NK 64', 'policy']:.4f}"[1:] + "  2/2" in text
    lines = text.splitlines()
    block = lines[lines.index("") + 1 : lines.index("", 2)]
    assert len({len(line.rstrip()) for line in block if "wins" not in line}) == 1
    assert "mean rank" in text
    for width, blocks in ((40, 2), (30, 3), (1, 3)):
        narrow = table(SOME).to_text(width=width)
        assert max(map(len, narrow.splitlines()[1:-4])) <= max(30, width)
        assert narrow.count("wins") == blocks
    assert table(SOME).to_text(width=None).count("wins") == 1


@pytest.mark.parametrize("spread", ["none", "sd", "error", "interval"])
def test_markdown(spread):
    text = table(SOME, spread=spread).to_markdown()
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 2 + 2
    assert len({len(row) for row in rows}) == 1
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
    assert r"PBIL\|x" in rows[0]
    assert rf"**{MEANS['QUBO 64_0', 'policy']:.1f}**\*" in rows[2]
    assert ("±" in rows[2]) == (spread in ("sd", "error"))
    assert ("[12" in rows[2]) == (spread == "interval")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(tmp_path):
    odd = ends({"D_1 & 50% [x]": {r"a^b~c\d {e} #1 $f$": [1.0, 2.0], "λ=5 σ": [-2.0, 3.0]}})
    (tmp_path / "page.tex").write_text(
        "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n"
        + table(odd, spread="interval").to_latex()
        + "\\end{document}\n",
        "utf-8",
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, errors="replace", encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout[-2000:]


def test_latex():
    text = table(SOME, spread="sd").to_latex()
    assert r"distribution & policy & PBIL\textbar{}x & $\sigma$ \& 5\% \\" in text
    assert r"QUBO 64\_0 & \textbf{1" in text
    assert text.isascii()
    body = text.split(r"\toprule")[1].split(r"\bottomrule")[0]
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {3}
    plain = re.sub(r"\\.", "", text)
    assert plain.count("{") == plain.count("}")
    assert plain.count("$") % 2 == 0
    begun, ended = (re.findall(rf"\\{word}{{(\w+)}}", text) for word in ("begin", "end"))
    assert begun == ended[::-1] == ["table", "tabular"]
    odd = ends({"[x]": {"a^b~c\\d": [-1.5, -2.0], "*": [-1.25]}})
    assert "{[}x]" in table(odd).to_latex()
    assert r"$-$1.7500" in table(odd).to_latex()
    assert r"a\textasciicircum{}b\textasciitilde{}c\textbackslash{}d" in table(odd).to_latex()


def test_csv_has_every_number():
    rows = list(csv.DictReader(io.StringIO(table(SOME).to_csv())))
    assert len(rows) == len(SOME.cells)
    for row in rows:
        expected = MEANS[row["distribution"], row["algorithm"]]
        assert float(row["mean"]) == pytest.approx(expected, rel=1e-14)
        assert float(row["low"]) < float(row["mean"]) < float(row["high"])
    assert [row["star"] for row in rows] == ["1", "0", "0", "0", "1"]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([1227.16, 990.0], ["1227.2", "990.0"]),
        ([0.76034, -0.5], [".7603", "-.5000"]),
        ([63.98, 0.25], ["63.980", "0.250"]),
        ([64.0, 32.0], ["64", "32"]),
        ([0.051234, 0.0], [".05123", ".00000"]),
        ([123456.7, 3.2], ["123457", "3"]),
        ([2.5e12, 1.0], ["2.5000e+12", "1.0000e+00"]),
        ([2.5e-9], ["2.5000e-09"]),
        ([1.5, -np.inf], ["1.5000", "-inf"]),
        ([0.0], ["0"]),
    ],
)
def test_numbers(row, expected):
    assert list(map(form(row), row)) == expected


def test_single_runs_and_failures():
    cells = {("d", "a"): cell([9], [[1.5]]), ("d", "b"): cell([9], [[1], [2]])}
    failed = {("d", "a"): {"timeout": 2}, ("d", "c"): {"ValueError:\nno": 3, "x" * 200: 1}}
    found = table(results(cells, failed=failed), spread="sd")
    text = found.to_text()
    assert "1 to 2 runs" in text
    assert "6 runs failed" in text
    assert "2 of a on d: timeout." in text
    assert "3 of c on d: ValueError: no." in text  # where no run has finished
    assert max(map(len, text.splitlines())) < 130
    assert found.to_markdown().count("±") == 2  # one entry and the note
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [(r["algorithm"], r["runs"], r["failed"]) for r in rows] == [
        ("a", "1", "2"), ("b", "2", "0"), ("c", "0", "4"),
    ]  # fmt: skip
    assert "3 of c on d" in measures(results(cells, failed=failed), "area").to_text()
    many = {(f"d{k}", "a"): {"no": 1} for k in range(30)}
    assert "10 others." in table(results(cells, failed=many)).to_text()


def test_spread_is_shown():
    odd = ends({"d": {"a": [10.4, 9.6], "b": [5.0, 5.0]}})
    assert "10 ± 0.57 1/2" in " ".join(table(odd, spread="sd").to_text().split())
    assert "5 ± 0 2/2" in " ".join(table(odd, spread="sd").to_text().split())
    assert "[9.60, 10.40]" in table(odd, spread="interval").to_text()
    assert form([1.5], 1e-13)(1.5) == "1.5000"  # rounding is no spread


def test_labels_of_any_kind():
    odd = ends({"one\n\n| two": {"a\r\nb|c": [1.0, 2], "d\te": [3.0, 5]}})
    for made in (table(odd), measures(odd, "running-time"), measures(odd, "mann-whitney")):
        assert "a b|c" in made.to_text()
        assert "one | two" in made.to_text()
        rows = [line for line in made.to_markdown().splitlines() if line.startswith("|")]
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {4}
        assert r"a b\textbar{}c & d e \\" in made.to_latex()
        assert next(csv.DictReader(io.StringIO(made.to_csv())))["distribution"] == "one\n\n| two"


def test_running_times():
    some = results({("d", "a"): cell([5, 10], [[1, 2], [1, 4]]), ("d", "b"): cell([10], [[1], [2]]),
                    ("e", "a"): cell([10], [[0.5]])})  # fmt: skip
    found = measures(some, "running-time")  # targets 3 and 0.5
    text = " ".join(found.to_text().split())
    assert "d ≥ 3 *20 never" in text
    assert "e ≥ .5000 *10 -" in text
    assert "highest mean" in text
    assert r"d $\geq$ 3 & \textbf{20} & never \\" in found.to_latex()
    assert found.to_latex().count(r"\midrule") == 1
    assert found.to_csv().splitlines() == [
        "distribution,algorithm,running-time,target", "d,a,20.0,3.0", "d,b,inf,3.0", "e,a,10.0,0.5",
    ]  # fmt: skip


def test_areas():
    found = measures(SOME, "area")
    assert np.array_equal(found.values, stats.areas(SOME), equal_nan=True)
    assert f"**{stats.areas(SOME)[0].min():.3f}**" in found.to_markdown()


def test_mann_whitney():
    found = measures(SOME, "mann-whitney", reference="σ & 5%")
    p = stats.versus(SOME, "σ & 5%")
    assert np.array_equal(found.values, p, equal_nan=True)
    assert found.signs == (("+", "+", ""), ("-", "", ""))
    assert f"{p[0, 0]:.2g} +" in found.to_text()
    assert f"{p[1, 0]:.2g} $-$" in found.to_latex()
    assert "the best of its row" not in found.to_text()
    assert "against policy" in measures(SOME, "mann-whitney").title  # ours, by default
    theirs = SOME.only(["σ & 5%", "PBIL|x"])
    assert "against σ & 5%" in measures(theirs, "mann-whitney", 100).title


def test_nothing_to_show():
    empty = table(Results("none", ("a", "b"), (), {}))
    for text in (empty.to_text(), empty.to_markdown(), empty.to_latex(), empty.to_csv()):
        assert "distribution" in text


def test_wrong_settings():
    with refused(ValueError, "spread is 'var'", "sd"):
        table(SOME, spread="var")
    with refused(ValueError, "reference is 'BOA'", "policy"):
        table(SOME, reference="BOA")
    with refused(ValueError, "evaluations is 7", "'policy' on 'QUBO 64_0'"):
        table(SOME, 7)
    with refused(ValueError, "name is 'mean'", "area"):
        measures(SOME, "mean")
    with refused(ValueError, "evaluations is 100", "none"):
        measures(SOME, "area", 100)
    with refused(ValueError, "reference is 'policy'", "none"):
        measures(SOME, "running-time", reference="policy")
