"""A run of a campaign: what was requested, what it gave, and the file format that holds both."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anyorder._sqlite import Format
from anyorder.bench.results import Floats

KEY = 32  # letters of a run's key

FORMAT = Format(
    name="file of runs",
    application=0x616E7962,  # "anyb"
    version=1,
    tables="""
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
""",
    rescue="; the runs that can still be read may be copied with `sqlite3 FILE .recover`",
)


@dataclass(frozen=True)
class Spec:
    """A run that is requested: what defines it, and the labels it is shown under."""

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
        """Identifies the run; labels are not part of it."""
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
