"""A run of a campaign: what was requested, its result, and the file format that holds both."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anyorder._internal.sqlite import Format, checksum_of
from anyorder.bench.results import Floats

KEY = 32  # letters in the key of a run

FORMAT = Format(
    name="file of runs",
    application=0x616E7962,  # "anyb"
    version=2,
    tables="""
CREATE TABLE campaign (
    name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER) WITHOUT ROWID;
CREATE TABLE runs (
    key TEXT PRIMARY KEY, algorithm TEXT NOT NULL, method TEXT NOT NULL,
    distribution TEXT NOT NULL, problem TEXT NOT NULL, instance INTEGER NOT NULL,
    seed INTEGER NOT NULL, budget INTEGER NOT NULL, grid TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'waiting', reason TEXT, tries INTEGER NOT NULL DEFAULT 0,
    owner TEXT, beat REAL, started REAL, seconds REAL, evaluations INTEGER, best REAL, point TEXT,
    curve BLOB, configuration TEXT, versions TEXT, asked INTEGER NOT NULL DEFAULT 1,
    checksum INTEGER);
CREATE INDEX by_status ON runs (status);
CREATE INDEX by_cell ON runs (distribution, algorithm);
""",
    rescue="; the runs that can still be read may be copied with `sqlite3 FILE .recover`",
)

# The columns that a row's checksum covers: all but those that change while the run is being done.
SIGNED = {
    "campaign": ("name", "value"),
    "runs": (
        "key", "algorithm", "method", "distribution", "problem", "instance", "seed", "budget",
        "grid", "status", "reason", "tries", "seconds", "evaluations", "best", "point", "curve",
        "configuration", "versions", "asked",
    ),
}  # fmt: skip


def sign_changes(connection: sqlite3.Connection) -> None:
    """Make a connection write the checksum of every row that it changes from now on."""
    connection.create_function("anyorder_checksum", -1, checksum_of, deterministic=True)
    for table, columns in SIGNED.items():
        for event in ("INSERT", "UPDATE"):
            connection.execute(
                f"CREATE TEMP TRIGGER sign_{table}_{event} AFTER {event} ON main.{table} BEGIN "
                f"UPDATE {table} SET checksum=anyorder_checksum({', '.join(columns)}) "
                f"WHERE {columns[0]}=NEW.{columns[0]}; END"
            )


def find_damage(connection: sqlite3.Connection) -> str | None:
    """Return what is wrong with the first row that has a wrong checksum, or None."""
    for table, columns in SIGNED.items():
        rows = connection.execute(f"SELECT {', '.join(columns)}, checksum FROM {table}")
        for number, (*row, checksum) in enumerate(rows, 1):
            if checksum != checksum_of(*row):
                name = f"entry {row[0]!r}"
                if table == "runs":
                    _, algorithm, _, _, problem, _, seed, *_ = row
                    name = f"run {number} ({algorithm!r} on {problem!r}, seed {seed!r})"
                return f"{name} was changed: its checksum does not fit"
    return None


@dataclass(frozen=True)
class Spec:
    """A requested run: what defines it, and the labels under which it is shown."""

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
        """The key that identifies the run; it does not depend on labels."""
        what = [self.method, self.problem, self.seed, self.budget, list(self.grid)]
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:KEY]


@dataclass(frozen=True)
class Finished:
    """The result of a run."""

    curve: Floats
    best: float
    point: Any
    evaluations: int
    seconds: float
    configuration: Mapping[str, Any]
    versions: Mapping[str, str]
