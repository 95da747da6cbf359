"""Write the generated tables of the documentation of the default.

    python benchmarks/default_tables.py            # write all tables into docs/
    python benchmarks/default_tables.py wins       # write only this table
    python benchmarks/default_tables.py --check    # only fail if a table is not up to date

A table is between two comments, the first of which names this command. The table of operators and
rules has the differences that their removal makes, from results/ablation.csv
(benchmarks/ablation.py). The tables of constants are made from the modules of the default, each
constant with the comment behind or above it. result_tables.py makes the tables of results.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import result_tables
from ablation import GROUPS, PATH, VARIANTS, WHOLE, Cells, cells, outcomes
from scipy.stats import t

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src" / "anyorder" / "strategies"
PAGES = {
    "worth": "default.md", "constants": "constants.md", "wins": "results.md",
    "halves": "results.md", "losses": "results.md", "small budgets": "results.md",
    "choice": "results.md", "lists": "lists.md", "before": "results.md",
}  # fmt: skip
SHOWN = (100, 300, 1_000, 3_000, 10_000)
# The first word of a name, or the size of the value, determines the table of a constant.
LIMITS = ("MOST", "ENUMERATED", "REMEMBERED", "BINARY", "PROFILES", "ENTRIES", "RING", "REPLAYED")
ROUNDING = 1e-5
# The constants for which this rule is wrong; nobody chose those that are given.
EXCEPTIONS = {
    "MOST_ERROR": "choices", "MOST_TRIES": "choices", "ABSENT": "rounding",
    "SPIN_SCALE": "given", "NORMAL_FOURTH": "given", "SCALARS": "given", "PAIR": "given",
    "_EDGES": "given",
}  # fmt: skip
LABELS = "# --- the entries of `scalars`"  # after this line, `layout.py` has only indices


# --- what operators and rules are worth -----------------------------------------------------------


def worth() -> str:
    """Return the table of operators and rules, over all problems on which they were measured."""
    of = cells(PATH)
    lines = [
        "| without | problems, runs | " + " | ".join(f"{mark:,}" for mark in SHOWN)
        + " | loses most on |",
        "| --- |" + " --- |" * (len(SHOWN) + 2),
    ]  # fmt: skip
    for name, variant in VARIANTS.items():
        if name == WHOLE or variant.algorithm != WHOLE or variant.batch > 1:
            continue
        problems = [p for group in variant.groups for p in GROUPS[group][1]]
        line = row(of, name, list(dict.fromkeys(problems)))
        if line:
            lines.append(f"| {name.removeprefix('no ')} | {line} |")
    lines += [
        "",
        "A mean over P problems of R runs each has a standard error of about (2 / P R) ^ 1/2.",
    ]
    return "\n".join(lines)


def row(of: Cells, variant: str, problems: list[str]) -> str:
    """Return the cells of one variant, or "" if it was not measured."""
    found = {mark: outcomes(of, variant, WHOLE, problems, mark) for mark in SHOWN}
    if not any(found.values()):
        return ""
    shared = {
        (name, mark): len(cell[variant].keys() & cell[WHOLE].keys())
        for (name, mark), cell in of.items() if variant in cell and WHOLE in cell
    }  # fmt: skip
    # a difference of more standard errors is significant; z is cut at 4
    limits = {key: float(t.ppf(0.975, max(n - 1, 1))) for key, n in shared.items()}
    texts = []
    for mark, results in found.items():
        better = sum(z > limits[name, mark] for name, z, _ in results)
        worse = sum(z < -limits[name, mark] for name, z, _ in results)
        mean = float(np.mean([d for *_, d in results])) if results else 0.0
        texts.append(f"{mean:+.2f} ({better}:{worse})" if results else "")
    seen = {name for results in found.values() for name, *_ in results}
    runs = sorted(n for (name, mark), n in shared.items() if name in seen and mark in SHOWN)
    low, high = runs[0], runs[-1]
    counts = f"{len(seen)}, {low}" if low == high else f"{len(seen)}, {low} to {high}"
    z, name, mark = min((z, name, mark) for mark in SHOWN for name, z, _ in found[mark])
    most = f"{name.replace('|', ', ')} at {mark:,}" if z < -limits[name, mark] else ""
    return " | ".join([counts, *texts, most])


# --- constants ------------------------------------------------------------------------------------


class Constant(NamedTuple):
    """A constant: its module, its name, its value as it is written, and its comment."""

    module: str
    name: str
    value: str
    reason: str


def constants() -> Iterator[Constant]:
    """Yield all constants of the default that are numbers, or tuples of numbers."""
    for folder in ("auto", "models", "gp"):
        for path in sorted((SOURCES / folder).rglob("*.py")):
            yield from constants_of(path)


def constants_of(path: Path) -> Iterator[Constant]:
    """Yield the constants of one module; several names in one line share its comment."""
    text = path.read_text(encoding="utf-8").split(LABELS)[0]
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    }
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if not isinstance(node, ast.Assign) or not isinstance(
            node.targets[0], ast.Name | ast.Tuple
        ):
            continue
        target = node.targets[0]
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        values = node.value.elts if isinstance(target, ast.Tuple) and isinstance(
            node.value, ast.Tuple
        ) else [node.value]  # fmt: skip
        numbers = [ast.unparse(value) for value in values]
        if len(names) != len(values) or (
            len(names) > 1 and numbers[:2] in (["0", "1"], ["-1", "-2"])
        ):
            continue  # names of kinds, which are only numbered
        reason = comments.get(node.lineno, "")
        above = node.lineno - 1
        while not comments.get(node.lineno) and lines[above - 1].startswith("#"):
            reason = f"{lines[above - 1].lstrip('# ')} {reason}".strip()
            above -= 1
        module = path.relative_to(SOURCES).as_posix()
        for name, value in zip(names, values, strict=True):
            assert isinstance(name, ast.Name)
            if name.id.isupper() and is_number(value):
                yield Constant(module, name.id, ast.unparse(value), reason)


def is_number(node: ast.expr) -> bool:
    """Return whether an expression consists of numbers only."""
    allowed = (ast.Constant, ast.Tuple, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop, ast.Load)
    if not all(isinstance(part, allowed) for part in ast.walk(node)):
        return False
    kinds = (int, float)
    return all(type(p.value) in kinds for p in ast.walk(node) if isinstance(p, ast.Constant))


def kind(constant: Constant) -> str:
    """Return the table of a constant: "choices", "limits", "rounding" or "given"."""
    if constant.name in EXCEPTIONS:
        return EXCEPTIONS[constant.name]
    value: Any = eval(constant.value, {})
    least = min(abs(v) for v in (value if isinstance(value, tuple) else (value,)))
    if constant.name.split("_")[0] in LIMITS:
        return "limits"
    return "rounding" if 0 < least <= ROUNDING or least >= 1 / ROUNDING else "choices"


def listed() -> str:
    """Return the tables of all constants."""
    titles = {
        "choices": "Choices", "limits": "Limits of time and memory",
        "rounding": "Rounding, and numbers that stand for none",
        "given": "Given by mathematics, or by the code",
    }  # fmt: skip
    found = list(constants())
    parts = []
    for what, title in titles.items():
        some = [c for c in found if kind(c) == what]
        parts.append(f"## {title}\n\n{len(some)} constants.\n")
        parts.append("| module | constant | value | what it is |\n| --- | --- | --- | --- |")
        parts += [f"| `{c.module}` | `{c.name}` | {c.value} | {c.reason} |" for c in some]
        parts.append("")
    return "\n".join(parts).strip()


# --- pages ----------------------------------------------------------------------------------------


def put(page: str, name: str, table: str) -> str:
    """Return the page with a table between its two comments."""
    start = f"<!-- {name}: python benchmarks/default_tables.py -->"
    end = f"<!-- end of {name} -->"
    if page.count(start) != 1 or page.count(end) != 1:
        raise SystemExit(f"a page has to have {start} and {end} once each")
    before, rest = page.split(start)
    return f"{before}{start}\n{table}\n{end}{rest.split(end)[1]}"


WRITERS = {
    "worth": worth, "constants": listed, "wins": result_tables.wins,
    "halves": result_tables.halves, "losses": result_tables.losses,
    "small budgets": result_tables.small, "choice": result_tables.choice,
    "lists": result_tables.lists_table, "before": result_tables.before,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(PAGES), help="of tables; default: all")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    for name in given.names:
        path = ROOT / "docs" / PAGES[name]
        old = path.read_text(encoding="utf-8")
        new = put(old, name, WRITERS[name]())
        if given.check and new != old:
            sys.exit(f"{path.name} is not what `python benchmarks/default_tables.py` writes")
        path.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
