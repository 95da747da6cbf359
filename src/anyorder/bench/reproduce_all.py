"""All items of the paper in one folder: missing runs are done, and kept as curves.

The folder holds files of curves, `ITEM.csv.gz` and `ITEM.*.csv.gz`. An item uses all runs of its
methods, whichever file they are in: the runs of `authors` appear in many tables and figures. Runs
in progress are in `runs.db`, a file of runs, from which they are collected into the curves. A
folder that was copied without its file of runs can therefore be continued.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from anyorder.bench import curves, reproduce, runner
from anyorder.bench.results import Cell, Results
from anyorder.bench.store import Spec, Store

STORE = "runs.db"
Key = tuple[str, str, int]  # method, row, budget


@dataclass(frozen=True)
class Part:
    """Runs of an item: some of its rows and methods; None stands for all its usual ones."""

    item: str
    rows: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    instances: int = 10
    runs: int = 10  # the number of runs on each instance

    def specs(self) -> tuple[Spec, ...]:
        """Return the runs."""
        return reproduce.campaign(
            self.item, self.rows, self.instances, self.runs, self.methods
        ).specs

    def cells(self) -> list[Part]:
        """Return the cells of this part: a part for each row and method."""
        item = reproduce.find(self.item)
        return [
            replace(self, rows=(row,), methods=(label,))
            for row in self.rows or item.rows
            for label in self.methods or tuple(item.methods)
        ]


class Folder:
    """The files of curves in a folder, and the file of runs beside them.

    Attributes
    ----------
    cells
        The runs in the files, by method, row and budget.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cells: dict[Key, Cell] = {}
        for item in reproduce.ITEMS:
            for file in self._files(item):
                self._add(item, curves.read(file))

    def _files(self, item: str) -> list[Path]:
        own = self.path / f"{item}.csv.gz"
        return [*([own] if own.is_file() else []), *sorted(self.path.glob(f"{item}.*.csv.gz"))]

    def _add(self, item: str, results: Results) -> None:
        for (row, label), cell in results.cells.items():
            key = reproduce.method(item, label, row), row, reproduce.find(item).budget
            self.cells[key] = join(self.cells[key], cell) if key in self.cells else cell

    def results(self, item: str) -> Results:
        """Return the runs of an item; there may be none."""
        known = reproduce.find(item)
        cells = {
            (row, label): self.cells[key]
            for row in known.rows
            for label in {**known.methods, **known.rivals}
            if (key := (reproduce.method(item, label, row), row, known.budget)) in self.cells
        }
        labels = [label for label in {**known.methods, **known.rivals}
                  if any(label == key[1] for key in cells)]  # fmt: skip
        rows = [row for row in known.rows if any(row == key[0] for key in cells)]
        return Results(item, tuple(labels), tuple(rows), cells)

    def missing(self, specs: Iterable[Spec]) -> list[Spec]:
        """Return the requested runs that are not in the files."""
        done: dict[Key, set[tuple[int, int]]] = {}
        for key, cell in self.cells.items():
            done[key] = set(zip(cell.instances.tolist(), cell.seeds.tolist(), strict=True))
        return [
            spec
            for spec in specs
            if (spec.instance, spec.seed)
            not in done.get((spec.method, spec.distribution, spec.budget), ())
        ]

    def do(
        self,
        parts: Iterable[Part],
        *,
        workers: int = 1,
        engine: str = "auto",
        until: float = float("inf"),
        store: Path | None = None,
        progress: Callable[[str], None] = lambda text: None,
    ) -> str:
        """Do the missing runs of some parts; return "done", "interrupted" or "late".

        Items whose problem needs a missing file are left out, which is reported to `progress`. With
        `until`, a time of `time.monotonic`, runs are done cell by cell, and no cell is started
        after that time. The runs stay in the file of runs `store`, by default that of the folder,
        until `collect` takes them from there.
        """
        limited = until < float("inf")
        for part in (cell for some in parts for cell in (some.cells() if limited else [some])):
            try:
                specs = self.missing(part.specs())
            except ValueError as error:  # the problem needs a file
                progress(f"{part.item} is left out: {error}")
                continue
            if not specs:
                continue
            if time.monotonic() > until:
                return "late"
            begun = time.monotonic()
            with Store(store or self.path / STORE) as runs:
                runs.request(part.item, specs)
                count = runs.waiting()
                if count and runner.run(runs, workers=workers, engine=engine) == "interrupted":
                    return "interrupted"
            if count:  # another item may have requested the same runs
                what = f"{specs[0].algorithm} on {specs[0].distribution}" if limited else "all"
                took = time.monotonic() - begun
                progress(f"{part.item}: {what}: {count} runs, {took:.1f} s")
        return "done"

    def collect(self, store: Path | None = None) -> int:
        """Move finished runs from a file of runs into the files of curves; return their number."""
        path, taken = store or self.path / STORE, 0
        if not path.is_file():
            return 0
        with Store(path, existing=True) as runs:
            done = runs.done()
        for item, known in reproduce.ITEMS.items():
            specs: list[Spec] = []
            for row in known.rows:
                for label in {**known.methods, **known.rivals}:
                    if (reproduce.method(item, label, row), row) in done:
                        specs += Part(item, (row,), (label,)).specs()
            specs = self.missing(specs)
            if not specs:
                continue
            with Store(path) as runs:
                runs.request(item, specs)
                new = runs.results()
            if new.cells:
                taken += sum(len(cell.seeds) for cell in new.cells.values())
                self._add(item, new)
                self._write(item, new)
        return taken

    def _write(self, item: str, new: Results) -> None:
        """Add runs to the file of an item."""
        to, known = self.path / f"{item}.csv.gz", reproduce.find(item)
        cells = dict(curves.read(to).cells) if to.is_file() else {}
        for key, cell in new.cells.items():
            cells[key] = join(cells[key], cell) if key in cells else cell
        labels = tuple(
            x for x in {**known.methods, **known.rivals} if any(x == k[1] for k in cells)
        )
        rows = tuple(row for row in known.rows if any(row == key[0] for key in cells))
        curves.write(Results(item, labels, rows, cells), to)


