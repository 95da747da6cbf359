"""The file of all runs: one SQLite database that several processes may work on.

A run is a row from the moment it is asked for: waiting, running (by whom, and whether that process
still lives), done with its curve, or failed with the reason. A row is known by what it is a run of:
algorithm, problem, seed, budget and grid. So a campaign that is started again does what is missing,
one that has grown does what is new, and nothing is done twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from anyorder.bench.results import Cell, Floats, Results
from anyorder.errors import StudyError

VERSION = 1
KEY = 32  # letters of a run's key
_APPLICATION = 0x616E7962  # "anyb", in the file's header
# A process says that it lives every so often; one that has not for so long does not.
BEAT, DEAD_AFTER = 10.0, 60.0
_OWNERS: set[str] = set()  # of this process

_TABLES = """
CREATE TABLE campaign (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE runs (
    key TEXT PRIMARY KEY, algorithm TEXT NOT NULL, method TEXT NOT NULL,
    distribution TEXT NOT NULL, problem TEXT NOT NULL, instance INTEGER NOT NULL,
    seed INTEGER NOT NULL, budget INTEGER NOT NULL, grid TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'waiting', reason TEXT, tries INTEGER NOT NULL DEFAULT 0,
    owner TEXT, beat REAL, started REAL, seconds REAL, evaluations INTEGER, best REAL, point TEXT,
    curve BLOB, configuration TEXT, versions TEXT, asked INTEGER NOT NULL DEFAULT 1);
CREATE INDEX by_status ON runs (status);
CREATE INDEX by_cell ON runs (distribution, algorithm);
"""


@dataclass(frozen=True)
class Spec:
    """What a run is a run of, and under which labels it is shown."""

    algorithm: str
    method: str
    distribution: str
    problem: str
    instance: int
    seed: int
    budget: int
    grid: tuple[int, ...]

    @property
    def key(self) -> str:
        """The same for the same run, whatever it is called."""
        what = [self.method, self.problem, self.seed, self.budget, list(self.grid)]
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:KEY]


@dataclass(frozen=True)
class Finished:
    """What a run has given."""

    curve: Floats
    best: float
    point: Any
    evaluations: int
    seconds: float
    configuration: Mapping[str, Any]
    versions: Mapping[str, str]


def is_database(path: Path) -> bool:
    """Whether a file is one of SQLite's."""
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


class Store:
    """A database of runs; made if there is none, unless `existing`."""

    def __init__(self, path: str | os.PathLike[str], *, existing: bool = False) -> None:
        self.path = Path(path).absolute()
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{time.time_ns()}"
        _OWNERS.add(self.owner)
        if existing and not self.path.is_file():
            raise StudyError(f"there is no file {self.path}")
        if not self.path.parent.is_dir():
            raise StudyError(f"{self.path}: there is no such folder")
        new = not existing and not (self.path.is_file() and self.path.stat().st_size)
        if not new and not is_database(self.path):
            raise StudyError(f"{self.path} holds no runs of anyorder; it is left as it is")
        # SQLite writes beside a file that it reads, unless it is told that nobody writes to it.
        only_read = existing and not all(
            os.access(place, os.W_OK) for place in (self.path, self.path.parent)
        )
        with self._clear():
            self._database = sqlite3.connect(
                self.path.as_uri() + ("?immutable=1" if only_read else ""),
                uri=True, isolation_level=None, timeout=60.0,
            )  # fmt: skip
            try:
                self._prepare()
                # what this process has asked for, which others need not want
                self._database.execute("CREATE TEMP TABLE wanted (key TEXT PRIMARY KEY)")
            except BaseException:
                self._database.close()
                raise

    def _prepare(self) -> None:
        database = self._database
        # in this order: another process may make the tables in between
        (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (application,) = database.execute("PRAGMA application_id").fetchone()
        if not application and not tables:
            database.execute("PRAGMA journal_mode=WAL")
            with self._writing():
                # another process may have been first
                if not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    for statement in _TABLES.split(";"):
                        database.execute(statement)
                    database.execute(f"PRAGMA application_id={_APPLICATION}")
                    database.execute(f"PRAGMA user_version={VERSION}")
            return
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if application != _APPLICATION:
            raise StudyError(f"{self.path} holds no runs of anyorder; it is left as it is")
        if version != VERSION:
            raise StudyError(f"{self.path} has format {version}, expected {VERSION}")
        (damage,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if damage != "ok":
            raise StudyError(f"{self.path} is damaged, and left as it is: {damage}")

    @contextlib.contextmanager
    def _clear(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StudyError(f"{self.path}: {error}") from error

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        with self._clear():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")

    # --- what there is to do --------------------------------------------------------------------

    def set_aside(
        self, methods: Iterable[str], same: Callable[[str, Mapping[str, Any]], bool]
    ) -> int:
        """Take out runs of these methods that are not what the method means now; how many.

        They stay in the file under another key, in no campaign, and are missing again.
        """
        with self._writing():
            found = self._database.execute(
                "SELECT DISTINCT method, configuration FROM runs WHERE status='done'"
            ).fetchall()
            wanted = set(methods)
            return sum(
                self._database.execute(
                    "UPDATE runs SET key=key || '-' || rowid, asked=0 WHERE status='done' AND "
                    "method=? AND configuration=? AND length(key)=?",
                    (method, text, KEY),
                ).rowcount
                for method, text in found
                if method in wanted and not same(method, json.loads(text))
            )

    def ask_for(self, name: str, specs: Iterable[Spec], retry_failed: bool = False) -> None:
        """Put down runs; those that are there stay as they are, and take the new labels.

        What was asked for before, and is not now, stays in the file and is not in the results; nor
        is it done here, but another process may be at it.
        """
        listed = list(specs)
        order = {
            "name": name,
            "algorithms": list(dict.fromkeys(spec.algorithm for spec in listed)),
            "distributions": list(dict.fromkeys(spec.distribution for spec in listed)),
        }
        with self._writing():
            self._database.execute("UPDATE runs SET asked=0")
            self._database.executemany(
                "INSERT INTO runs (key, algorithm, method, distribution, problem, instance, seed, "
                "budget, grid) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
                "algorithm=excluded.algorithm, distribution=excluded.distribution, asked=1",
                [(s.key, s.algorithm, s.method, s.distribution, s.problem, s.instance, s.seed,
                  s.budget, json.dumps(s.grid)) for s in listed],
            )  # fmt: skip
            self._database.executemany(
                "INSERT OR REPLACE INTO campaign VALUES (?, ?)",
                [(key, json.dumps(value)) for key, value in order.items()],
            )
            self._database.execute("DELETE FROM wanted")
            self._database.executemany(
                "INSERT OR IGNORE INTO wanted VALUES (?)", [(spec.key,) for spec in listed]
            )
            if retry_failed:
                self._database.execute(
                    "UPDATE runs SET status='waiting', tries=0, reason=NULL "
                    "WHERE status='failed' AND asked"
                )
            self._free_the_dead()

    def _waits(self) -> str:
        """Which runs this process may take: what it has asked for, or any if that is nothing."""
        (some,) = self._database.execute("SELECT EXISTS (SELECT 1 FROM wanted)").fetchone()
        return "status='waiting'" + (" AND key IN wanted" if some else "")

    def waiting(self) -> int:
        """How many runs are left for this process to take."""
        with self._clear():
            (count,) = self._database.execute(
                f"SELECT count(*) FROM runs WHERE {self._waits()}"
            ).fetchone()
        return int(count)

    def claim(
        self, count: int, batch: bool = False, but_not: Collection[tuple[str, str]] = ()
    ) -> list[Spec]:
        """Take up to `count` runs that wait; nobody else gets them.

        `batch`: runs of ours, of one method and distribution, that can be done together, but of
        none of these pairs.
        """
        columns = "algorithm, method, distribution, problem, instance, seed, budget, grid"
        with self._writing():
            self._free_the_dead()
            where, values = self._waits(), []
            if batch:
                groups = self._database.execute(
                    f"SELECT method, distribution, budget, grid FROM runs WHERE {where} "
                    "AND method GLOB 'anyorder*' AND method NOT GLOB '*graph=*' "
                    "GROUP BY 1, 2, 3, 4 ORDER BY min(rowid)"
                ).fetchall()
                groups = [group for group in groups if group[:2] not in but_not]
                if not groups:
                    return []
                where += " AND method=? AND distribution=? AND budget=? AND grid=?"
                values = list(groups[0])
            rows = self._database.execute(
                f"SELECT key, {columns} FROM runs WHERE {where} ORDER BY rowid LIMIT ?",
                [*values, count],
            ).fetchall()
            now = time.time()
            self._database.executemany(
                "UPDATE runs SET status='running', owner=?, beat=?, started=?, tries=tries+1 "
                "WHERE key=?", [(self.owner, now, now, row[0]) for row in rows],
            )  # fmt: skip
        return [Spec(*row[1:-1], *[tuple(json.loads(row[-1]))]) for row in rows]

    def _dead(self) -> list[str]:
        """Who has runs and lives no more."""
        owners = self._database.execute(
            "SELECT owner, max(beat) FROM runs WHERE status='running' GROUP BY owner"
        ).fetchall()
        found = []
        for owner, beat in owners:
            host, process, _ = owner.rsplit(":", 2)
            here = host == socket.gethostname() and os.name == "posix"
            # A living process may have the number of a dead one; it does not beat for it.
            dead = time.time() - beat > (10 if here else 1) * DEAD_AFTER
            if here and int(process) == os.getpid():
                dead = owner not in _OWNERS
            elif here and not _lives(int(process)):
                dead = True
            if dead:
                found.append(owner)
        return found

    def _free_the_dead(self) -> None:
        self._database.executemany(
            "UPDATE runs SET status='waiting', owner=NULL WHERE status='running' AND owner=?",
            [(owner,) for owner in self._dead()],
        )

    @contextlib.contextmanager
    def beating(self) -> Iterator[None]:
        """Say that this process lives, whatever else it does meanwhile."""
        over = threading.Event()

        def beat() -> None:
            while not over.wait(BEAT):
                with (
                    contextlib.suppress(sqlite3.Error),  # the next one will do
                    contextlib.closing(
                        sqlite3.connect(self.path, isolation_level=None, timeout=BEAT)
                    ) as database,
                ):
                    database.execute(
                        "UPDATE runs SET beat=? WHERE status='running' AND owner=?",
                        (time.time(), self.owner),
                    )

        thread = threading.Thread(target=beat, daemon=True, name="anyorder-beat")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def finish(self, *runs: tuple[Spec, Finished]) -> int:
        """Put down what runs have given; returns how many of them are still ours."""
        with self._writing():
            return self._database.executemany(
                "UPDATE runs SET status='done', reason=NULL, seconds=?, evaluations=?, best=?, "
                "point=?, curve=?, configuration=?, versions=?, owner=NULL "
                "WHERE key=? AND status='running' AND owner=?",
                [(done.seconds, done.evaluations, done.best, json.dumps(done.point),
                  np.asarray(done.curve, "<f8").tobytes(),
                  json.dumps(dict(done.configuration), default=repr),
                  json.dumps(dict(done.versions)), spec.key, self.owner) for spec, done in runs],
            ).rowcount  # fmt: skip

    def fail(self, *runs: tuple[Spec, str]) -> None:
        """Put down that runs failed, and why."""
        with self._writing():
            self._database.executemany(
                "UPDATE runs SET status='failed', reason=?, owner=NULL, seconds=? - started "
                "WHERE key=? AND owner=?",
                [(reason[:2_000], time.time(), spec.key, self.owner) for spec, reason in runs],
            )

    def release(self, spec: Spec, most_tries: int | None = None) -> bool:
        """Give a run back to be done again; False if it has been tried often enough."""
        with self._writing():
            changed = self._database.execute(
                "UPDATE runs SET status='waiting', owner=NULL WHERE key=? AND owner=? "
                "AND (? IS NULL OR tries < ?)", (spec.key, self.owner, most_tries, most_tries),
            ).rowcount  # fmt: skip
        return bool(changed)

    # --- what there is --------------------------------------------------------------------------

    def counts(self) -> dict[tuple[str, str], dict[str, int]]:
        """How many runs are in each state, by distribution and algorithm.

        Of the runs that were last asked for, and of those that somebody is at. What a process was
        at that lives no more waits for the next one.
        """
        with self._clear():
            dead = set(self._dead())
            rows = self._database.execute(
                "SELECT distribution, algorithm, status, owner, count(*) FROM runs "
                "WHERE asked OR status='running' GROUP BY 1, 2, 3, 4"
            ).fetchall()
        found: dict[tuple[str, str], dict[str, int]] = {}
        for distribution, algorithm, status, owner, count in rows:
            states = found.setdefault((distribution, algorithm), {})
            state = "waiting" if owner in dead else status
            states[state] = states.get(state, 0) + count
        return found

    def seconds_left(self) -> float | None:
        """Seconds of one worker that the missing runs will take, as far as their like are known."""
        with self._clear():
            rows = self._database.execute(
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
        """Algorithm, distribution, reason and number of runs that failed, the most first."""
        with self._clear():
            return self._database.execute(
                "SELECT algorithm, distribution, reason, count(*) FROM runs "
                "WHERE status='failed' AND asked GROUP BY 1, 2, 3 ORDER BY 4 DESC, 3 LIMIT ?",
                (-1 if limit is None else limit,),
            ).fetchall()  # fmt: skip

    def dimensions(self) -> dict[str, int]:
        """How many variables the problems of each distribution have, of which a run is done."""
        with self._clear():
            rows = self._database.execute(
                "SELECT distribution, min(point) FROM runs WHERE status='done' AND asked GROUP BY 1"
            ).fetchall()
        return {distribution: len(json.loads(point)) for distribution, point in rows}

    def versions(self) -> dict[str, str]:
        """The versions that the runs which are done were made with; several: all of them."""
        with self._clear():
            rows = self._database.execute(
                "SELECT DISTINCT versions FROM runs WHERE status='done' AND asked"
            ).fetchall()
        found: dict[str, set[str]] = {}
        for (text,) in rows:
            for package, version in json.loads(text).items():
                found.setdefault(package, set()).add(version)
        return {package: ", ".join(sorted(versions)) for package, versions in found.items()}

    def results(self) -> Results:
        """What the runs that are done have measured."""
        with self._clear():
            order = {
                name: json.loads(value)
                for name, value in self._database.execute("SELECT name, value FROM campaign")
            }
            rows = self._database.execute(
                "SELECT distribution, algorithm, instance, seed, grid, seconds, curve FROM runs "
                "WHERE status='done' AND asked ORDER BY instance, seed"
            ).fetchall()
            ours = self._database.execute(
                "SELECT DISTINCT algorithm FROM runs WHERE asked AND method GLOB 'anyorder*'"
            ).fetchall()
        grouped: dict[tuple[str, str], list[Any]] = {}
        for distribution, algorithm, *rest in rows:
            grouped.setdefault((distribution, algorithm), []).append(rest)
        failed: dict[tuple[str, str], dict[str, int]] = {}
        for algorithm, distribution, reason, count in self.failures():
            failed.setdefault((distribution, algorithm), {})[reason] = count
        cells = {}
        for key, runs in grouped.items():
            cells[key] = _cell(runs)
            if not len(cells[key].grid):
                raise StudyError(
                    f"{self.path}: the runs of {key[1]!r} on {key[0]!r} have no number of "
                    "evaluations in common: give those of another budget or grid another label"
                )
        return Results(
            order.get("name", self.path.stem),
            tuple(order.get("algorithms", ())),
            tuple(order.get("distributions", ())),
            cells,
            failed,
            frozenset(label for (label,) in ours),
        )

    def close(self) -> None:
        """Give back what was not finished, and close the file."""
        with contextlib.suppress(sqlite3.Error):
            self._database.execute(
                "UPDATE runs SET status='waiting', owner=NULL WHERE status='running' AND owner=?",
                (self.owner,),
            )
        _OWNERS.discard(self.owner)
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _cell(runs: list[Any]) -> Cell:
    instances, seeds, grids, seconds, curves = zip(*runs, strict=True)
    # Runs of another grid or budget under one label: what they have in common.
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


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
