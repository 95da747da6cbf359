"""The file of all runs: one SQLite database that several processes may work on.

A run is a row from the moment it is requested: waiting, running (with its owner), done with its
curve, or failed with the reason. A row is identified by what defines the run: algorithm, problem,
seed, budget and grid. Starting a campaign again therefore does the missing runs, and starting one
that has grown does the new ones. No run is done twice.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Self

import numpy as np

from anyorder._internal.sqlite import storable
from anyorder.bench import owners
from anyorder.bench.records import KEY, Finished, Spec
from anyorder.bench.stored_runs import StoredRuns

__all__ = ["Finished", "Spec", "Store"]


class Store(StoredRuns):
    """A file of runs: which process does which run, and the results.

    Parameters
    ----------
    path
        The file, which is created if it does not exist.
    existing
        Whether to raise an error if the file does not exist.

    Attributes
    ----------
    owner
        The text that identifies this process in the runs that it has claimed.
    """

    def __init__(self, path: str | os.PathLike[str], *, existing: bool = False) -> None:
        super().__init__(path, existing=existing)
        self.owner = owners.create()
        with self._file.errors():
            # the keys of the runs that this process requested: others may have requested more
            self._file.connection.execute("CREATE TEMP TABLE wanted (key TEXT PRIMARY KEY)")

    def set_aside(
        self, methods: Iterable[str], same: Callable[[str, Mapping[str, Any]], bool]
    ) -> int:
        """Exclude finished runs whose method now means another configuration; return their number.

        They stay in the file under another key, belong to no campaign, and are missing again.
        """
        with self._translate_errors(), self._file.transaction() as database:
            found = database.execute(
                "SELECT DISTINCT method, configuration FROM runs WHERE status='done'"
            ).fetchall()
            wanted = set(methods)
            return sum(
                database.execute(
                    "UPDATE runs SET key=key || '-' || rowid, asked=0 WHERE status='done' AND "
                    "method=? AND configuration=? AND length(key)=?",
                    (method, text, KEY),
                ).rowcount
                for method, text in found
                if method in wanted and not same(method, json.loads(text))
            )

    def request(self, name: str, specs: Iterable[Spec], retry_failed: bool = False) -> None:
        """Request runs; runs that the file has already keep their state and take the new labels.

        Runs of an earlier request that are not in this one stay in the file, but are no longer part
        of the results. This process does not claim them; another process may still be doing them.
        """
        listed = list(specs)
        order = {
            "name": name,
            "algorithms": list(dict.fromkeys(spec.algorithm for spec in listed)),
            "distributions": list(dict.fromkeys(spec.distribution for spec in listed)),
        }
        with self._file.transaction() as database:
            database.execute("UPDATE runs SET asked=0")
            database.executemany(
                "INSERT INTO runs (key, algorithm, method, distribution, problem, instance, seed, "
                "budget, grid) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
                "algorithm=excluded.algorithm, distribution=excluded.distribution, asked=1",
                [(s.key, s.algorithm, s.method, s.distribution, s.problem, s.instance, s.seed,
                  s.budget, json.dumps(s.grid)) for s in listed],
            )  # fmt: skip
            database.executemany(
                "INSERT OR REPLACE INTO campaign (name, value) VALUES (?, ?)",
                [(key, json.dumps(value)) for key, value in order.items()],
            )
            database.execute("DELETE FROM wanted")
            database.executemany(
                "INSERT OR IGNORE INTO wanted VALUES (?)", [(spec.key,) for spec in listed]
            )
            if retry_failed:
                database.execute(
                    "UPDATE runs SET status='waiting', tries=0, reason=NULL "
                    "WHERE status='failed' AND asked"
                )
            self._release_dead_owners()

    def _claimable(self) -> str:
        """Return the SQL condition of runs that this process may claim: its requests, or any."""
        ((some,),) = self._file.read("SELECT EXISTS (SELECT 1 FROM wanted)")
        return "status='waiting'" + (" AND key IN wanted" if some else "")

    def waiting(self) -> int:
        """Return the number of runs left for this process to claim."""
        ((count,),) = self._file.read(f"SELECT count(*) FROM runs WHERE {self._claimable()}")
        return int(count)

    def claim(
        self, count: int, batch: bool = False, but_not: Collection[tuple[str, str]] = ()
    ) -> list[Spec]:
        """Claim up to `count` waiting runs, which no other process then gets.

        With `batch`, claim runs of this library's own algorithms that can be done together: runs of
        one method and distribution, except the pairs in `but_not`.
        """
        columns = "algorithm, method, distribution, problem, instance, seed, budget, grid"
        with self._translate_errors(), self._file.transaction() as database:
            self._release_dead_owners()
            where, values = self._claimable(), []
            if batch:
                groups = database.execute(
                    f"SELECT method, distribution, budget, grid FROM runs WHERE {where} "
                    "AND (method GLOB 'anyorder*' OR method GLOB 'policy*') "
                    "GROUP BY 1, 2, 3, 4 ORDER BY min(rowid)"
                ).fetchall()
                groups = [group for group in groups if group[:2] not in but_not]
                if not groups:
                    return []
                where += " AND method=? AND distribution=? AND budget=? AND grid=?"
                values = list(groups[0])
            rows = database.execute(
                f"SELECT key, {columns} FROM runs WHERE {where} ORDER BY rowid LIMIT ?",
                [*values, count],
            ).fetchall()
            now = time.time()
            database.executemany(
                "UPDATE runs SET status='running', owner=?, beat=?, started=?, tries=tries+1 "
                "WHERE key=?", [(self.owner, now, now, row[0]) for row in rows],
            )  # fmt: skip
            return [_spec(*row[1:]) for row in rows]

    def _release_dead_owners(self) -> None:
        self._file.connection.executemany(
            "UPDATE runs SET status='waiting', owner=NULL WHERE status='running' AND owner=?",
            [(owner,) for owner in self._dead_owners()],
        )

    @contextlib.contextmanager
    def heartbeat(self) -> Iterator[None]:
        """Record, in a thread, that this process is alive, as long as the context lasts."""
        over = threading.Event()

        def beat() -> None:
            while not over.wait(owners.HEARTBEAT):
                with (
                    contextlib.suppress(sqlite3.Error),  # the next heartbeat will do
                    contextlib.closing(
                        sqlite3.connect(self.path, isolation_level=None, timeout=owners.HEARTBEAT)
                    ) as database,
                ):
                    database.execute(
                        "UPDATE runs SET beat=? WHERE status='running' AND owner=?",
                        (time.time(), self.owner),
                    )

        thread = threading.Thread(target=beat, daemon=True, name="anyorder-heartbeat")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def finish(self, *runs: tuple[Spec, Finished]) -> int:
        """Record the results of runs; return how many of them this process still owned."""
        with self._file.transaction() as database:
            return database.executemany(
                "UPDATE runs SET status='done', reason=NULL, seconds=?, evaluations=?, best=?, "
                "point=?, curve=?, configuration=?, versions=?, owner=NULL "
                "WHERE key=? AND status='running' AND owner=?",
                [(done.seconds, done.evaluations, done.best, json.dumps(done.point),
                  np.asarray(done.curve, "<f8").tobytes(),
                  json.dumps(dict(done.configuration), default=repr),
                  json.dumps(dict(done.versions)), spec.key, self.owner) for spec, done in runs],
            ).rowcount  # fmt: skip

    def fail(self, *runs: tuple[Spec, str]) -> None:
        """Record that runs failed, and the reasons."""
        with self._file.transaction() as database:
            database.executemany(
                "UPDATE runs SET status='failed', reason=?, owner=NULL, seconds=? - started "
                "WHERE key=? AND owner=?",
                [
                    (storable(reason[:2_000]), time.time(), spec.key, self.owner)
                    for spec, reason in runs
                ],
            )

    def release(self, spec: Spec, most_tries: int | None = None) -> bool:
        """Let a run be done again, and return True; False if it has been tried often enough.

        Without `most_tries` the run did not fail itself, and this does not count as a try.
        """
        with self._file.transaction() as database:
            changed = database.execute(
                "UPDATE runs SET status='waiting', owner=NULL, tries=tries - (? IS NULL) "
                "WHERE key=? AND owner=? AND (? IS NULL OR tries < ?)",
                (most_tries, spec.key, self.owner, most_tries, most_tries),
            ).rowcount
        return bool(changed)

    def close(self) -> None:
        """Release the runs that were not finished, which counts as no try, and close the file."""
        with contextlib.suppress(sqlite3.Error):
            self._file.connection.execute(
                "UPDATE runs SET status='waiting', owner=NULL, tries=tries - 1 "
                "WHERE status='running' AND owner=?",
                (self.owner,),
            )
        owners.discard(self.owner)
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _spec(*columns: Any) -> Spec:
    """Return the run that is stored in these columns; raise a ValueError if it is damaged."""
    spec = Spec(*[*columns[:-1], tuple(json.loads(columns[-1]))])
    texts = (spec.algorithm, spec.method, spec.distribution, spec.problem)
    numbers = (spec.instance, spec.seed, spec.budget, *spec.grid)
    if not all(isinstance(x, str) for x in texts) or not all(type(x) is int for x in numbers):
        raise ValueError(f"a run is {columns!r}")
    return spec
