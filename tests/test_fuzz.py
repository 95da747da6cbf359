"""Every reader on files that were damaged at random: success, or an error that names the file.

Each reader gets ANYORDER_FUZZ_SECONDS, ten minutes if it is not set. What is found here becomes a
test of its own in the file of that reader.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import math
import os
import random
import re
import signal
import sqlite3
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from functions import QUICK, SPACE, failing, value
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from test_damage import mend

import anyorder as ao
from anyorder.bench import campaign, curves
from anyorder.bench.store import Finished, Spec, Store
from anyorder.cli import main
from anyorder.errors import StudyError, StudyMismatch
from anyorder.problems.maxcut import read_maxcut
from anyorder.problems.maxsat import read_maxsat
from anyorder.problems.quadratic import read_qubo
from anyorder.problems.tabular import read_table
from anyorder.program import file as program
from anyorder.run.study.reading import check, load
from anyorder.run.study.rescue import write_csv
from anyorder.strategies import registry

SECONDS = float(os.environ.get("ANYORDER_FUZZ_SECONDS", "600"))
pytestmark = [pytest.mark.slow, pytest.mark.timeout(SECONDS + 300)]
LONGEST = 60.0  # seconds: an example that takes longer hangs
MEMORY = 4 << 30  # bytes: more than that for a small file is a fault as well


# --- running --------------------------------------------------------------------------------------


@contextlib.contextmanager
def limited_memory() -> Iterator[None]:
    """A reader that believes a number in the file must not fill the machine's memory."""
    if not sys.platform.startswith("linux"):
        yield
        return
    import resource

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextlib.contextmanager
def limited_time() -> Iterator[None]:
    def late(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"still reading after {LONGEST:g} s")

    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def fuzz(one: Callable[[st.DataObject], None]) -> None:
    """Try examples until the time is over, in rounds: Hypothesis itself counts them."""
    end = time.monotonic() + SECONDS
    rounds, first = 0, random.randrange(2**32)

    def timed(data: st.DataObject) -> None:
        with limited_time(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one(data)

    with limited_memory():
        while time.monotonic() < end:
            check = settings(
                max_examples=50, database=None, derandomize=False,
                phases=[Phase.generate, Phase.shrink],
                suppress_health_check=list(HealthCheck),
            )(given(st.data())(timed))  # fmt: skip
            seed(first + rounds)(check)()
            rounds += 1


# --- damage ---------------------------------------------------------------------------------------

NUMBERS = [b"0", b"-0", b"1", b"-1", b"2", b"7", b"65536", b"2147483648", b"-9223372036854775809",
           b"1000000", b"10000000", b"100000000000", b"1e308", b"1e400", b"-1e400", b"nan", b"0.5",
           b"1_0", b"9" * 5_000, b"", b"x", "١".encode(), b'"x"', b"[]", b"{}",
           b"true"]  # fmt: skip
PIECES = [b"\0", b"\xff", b"\xed\xa0\x80", b"\r", b"\n", b"\n\n", b" ", b"\t", b",", b'"', b"'",
          b"[", b"{", b"}", b"=", b"h ", b"p cnf 1 1\n", b"c\n", b"\xef\xbb\xbf", b"\x1a", b"\x0c",
          b"\xe2\x80\xa8", b"[[" * 60]  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, samples: list[bytes], largest: float = math.inf) -> bytes:
    """A file with a few changes, or bytes from nowhere."""
    if draw(st.integers(0, 19)) == 0:
        return draw(st.binary(max_size=200))
    text = draw(st.sampled_from(samples))
    numbers = [n for n in NUMBERS if not n.isdigit() or float(n) <= largest]
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(text)))
        kind = draw(st.sampled_from(["number"] * 5 + ["flip", "cut", "insert", "delete", "lines"]))
        if kind == "number":
            found = [m.span() for m in re.finditer(rb"-?\d+(\.\d+)?", text)]
            if found:
                low, high = draw(st.sampled_from(found))
                text = text[:low] + draw(st.sampled_from(numbers)) + text[high:]
        elif kind == "flip" and place < len(text):
            changed = text[place] ^ (1 << draw(st.integers(0, 7)))
            text = text[:place] + bytes([changed]) + text[place + 1 :]
        elif kind == "cut":
            text = text[:place]
        elif kind == "insert":
            piece = draw(st.sampled_from(PIECES) | st.binary(max_size=8))
            text = text[:place] + piece + text[place:]
        elif kind == "delete":
            text = text[:place] + text[place + draw(st.integers(1, 40)) :]
        else:
            lines = text.splitlines(keepends=True) or [b""]
            one, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
            if draw(st.booleans()):
                lines[one], lines[other] = lines[other], lines[one]
            else:
                lines.insert(one, lines[other])
            text = b"".join(lines)
    return text