def everything(instances: int = 10, runs: int = 10) -> list[Part]:
    """Return all items with their usual methods, and older EDAs and local search for the tables."""
    parts = [Part(name, None, None, instances, runs)
             for name, item in reproduce.ITEMS.items() if not item.runs_of]  # fmt: skip
    local = ("PBIL", "MIMIC", "BOA", "BOA, as published", "(1+1) EA", "hill climbing")
    parts.append(Part("table-10000", None, local, instances, runs))
    return [*parts, Part("figure-orders", None, ("learned",), instances, runs)]


@contextlib.contextmanager
def shrunk() -> Iterator[None]:
    """Shrink all items, within the context, to 1,000 evaluations on rows of 64 variables.

    There is at most one row of a family. Everything then runs in minutes, but the claims are about
    other rows.
    """
    whole = dict(reproduce.ITEMS)
    small = {}
    for name, item in whole.items():
        rows: dict[str, str] = {}
        for row in item.rows:
            family, *rest = row.split()
            rows.setdefault(family, f"{family} 64 {rest[1]}" if rest else row)
        small[name] = replace(
            item, rows=tuple(rows.values()), budget=1_000, mark=1_000, printed=None, distances=False
        )
    reproduce.ITEMS.update(small)
    try:
        yield
    finally:
        reproduce.ITEMS.update(whole)


def join(one: Cell, other: Cell) -> Cell:
    """Return the runs of two cells, by instance and seed; a run in both is taken once."""
    if one.grid.tolist() != other.grid.tolist():
        raise ValueError("runs of one cell have different grids, expected the same")
    pairs = np.stack([np.concatenate([one.instances, other.instances]),
                      np.concatenate([one.seeds, other.seeds])])  # fmt: skip
    kept = np.unique(pairs, axis=1, return_index=True)[1]
    return Cell(
        one.grid, np.concatenate([one.curves, other.curves])[kept], pairs[0][kept],
        pairs[1][kept], np.concatenate([one.seconds, other.seconds])[kept],
    )  # fmt: skip
