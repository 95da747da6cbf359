"""The contents of a file of runs: counts, failures, results."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from anyorder._internal.sqlite import Database
from anyorder.bench import owners
from anyorder.bench.records import FORMAT, KEY, find_damage, sign_changes
from anyorder.bench.results import Cell, Results
from anyorder.errors import DAMAGE, StudyError

# SQL conditions: runs of the last request, and all runs. (`Store.set_aside` makes keys longer.)
_LAST, _ALL = "asked", f"length(key)={KEY}"


class StoredRuns:
    """A file of runs that is only read; `Store` can also change it.

    It holds the runs of all campaigns that were started with it. Unless they say otherwise, methods
    are about the runs of the last campaign.
    """

    def __init__(self, path: str | os.PathLike[str], *, existing: bool = False) -> None:
        self.path = Path(path).absolute()
        self._file = Database(self.path, FORMAT, existing=existing)
        try:
            self._check()
        except BaseException:
            self._file.close()
            raise

    def _check(self) -> None:
        """Check the pages and the rows of the file, and sign whatever is changed from now on."""
        with self._file.errors():
            connection = self._file.connection
            damage = None if self._file.fresh else self._file.damage()
            damage = damage or find_damage(connection)
            if damage is not None:
                raise StudyError(f"{self.path} is damaged, and left as it is: {damage}")
            sign_changes(connection)

    @contextlib.contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Convert errors of SQLite, and errors caused by damaged contents, to a StudyError."""
        try:
            with self._file.errors():
                yield
        except DAMAGE as error:
            reason = error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            raise StudyError(f"{self.path} is damaged, and left as it is: {reason}") from error

    def _dead_owners(self) -> list[str]:
        """Return the owners of running runs whose processes have died."""
        running = self._file.connection.execute(
            "SELECT owner, max(beat) FROM runs WHERE status='running' GROUP BY owner"
        ).fetchall()
        return [owner for owner, beat in running if owners.is_dead(owner, beat)]

    def counts(self) -> dict[tuple[str, str], dict[str, int]]:
        """Return the number of runs in each state, by distribution and algorithm.

        Runs of the last request and running ones are counted. Runs whose owner has died count as
        waiting.
        """
        with self._translate_errors():
            dead = set(self._dead_owners())
            rows = self._file.connection.execute(
                "SELECT distribution, algorithm, status, owner, count(*) FROM runs "
                "WHERE asked OR status='running' GROUP BY 1, 2, 3, 4"
            ).fetchall()
            for *labels, _, _ in rows:
                _check_texts(labels)
        found: dict[tuple[str, str], dict[str, int]] = {}
        for distribution, algorithm, status, owner, count in rows:
            states = found.setdefault((distribution, algorithm), {})
            state = "waiting" if owner in dead else status
            states[state] = states.get(state, 0) + count
        return found

    def seconds_left(self) -> float | None:
        """Estimate how long one worker needs for the missing runs; None before any has finished.

        A run is estimated by the mean of the runs with its method and distribution, or else of all
        runs.
        """
        with self._translate_errors():
            rows = self._file.connection.execute(
                "SELECT sum(status='running' OR status='waiting' AND asked), "
                "avg(CASE status WHEN 'done' THEN seconds END) FROM runs "
                "GROUP BY method, distribution"
            ).fetchall()
        known = [seconds for _, seconds in rows if seconds is not None]
        missing = sum(count for count, _ in rows)
        if missing and not known:
            return None
        mean = sum(known) / len(known) if known else 0.0
        return float(sum(n * (mean if seconds is None else seconds) for n, seconds in rows))

    def failures(self, limit: int | None = None) -> list[tuple[str, str, str, int]]:
        """Return algorithm, distribution, reason and number of failed runs, most frequent first."""
        with self._translate_errors():
            return self._failures(_LAST, limit)

    def _failures(self, which: str, limit: int | None = None) -> list[tuple[str, str, str, int]]:
        rows = self._file.connection.execute(
            "SELECT algorithm, distribution, reason, count(*) FROM runs "
            f"WHERE status='failed' AND {which} GROUP BY 1, 2, 3 ORDER BY 4 DESC, 3 LIMIT ?",
            (-1 if limit is None else limit,),
        ).fetchall()
        for *texts, _ in rows:
            _check_texts(texts)
        return rows

    def done(self) -> set[tuple[str, str]]:
        """Return the pairs of method and distribution that have a finished run, of any campaign."""
        with self._translate_errors():
            rows = self._file.connection.execute(
                f"SELECT DISTINCT method, distribution FROM runs WHERE status='done' AND {_ALL}"
            ).fetchall()
            for texts in rows:
                _check_texts(texts)
        return set(rows)

    def earlier(self) -> int:
        """Return the number of finished runs that only earlier campaigns requested."""
        with self._translate_errors():
            ((count,),) = self._file.connection.execute(
                f"SELECT count(*) FROM runs WHERE status='done' AND {_ALL} AND NOT {_LAST}"
            ).fetchall()
        return int(count)

    def dimensions(self, *, everything: bool = False) -> dict[str, int]:
        """Return the number of variables of each distribution that has a finished run."""
        with self._translate_errors():
            rows = self._file.connection.execute(
                "SELECT distribution, min(point) FROM runs WHERE status='done' "
                f"AND {_ALL if everything else _LAST} GROUP BY 1"
            ).fetchall()
            return {distribution: len(json.loads(point)) for distribution, point in rows}

    def versions(self) -> dict[str, str]:
        """Return the package versions of the finished runs, with commas where they differ."""
        found: dict[str, set[str]] = {}
        with self._translate_errors():
            rows = self._file.connection.execute(
                "SELECT DISTINCT versions FROM runs WHERE status='done' AND asked"
            ).fetchall()
            for (text,) in rows:
                for package, version in json.loads(text).items():
                    found.setdefault(package, set()).add(str(version))
        return {package: ", ".join(sorted(versions)) for package, versions in found.items()}

    def results(self, *, everything: bool = False) -> Results:
        """Return the curves of the finished runs.

        With `everything`, runs of all campaigns are returned, with the labels of the last campaign
        first. It is an error if a label stands for different algorithms or problems in them.
        """
        with self._translate_errors():
            mixed = self._find_mixed() if everything else []
            if not mixed:
                return self._results(_ALL if everything else _LAST)
        raise ValueError(
            f"{self.path}: in its campaigns {' and '.join(mixed[:3])} "
            f"{'stands' if len(mixed) == 1 else 'stand'} for different methods, budgets or "
            "problems, which cannot be told apart: export those of the last campaign (--last); a "
            "campaign that is started again becomes the last one, and repeats no run"
        )

    def _find_mixed(self) -> list[str]:
        """Return labels whose meaning differs between campaigns, not within the last one."""
        found: dict[str, None] = {}
        for what, by in (
            ("method || ' ' || budget || ' ' || grid", "algorithm"),
            ("problem", "instance"),
        ):
            rows = self._file.connection.execute(
                f"SELECT distribution, {by}, count(DISTINCT {what}), "
                f"count(DISTINCT CASE WHEN {_LAST} THEN {what} END) "
                f"FROM runs WHERE status='done' AND {_ALL} GROUP BY 1, 2 ORDER BY min(rowid)"
            ).fetchall()
            for distribution, other, kinds, last in rows:
                if kinds > max(last, 1):
                    label = f"{other!r} on " if by == "algorithm" else ""
                    found[f"{label}{distribution!r}"] = None
        return list(found)

    def _with_earlier(self, labels: tuple[str, ...], column: str) -> tuple[str, ...]:
        """Return the labels of the last campaign, followed by those only earlier ones have."""
        rows = self._file.connection.execute(
            f"SELECT {column} FROM runs WHERE status='done' AND {_ALL} "
            "GROUP BY 1 ORDER BY min(rowid)"
        )
        return tuple(dict.fromkeys([*labels, *(label for (label,) in rows)]))

    def _results(self, which: str) -> Results:
        database = self._file.connection
        order = {
            name: json.loads(value)
            for name, value in database.execute("SELECT name, value FROM campaign")
        }
        name = order.get("name", self.path.stem)
        algorithms, distributions = (
            tuple(order.get(labels, ())) for labels in ("algorithms", "distributions")
        )
        if which == _ALL:
            algorithms = self._with_earlier(algorithms, "algorithm")
            distributions = self._with_earlier(distributions, "distribution")
        grouped: dict[tuple[str, str], list[Any]] = {}
        for distribution, algorithm, *rest in database.execute(
            "SELECT distribution, algorithm, instance, seed, grid, seconds, curve FROM runs "
            f"WHERE status='done' AND {which} ORDER BY instance, seed"
        ):
            grouped.setdefault((distribution, algorithm), []).append(rest)
        _check_texts(
            [name, *algorithms, *distributions, *(text for key in grouped for text in key)]
        )
        ours = database.execute(
            f"SELECT DISTINCT algorithm FROM runs WHERE {which} "
            "AND (method GLOB 'anyorder*' OR method GLOB 'policy*')"
        ).fetchall()
        failed: dict[tuple[str, str], dict[str, int]] = {}
        for algorithm, distribution, reason, count in self._failures(which):
            failed.setdefault((distribution, algorithm), {})[reason] = count
        cells = {}
        for key, runs in grouped.items():
            cells[key] = _cell(runs)
            if not len(cells[key].grid):
                raise StudyError(
                    f"{self.path}: the runs of {key[1]!r} on {key[0]!r} have no number of "
                    "evaluations in common: give those of another budget or grid another label"
                )
        mine = frozenset(label for (label,) in ours)
        return Results(name, algorithms, distributions, cells, failed, mine)


def _check_texts(values: Iterable[Any]) -> None:
    for value in values:
        if not isinstance(value, str):
            raise ValueError(f"a label is {value!r}, expected text")


def _cell(runs: list[Any]) -> Cell:
    instances, seeds, grids, seconds, curves = zip(*runs, strict=True)
    # runs under one label with different grids or budgets: keep the points they have in common
    common = sorted(set.intersection(*(set(json.loads(text)) for text in set(grids))))
    values = []
    for text, curve in zip(grids, curves, strict=True):
        grid = json.loads(text)
        places = [grid.index(point) for point in common]
        values.append(np.frombuffer(curve, "<f8")[places])
    return Cell(
        grid=np.array(common, np.int64),
        curves=np.array(values, np.float64).reshape(len(runs), len(common)),
        instances=np.array(instances, np.int64),
        seeds=np.array(seeds, np.int64),
        seconds=np.array(seconds, np.float64),
    )