def fuzz_files(
    path: Path,
    samples: list[bytes],
    use: Callable[[Path], object],
    kinds: type[Exception] | tuple[type[Exception], ...],
    largest: float = math.inf,
) -> None:
    """A reader on damaged files; its errors are of these kinds, and name the file."""
    for sample in samples:
        path.write_bytes(sample)
        use(path)

    def one(data: st.DataObject) -> None:
        path.write_bytes(data.draw(damaged(samples, largest)))
        expecting(path, lambda: use(path), kinds)

    fuzz(one)


def expecting(
    path: Path,
    use: Callable[[], object],
    kinds: type[Exception] | tuple[type[Exception], ...] = StudyError,
) -> None:
    """Success, or an error of these kinds that names the file."""
    said = ""
    try:
        use()
    except kinds as error:
        said = str(error)
    assert not said or str(path) in said


# --- problems -------------------------------------------------------------------------------------

GSET = b"5 6\n1 2 1\n1 3 -1\n2 3 1\n3 4 2.5\n4 5 1\n1 5 1\n"
BQP = b"2\n3 3\n1 1 5\n1 2 -7\n2 3 4\n2 2\n1 2 3\n2 2 -1\n"
SAT = [b"c made up\np cnf 4 3\n1 -2 0\n2 3 -4 0\n-1 4 0\n",
       b"p wcnf 3 3 10\n10 1 -2 0\n3 2 0\n4 -1 3 0\n",
       b"c newer form\nh 1 -2 0\n3 2 0\n0.5 -1 3 0\n"]  # fmt: skip
TABLE = b"a,b,kind,value\n1,0,x,0.5\n2,0,y,1.5\n1,1,x,-2\n2,1,y,1e3\n"


def used(problem: ao.problems.Problem) -> None:
    problem(np.zeros(len(problem.space), np.int64))


def test_gset(tmp_path: Path) -> None:
    fuzz_files(tmp_path / "G", [GSET, b"2 1\n1 2\n"], lambda p: used(read_maxcut(p)), ValueError)


def test_or_library(tmp_path: Path) -> None:
    samples = [BQP, BQP.split(b"\n", 1)[1][: BQP.index(b"2 2\n1") - 2]]
    fuzz_files(tmp_path / "bqp", samples, lambda p: used(read_qubo(p)), ValueError)


def test_wcnf(tmp_path: Path) -> None:
    fuzz_files(tmp_path / "f.wcnf", SAT, lambda p: used(read_maxsat(p)), ValueError)


def test_table(tmp_path: Path) -> None:
    fuzz_files(
        tmp_path / "t.csv", [TABLE], lambda p: read_table(p, missing=0.0).optimum, ValueError
    )


# --- TOML -----------------------------------------------------------------------------------------

PROGRAM = b"""direction = "minimize"
budget = 100
workers = 2
timeout = 1.5
retries = 1
on_failure = "worst"
target = 0.5
seed = 3
algorithm = "policy:paper"
study = "s.db"
[space]
level = ["-O0", "-O2", 3]
unroll = { low = 1, high = 8 }
fast = { flag = "-ffast-math" }
lto = "binary"
[command]
arguments = ["sh", "-c", "echo {level} {unroll} {fast} {lto}"]
environment = { MODE = "{level}", N = 3 }
infeasible_status = 3
[value]
regex = "time: (\\\\d+)"
[settings]
epochs = 3
hidden = [4]
"""
SHELL = b"""direction = "maximize"
budget = 10
algorithm = "boa+population=50"
[space]
a.b = [1, 2]
"c d" = ["x", "y z"]
[command]
shell = true
arguments = "echo $(( $AO_a_b )) $AO_c_d | tail -n 1"
[value]
json = "result.value"
"""
CAMPAIGN = b"""name = "one"
budget = 200
grid = 50
instances = [0, 1]
runs = 2
seed = 1
seconds = 60
memory = "4 GB"
[[algorithm]]
name = "policy:default"
[[algorithm]]
name = "boa+population=50"
label = "BOA"
[[problem]]
problem = "nk:n=8,k=2"
[[problem]]
problem = "onemax:n=6"
budget = 100
grid = [10, 100]
instances = 1
"""


def test_program_files(tmp_path: Path) -> None:
    if os.name != "posix":
        pytest.skip("`anyorder run` requires a POSIX system")
    samples = [PROGRAM, SHELL.replace(b"a.b", b"ab").replace(b"a_b", b"ab")]
    fuzz_files(tmp_path / "p.toml", samples, program.read, (ValueError, ImportError))


def test_campaign_files(tmp_path: Path) -> None:
    # Problems of a million variables are allowed, and take their time.
    kinds = (ValueError, ImportError)
    fuzz_files(tmp_path / "c.toml", [CAMPAIGN], campaign.read, kinds, largest=10_000)


# --- results --------------------------------------------------------------------------------------


def a_store(path: Path) -> Path:
    """Runs that are done, failed, running and waiting."""
    specs = [
        Spec(name, name, "nk", f"nk:n=4,k=1,seed={k}", k, k, 20, (10, 20))
        for name in ("policy:default", "boa") for k in range(3)
    ]  # fmt: skip
    with Store(path) as store:
        store.request("one", specs)
        done = store.claim(4)
        store.finish(*(
            (spec, Finished(np.array([1.0, 2.0]), 2.0, [0, 1, 0, 1], 20, 0.5, {"a": 1}, {"p": "1"}))
            for spec in done[:3]
        ))  # fmt: skip
        store.fail((done[3], "ValueError: no"))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def test_curves(tmp_path: Path) -> None:
    with Store(a_store(tmp_path / "runs.db")) as store:
        results = store.results()
    curves.write(results, tmp_path / "c.csv")
    samples = [(tmp_path / "c.csv").read_bytes()]
    fuzz_files(tmp_path / "c.csv", samples, curves.read, StudyError)


def test_compressed_curves(tmp_path: Path) -> None:
    with Store(a_store(tmp_path / "runs.db")) as store:
        curves.write(store.results(), tmp_path / "c.csv.gz")
    samples = [(tmp_path / "c.csv.gz").read_bytes(), gzip.compress(b"distribution\n")]
    path = tmp_path / "c.csv.gz"
    fuzz_files(path, samples[:1], curves.read, StudyError)


# --- databases ------------------------------------------------------------------------------------

VALUES = [None, -1, 0, 1, 7, 2**31, 2**62, -(2**63), 0.5, 1e300, math.inf, -math.inf, "", "x",
          '"x"', "[]", "{}", "null", "-1", "1e400", "NaN", "[1, 2]", '{"a": []}', "[" * 50_000,
          "9" * 5_000, '"\\ud800"', b"", b"\xff", b"\xff" * 9, b"\0" * 16,
          b"PK\x03\x04"]  # fmt: skip


def edit(database: sqlite3.Connection, data: st.DataObject) -> None:
    """A change to a row, a table or a pragma."""
    listed = database.execute("SELECT name FROM sqlite_master WHERE type='table'")
    tables = [name for (name,) in listed if not name.startswith("sqlite")]
    if not tables:
        return
    table = data.draw(st.sampled_from(sorted(tables)))
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
    (count,) = database.execute(f"SELECT count(*) FROM {table}").fetchone()
    column, other = (data.draw(st.sampled_from(columns)) for _ in range(2))
    keys = database.execute(f"SELECT {columns[0]} FROM {table}").fetchall()
    key = keys[data.draw(st.integers(0, count - 1))][0] if count else 0
    action = data.draw(st.sampled_from(
        ["edit"] * 8 + ["nudge"] * 3 + ["text"] * 3 + ["delete", "all", "swap", "drop", "rename",
         "version", "copy"]
    ))  # fmt: skip
    where = f"WHERE {columns[0]} IS ?"
    if action == "edit":
        changed = data.draw(st.sampled_from(VALUES))
        database.execute(f"UPDATE {table} SET {column} = ? {where}", (changed, key))
    elif action == "all":
        changed = data.draw(st.sampled_from(VALUES))
        database.execute(f"UPDATE {table} SET {column} = ?", (changed,))
    elif action == "nudge":
        step = data.draw(st.sampled_from([-1, 1, 1000]))
        database.execute(f"UPDATE {table} SET {column} = {column} + ? {where}", (step, key))
    elif action == "text":
        (had,) = database.execute(f"SELECT {column} FROM {table} {where}", (key,)).fetchone() or (
            None,
        )
        if isinstance(had, str | bytes):
            raw = had.encode("utf-8", "surrogatepass") if isinstance(had, str) else had
            changed = data.draw(damaged([raw]))
            as_text = isinstance(had, str)
            given = changed.decode("utf-8", "replace") if as_text else changed
            database.execute(f"UPDATE {table} SET {column} = ? {where}", (given, key))
    elif action == "delete":
        database.execute(f"DELETE FROM {table} {where}", (key,))
    elif action == "swap":
        database.execute(f"UPDATE {table} SET {column} = {other} {where}", (key,))
    elif action == "copy":
        listed = ", ".join(columns)
        changed = data.draw(st.sampled_from(VALUES))
        chosen = ", ".join(["?", *columns[1:]])
        database.execute(
            f"INSERT INTO {table} ({listed}) SELECT {chosen} FROM {table} {where}", (changed, key)
        )
    elif action == "drop":
        database.execute(f"DROP TABLE {table}")
    elif action == "rename":
        database.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO other_name")
    else:
        database.execute(f"PRAGMA user_version={data.draw(st.integers(-1, 4))}")


def fuzz_databases(
    path: Path,
    samples: list[bytes],
    use: Callable[[Path, int], object],
    mended: Callable[[sqlite3.Connection], None] | None = None,
) -> None:
    """A reader on databases whose bytes, rows or tables were changed; errors are StudyErrors."""

    def one(data: st.DataObject) -> None:
        for left in path.parent.glob(f"{path.name}*"):
            left.unlink(missing_ok=True)  # a connection may have removed it
        which = data.draw(st.integers(0, len(samples) - 1))
        if data.draw(st.integers(0, 3)) == 0:
            path.write_bytes(data.draw(damaged([samples[which]])))
        else:
            path.write_bytes(samples[which])
            with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
                for _ in range(data.draw(st.integers(1, 3))):
                    with contextlib.suppress(sqlite3.Error):
                        edit(database, data)
                if mended is not None and data.draw(st.booleans()):
                    with contextlib.suppress(sqlite3.Error, TypeError, OverflowError):
                        mended(database)
        use(path, which)

    fuzz(one)


def quietly(*arguments: str) -> None:
    """A command; it may fail, with one line that says why."""
    result = CliRunner().invoke(main, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception


def test_studies(tmp_path: Path) -> None:
    samples = []
    for name, f, options in [
        ("policy", failing, {"on_failure": "worst"}),
        ("asynchronous", value, {"asynchronous": True}),
        ("boa", value, {"algorithm": "boa+population=20"}),
        ("p3", value, {"algorithm": "p3"}),
    ]:
        path, quick = tmp_path / name, QUICK if "algorithm" not in options else {"seed": 0}
        with ThreadPoolExecutor(1) as pool:
            where = {"executor": pool} if name == "asynchronous" else {}
            ao.maximize(f, SPACE, 45, study=path, progress=False, **where, **options, **quick)
        samples.append(path.read_bytes())

    def resumed(path: Path, which: int) -> None:
        with ThreadPoolExecutor(1) as pool:
            where = {"executor": pool} if which == 1 else {}
            ao.resume(path, [failing, value, value, value][which], 50, max_seconds=20,
                      progress=False, **where)  # fmt: skip

    def use(path: Path, which: int) -> None:
        expecting(path, lambda: load(path))
        expecting(path, lambda: check(path))
        expecting(path, lambda: write_csv(path, tmp_path / "table.csv"))
        for options in ((), ("--json",), ("--check",)):
            quietly("show", str(path), *options)
        # settings that were edited and have their checksums may be those of another run
        expecting(path, lambda: resumed(path, which), (StudyError, StudyMismatch))

    fuzz_databases(tmp_path / "study.db", samples, use, mend)


def test_stores(tmp_path: Path) -> None:
    sample = a_store(tmp_path / "sample.db").read_bytes()

    def read(path: Path) -> None:
        with Store(path, existing=True) as store:
            for part in (store.counts, store.seconds_left, store.failures, store.dimensions,
                         store.versions, store.results, store.waiting, store.earlier):  # fmt: skip
                expecting(path, part)
            expecting(path, lambda: store.set_aside(["boa"], lambda *rest: False))
            expecting(path, lambda: store.claim(2, batch=True))
            expecting(path, lambda: store.claim(9))

    def use(path: Path, which: int) -> None:
        for command in ("status", "table", "report"):
            output = ("-o", str(tmp_path / "page.html")) if command == "report" else ()
            quietly("bench", command, str(path), *output)
        expecting(path, lambda: read(path))

    fuzz_databases(tmp_path / "runs.db", [sample], use)


# --- states ---------------------------------------------------------------------------------------


def state_of(name: str) -> dict[str, Any]:
    algorithm = QUICK["algorithm"] if name == "policy" else name
    optimizer = ao.Optimizer(SPACE, 0, algorithm=algorithm)
    for _ in range(6):
        candidates = optimizer.ask(7)
        optimizer.tell(candidates[:5], [value(x) for x in candidates[:5]])
    optimizer.suggest([1] * len(SPACE))
    return optimizer.state_dict()


def change(state: dict[str, Any], data: st.DataObject) -> None:
    """Another shape, type or number of one array, or other text, or nothing at all."""
    name = data.draw(st.sampled_from(sorted(state)))
    array = np.asarray(state[name])
    kind = data.draw(st.sampled_from(["shape", "type", "gone"] + ["value"] * 5 + ["swap"]))
    if kind == "gone":
        del state[name]
    elif kind == "shape":
        shape = data.draw(st.sampled_from([(), (0,), (1,), (3, 8), (2, 2, 2), array.shape[::-1]]))
        state[name] = np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)
    elif kind == "type":
        with contextlib.suppress(ValueError, TypeError):
            kinds = ["U9", "S5", "f8", "f4", "?", "c16", "i1", "u8", "i8"]
            state[name] = array.astype(data.draw(st.sampled_from(kinds)))
    elif kind == "swap":
        state[name] = state[data.draw(st.sampled_from(sorted(state)))]
    elif array.dtype.kind == "U" and array.ndim == 0:
        raw = data.draw(damaged([str(array).encode()]))
        state[name] = np.array(raw.decode("utf-8", "replace"))
    elif array.size and array.dtype.kind in "fiub":
        flat = array.reshape(-1).copy()
        place = data.draw(st.integers(0, array.size - 1))
        if array.dtype.kind in "iu":
            limits = np.iinfo(array.dtype)
            extreme: list[Any] = [0, 1, 2, 7, limits.max, limits.min]
        else:
            extreme = [np.nan, np.inf, -1.0, 0.0, 1e300] if array.dtype.kind == "f" else [0, 1]
        with np.errstate(over="ignore"):
            flat[place] = data.draw(st.sampled_from(extreme))
        state[name] = flat.reshape(array.shape)


def test_states() -> None:
    states = {name: state_of(name) for name in registry.names()}

    def one(data: st.DataObject) -> None:
        state = dict(states[data.draw(st.sampled_from(sorted(states)))])
        for _ in range(data.draw(st.integers(1, 3))):
            if state:
                change(state, data)
        try:
            again = ao.Optimizer.from_state(state)
        except ValueError:
            return
        for _ in range(2):
            candidates = again.ask(5)
            again.tell(candidates, [value(x) for x in candidates])

    fuzz(one)


def test_state_files(tmp_path: Path) -> None:
    """The bytes of a file of NumPy's: its own errors are as good as ours."""
    samples = []
    for name in ("policy", "boa"):
        buffer = io.BytesIO()
        np.savez(buffer, **state_of(name))
        samples.append(buffer.getvalue())

    def one(data: st.DataObject) -> None:
        file = io.BytesIO(data.draw(damaged(samples)))
        try:
            arrays = dict(np.load(file, allow_pickle=False))
        except Exception:  # zipfile, zlib and NumPy each have their own
            return
        with contextlib.suppress(ValueError):
            ao.Optimizer.from_state(arrays)

    fuzz(one)
