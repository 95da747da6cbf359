"""Campaigns that are done: in processes, by several, killed, interrupted, across machines."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import anyorder as ao
from anyorder import problems
from anyorder.bench import algorithms, campaign, runner
from anyorder.bench.runner import OneRun
from anyorder.bench.store import Finished, Spec, Store
from anyorder.errors import FAILED
from anyorder.problems import Entry, Problem
from anyorder.run.evaluation.evaluators import Outcome

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="looks for processes in /proc"
)
needs_kill = pytest.mark.skipif(os.name != "posix", reason="signals as Linux and macOS have them")


def wait_until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
    return value


def rows(path: Path) -> list[dict[str, Any]]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM runs ORDER BY rowid")]


def states(path: Path) -> Counter[str]:
    return Counter(row["status"] for row in rows(path))


def asked(
    method: str, problem: str, instances: int = 1, runs: int = 1, budget: int = 20, grid: int = 7
) -> list[Spec]:
    found = campaign.distribution(problem, None, instances, runs, budget, grid)
    return list(found.specs(method, method))


# --- runs that go wrong ---------------------------------------------------------------------------


class Mischief(Problem):
    """Does what it should not at its first evaluation."""

    def __init__(self, how: str, log: str, seed: int) -> None:
        super().__init__(f"mischief:how={how},log={log},seed={seed}", ao.Space.binary(5))
        self.how, self.log = how, log

    def _values(self, points: NDArray[Any]) -> NDArray[np.float64]:
        if self.log:
            with open(self.log, "a", encoding="utf-8") as file:
                file.write(f"{self.how}\n")
        if self.how == "raises":
            raise ValueError("boom")
        if self.how == "hangs":
            time.sleep(3_600)
        if self.how == "eats":
            np.empty(5 * 10**9, np.int8)  # never touched, should the limit fail
        if self.how == "exits":
            os._exit(3)
        if self.how == "leaves":
            sys.exit("enough")
        if self.how == "odd":  # a file name that is not UTF-8
            raise OSError(os.fsdecode(b"caf\xe9.dat"))
        if self.how == "changes":
            values = points.sum(axis=1).astype(np.float64)
            points[:] = 0
            return values
        if self.how == "nan":
            return np.full(len(points), np.nan)
        return points.sum(axis=1).astype(np.float64)


def mischief(how: str = "none", log: str = "", seed: int = 0) -> Mischief:
    return Mischief(how, log, seed)


ENTRY = Entry(mischief, "what goes wrong", {"how": "none", "log": "", "seed": 0})


class Knowing(OneRun):
    """Its worker processes know the problem above, without any other test seeing it."""

    def __call__(self, spec: Spec) -> Finished:
        problems.registry.setdefault("mischief", ENTRY)
        return super().__call__(spec)


@pytest.fixture
def knowing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(problems.registry, "mischief", ENTRY)
    monkeypatch.setattr(runner, "OneRun", Knowing)


@needs_proc  # macOS accepts limits on memory, and keeps to none
@pytest.mark.usefixtures("knowing")
def test_runs_that_fail_are_recorded_and_the_campaign_continues(tmp_path: Path) -> None:
    path, log = tmp_path / "runs.db", tmp_path / "log"
    wanted = {
        "raises": ("failed", "ValueError: boom"),
        "hangs": ("failed", "no answer in 5 s"),
        "eats": ("failed", "MemoryError: more than 4 GB"),
        "exits": ("failed", "exit status 3"),
        "leaves": ("failed", None),
        "nan": ("failed", "is NaN at evaluation 1, expected a number"),
        "odd": ("failed", "OSError: caf\\udce9.dat"),
        "none": ("done", None),
    }
    specs = [
        spec for how in wanted for spec in asked("random", f"mischief:how={how},log={log}", runs=2)
    ]
    finished: list[int] = []
    with Store(path) as store:
        store.request("trial", specs)
        options: dict[str, Any] = {"workers": 2, "seconds": 5.0, "memory": 4 * 10**9}
        ended = runner.run(store, engine="cpu", progress=finished.append, **options)
        assert ended == "done"
        reasons = {(distribution, reason): n for _, distribution, reason, n in store.failures()}
        for spec, row in zip(specs, rows(path), strict=True):
            how = spec.problem.split("=")[1].split(",")[0]
            status, reason = wanted[how]
            assert row["status"] == status, (how, row["reason"])
            assert (reason or "") in (row["reason"] or ""), how
            # a worker that dies may be another run's fault, so these are tried again
            assert row["tries"] == (3 if how in ("exits", "leaves") else 1), how
            assert row["owner"] is None
            if reason and how != "nan":  # the same reasons are counted together
                assert reasons[spec.distribution, reason] == 2
        assert store.results().cells[specs[-1].distribution, "random"].curves.shape == (
            2, 3,
        )  # fmt: skip
        calls = Counter(log.read_text(encoding="utf-8").split())
        assert calls["raises"] == calls["hangs"] == calls["eats"] == 2
        assert calls["exits"] == 6
        assert sum(finished) == len(specs) + 4 + 4  # the tries of those that died, too
        # started again it does nothing
        store.request("trial", specs)
        assert runner.run(store, engine="cpu", **options) == "done"
        assert Counter(log.read_text(encoding="utf-8").split()) == calls
        # unless it is told to
        store.request("trial", specs[:2], retry_failed=True)
        assert store.counts()[specs[0].distribution, "random"] == {"waiting": 2}


@pytest.mark.usefixtures("knowing")
@pytest.mark.parametrize("method", ["random", "policy:paper+epochs=2+hidden=(3,)"])
def test_a_problem_that_changes_its_argument(method: str, tmp_path: Path) -> None:
    """The points on record are those that were evaluated."""
    path = tmp_path / "runs.db"
    with Store(path) as store:
        store.request("trial", asked(method, "mischief:how=changes"))
        assert runner.run(store, workers=1, engine="cpu") == "done"
    (row,) = rows(path)
    assert sum(json.loads(row["point"])) == row["best"] > 0


def test_a_limit_of_time_beyond_what_the_system_can_wait(tmp_path: Path) -> None:
    with Store(tmp_path / "runs.db") as store:
        store.request("trial", asked("random", "onemax:n=6"))
        assert runner.run(store, workers=1, engine="cpu", seconds=1e9) == "done"
    assert states(tmp_path / "runs.db") == {"done": 1}


def test_a_limit_of_memory_ends_with_the_run() -> None:
    resource = pytest.importorskip("resource")
    had = resource.getrlimit(resource.RLIMIT_DATA)
    with runner._limit_memory(10**12):
        assert resource.getrlimit(resource.RLIMIT_DATA)[0] == 10**12
    with pytest.raises(ValueError, match="other"), runner._limit_memory(10**12):
        raise ValueError("other")
    assert resource.getrlimit(resource.RLIMIT_DATA) == had


def test_no_worker_is_not_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all of an executor's hang, what waits is not taken for done."""

    class Nobody:
        slots, waits = 0, False

    monkeypatch.setattr(runner, "_jobs", lambda *rest: contextlib.nullcontext(Nobody()))
    with Store(tmp_path / "runs.db") as store:
        store.request("trial", asked("random", "onemax:n=6"))
        with pytest.raises(RuntimeError, match="every worker hangs"):
            runner.run(store, workers=1, engine="cpu")


@pytest.mark.parametrize("back", [True, False])
def test_a_cluster_may_be_empty_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, back: bool
) -> None:
    """Dask starts workers again that have died: what waits is left for them."""

    class Cluster:
        slots, waits, error, looks = 0, True, None, 0

        def start(self, payload: Any) -> int:
            return 0

        def wait(self, until: float | None = None) -> list[tuple[int, Outcome]]:
            if self.slots:
                return [(0, Outcome(FAILED, None, "it was tried"))]
            self.looks += 1
            self.slots = int(back and self.looks == 3)
            return []

    monkeypatch.setattr(runner, "_jobs", lambda *rest: contextlib.nullcontext(Cluster()))
    monkeypatch.setattr(runner, "_LONGEST_EMPTY", 60.0 if back else 0.0)
    with Store(tmp_path / "runs.db") as store:
        store.request("trial", asked("random", "onemax:n=6"))
        with contextlib.nullcontext() if back else pytest.raises(RuntimeError, match="no workers"):
            runner.run(store, workers=1, engine="cpu")
    assert states(tmp_path / "runs.db") == {"failed" if back else "waiting": 1}


# --- the same as alone ----------------------------------------------------------------------------

PEERS = ["nevergrad:DiscreteLenglerOnePlusOne", "optuna:TPE", "cmaes:CatCMAwM", "gomea:LinkageTree"]
METHODS = ["umda", "random", "policy:paper+epochs=3+hidden=(4,)"]


def assert_as_alone(path: Path) -> None:
    for row in rows(path):
        assert row["status"] == "done", row["reason"]
        problem = problems.get(row["problem"])
        alone = algorithms.run(
            row["method"], problem, row["budget"], row["seed"], json.loads(row["grid"]),
            engine="cpu" if row["method"].startswith("policy") else "auto",
        )  # fmt: skip
        np.testing.assert_array_equal(np.frombuffer(row["curve"], "<f8"), alone.curve)
        assert json.loads(row["point"]) == alone.best.tolist()
        assert row["best"] == alone.best_value == problem(alone.best)
        assert row["evaluations"] == alone.evaluations
        configuration = json.loads(json.dumps(dict(alone.configuration)))
        assert json.loads(row["configuration"]) == configuration
        assert 0 < row["seconds"] < 60
        versions = json.loads(row["versions"])
        assert versions["anyorder"] == ao.__version__
        assert versions["numpy"] == np.__version__
        assert versions["python"] == sys.version.split()[0]
        assert row["started"] <= time.time()


def test_rows_are_what_a_run_alone_gives(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    specs = [
        spec
        for problem in ("nk:n=9,k=2", "nkd:n=5,k=1")
        for method in METHODS
        for spec in asked(method, problem, 2, 2, 47, 10)
    ]
    with Store(path) as store:
        store.request("trial", specs)
        assert runner.run(store, workers=2, engine="cpu") == "done"
    assert len(rows(path)) == 24
    assert_as_alone(path)


@pytest.mark.parametrize("method", PEERS)
def test_rows_of_other_libraries_are_what_a_run_alone_gives(tmp_path: Path, method: str) -> None:
    package = method.partition(":")[0]
    installed = pytest.importorskip(package)
    path = tmp_path / "runs.db"
    with Store(path) as store:
        store.request("trial", asked(method, "nk:n=9,k=2", 1, 3, 47, 10))
        assert runner.run(store, workers=2, engine="cpu") == "done"
    assert_as_alone(path)
    if hasattr(installed, "__version__"):
        assert json.loads(rows(path)[0]["versions"])[package] == installed.__version__


def test_batches_give_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes to a GPU, here with the engine of the CPU."""
    path = tmp_path / "runs.db"
    monkeypatch.setattr(runner, "_gpu", lambda engine: True)
    monkeypatch.setattr(runner, "_BATCH", 3)
    monkeypatch.setattr(runner, "_run_each", lambda *rest: None)
    batched = asked(METHODS[2], "nk:n=9,k=2", 2, 2, 47, 10) + asked(METHODS[2], "onemax:n=6", 1, 2)
    finished: list[int] = []
    made: list[str] = []
    get = problems.get
    with Store(path) as store:
        store.request("trial", [*batched, *asked("random", "onemax:n=6")])
        monkeypatch.setattr(problems, "get", lambda name: (made.append(name), get(name))[1])
        runner.run(store, workers=1, progress=finished.append)
        assert finished == [3, 1, 2]
        assert len(made) == 4  # an instance is made once for all its runs in a batch
        assert states(path) == {"done": 6, "waiting": 1}
        assert len(store.claim(1)) == 1  # nothing else was touched
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("DELETE FROM runs WHERE status='waiting'")
    assert_as_alone(path)


@pytest.mark.usefixtures("knowing")
def test_batches_with_runs_that_go_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, method = tmp_path / "runs.db", METHODS[2]
    monkeypatch.setattr(runner, "_gpu", lambda engine: True)
    bad, good = asked(method, "mischief:how=raises"), asked(method, "nk:n=9,k=2", 2)
    with Store(path) as store:
        store.request("trial", [*bad, *good])
        assert runner.run(store, workers=1) == "done"
        ((_, _, reason, count),) = store.failures()
        assert "ValueError: boom" in reason
        assert count == 1
    assert states(path) == {"failed": 1, "done": 2}


def test_a_batch_that_is_not_possible_goes_run_by_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, batches = algorithms.run_many, []

    def some(name: str, problems: Any, *args: Any, **options: Any) -> Any:
        if problems[0].name.startswith("nk"):
            raise RuntimeError("out of memory")
        batches.append(len(problems))
        return together(name, problems, *args, **options)

    path = tmp_path / "runs.db"
    monkeypatch.setattr(runner, "_gpu", lambda engine: True)
    monkeypatch.setattr(algorithms, "run_many", some)
    with Store(path) as store:
        store.request(
            "trial", [*asked(METHODS[2], "nk:n=9,k=2", 3), *asked(METHODS[2], "onemax:n=6", 1, 2)]
        )
        assert runner.run(store, workers=1) == "done"
    assert batches == [2]  # those after it still go together
    assert states(path) == {"done": 5}
    assert_as_alone(path)


def test_an_engine_that_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "why_not", lambda engine: "there is no GPU")
    with Store(tmp_path / "runs.db") as store:
        store.request("trial", asked("random", "onemax:n=6"))
        with pytest.raises(RuntimeError, match="engine cuda cannot run here: there is no GPU"):
            runner.run(store, workers=1, engine="cuda")
        assert len(store.claim(5)) == 1


# --- processes that come and go -------------------------------------------------------------------

# A script with a problem of its own: worker processes read its top level, as they do for any
# script. The problem notes each run in a file before it waits, until nothing holds it.
SCRIPT = """
import os, sys, time
from pathlib import Path
import numpy as np
import anyorder as ao
from anyorder import problems

HERE = Path("FOLDER")

class Noted(problems.Problem):
    def __init__(self, seed):
        super().__init__(f"noted:seed={seed}", ao.Space.binary(4), seed=seed)
        self.noted = False

    def _values(self, points):
        if not self.noted:
            self.noted = True
            np.ones((600, 600)) @ np.ones((600, 600))  # starts the threads of BLAS, if there are
            threads = len(os.listdir("/proc/self/task")) if os.path.exists("/proc/self") else 0
            (HERE / "threads").write_text(str(threads))
            line = f"{self.seed} {os.getpid()} {os.environ.get('WHO', '-')}\\n"
            file = os.open(HERE / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(file, line.encode())
            os.close(file)
            if self.seed == 1 and (HERE / "deadly").exists():
                os._exit(3)
            while (HERE / "hold").exists() or (self.seed == 0 and (HERE / "stuck").exists()):
                time.sleep(0.01)
        return points.sum(axis=1).astype(float)

def noted(seed: int = 0):
    return Noted(seed)

if "noted" not in problems.registry:
    problems.register("noted", noted, "notes its runs")

if __name__ == "__main__":
    from anyorder.bench import reproduce
    from anyorder.cli import main

    reproduce.ROWS["noted"] = "noted"
    reproduce.ITEMS["noted"] = reproduce.Item(
        "noted", ("noted",), {"random": "random"}, budget=8, mark=8
    )
    main()
"""
CAMPAIGN = """
budget = 8
instances = {runs}
runs = 1
[[algorithm]]
name = "random"
[[problem]]
problem = "noted"
"""


class Scene:
    """A folder with a script, a campaign, and the processes that work on it."""

    def __init__(self, folder: Path, runs: int) -> None:
        self.folder, self.path, self.runs = folder, folder / "runs.db", runs
        self.script = folder / "own.py"
        self.script.write_text(
            SCRIPT.replace("FOLDER", str(folder)), encoding="utf-8"
        )  # Dask copies it
        (folder / "campaign.toml").write_text(CAMPAIGN.format(runs=runs), encoding="utf-8")
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(
        self, who: str, workers: int = 2, *options: str, command: str = "bench run campaign.toml"
    ) -> subprocess.Popen[bytes]:
        with (self.folder / f"{who}.txt").open("wb") as said:
            process = subprocess.Popen(
                [sys.executable, self.script.name, *command.split(), "--output", self.path.name,
                 "--engine", "cpu", "--workers", str(workers), *options],
                cwd=self.folder, stdout=said, stderr=said, env={**os.environ, "WHO": who},
            )  # fmt: skip
        self.processes.append(process)
        return process

    def said(self, who: str) -> str:
        return (self.folder / f"{who}.txt").read_text(encoding="utf-8")

    def log(self) -> list[tuple[int, int, str]]:
        """Instance, process and mark of every run that began."""
        path = self.folder / "log"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [(int(a), int(b), who) for a, b, who in map(str.split, lines)]

    def hold(self) -> None:
        (self.folder / "hold").touch()

    def let_go(self) -> None:
        (self.folder / "hold").unlink(missing_ok=True)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Callable[[int], Scene]]:
    made: list[Scene] = []

    def make(runs: int) -> Scene:
        made.append(Scene(tmp_path, runs))
        return made[-1]

    yield make
    for one in made:
        one.let_go()
        for process in one.processes:
            if process.poll() is None:
                process.kill()
            process.wait()


def lives(process: int) -> bool:
    try:
        return (
            Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
            != "Z"
        )
    except OSError:
        return False


def assert_all_done(scene: Scene) -> None:
    assert states(scene.path) == {"done": scene.runs}
    with Store(scene.path, existing=True) as store:
        cell = store.results().cells["noted", "random"]
    assert cell.instances.tolist() == list(range(scene.runs))


@needs_kill
def test_two_processes_do_every_run_once(scene: Callable[[int], Scene]) -> None:
    here = scene(16)
    here.hold()
    both = [here.start("one", 2), here.start("two", 1)]
    wait_until(lambda: len(here.log()) == 3)  # both are at work
    assert states(here.path) == {"running": 3, "waiting": 13}
    here.let_go()
    assert [process.wait(60) for process in both] == [0, 0]
    assert sorted(instance for instance, _, _ in here.log()) == list(range(16))
    assert {who for _, _, who in here.log()} == {"one", "two"}
    assert {row["tries"] for row in rows(here.path)} == {1}
    assert_all_done(here)


@needs_proc
def test_a_worker_has_one_thread(
    scene: Callable[[int], Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many processes as cores; two threads each would be twice too many."""
    here = scene(1)
    for name in THREADS:
        monkeypatch.delenv(name, raising=False)
    assert here.start("main", 1).wait(60) == 0, here.said("main")
    # its own, and the one that sees whether its parent lives
    assert (here.folder / "threads").read_text(encoding="utf-8") == "2"


@needs_kill
@needs_proc
def test_what_a_killed_process_had_is_done_by_another(scene: Callable[[int], Scene]) -> None:
    here = scene(10)
    here.hold()
    killed, other = here.start("killed", 2), here.start("other", 1)
    wait_until(lambda: len(here.log()) == 3)
    lost = {instance: worker for instance, worker, who in here.log() if who == "killed"}
    assert len(lost) == 2
    killed.kill()
    killed.wait()
    wait_until(lambda: not any(map(lives, lost.values())))  # nobody works for the dead
    here.let_go()
    assert other.wait(60) == 0
    begun = Counter(instance for instance, _, _ in here.log())
    assert begun == {k: 2 if k in lost else 1 for k in range(10)}
    assert {row["instance"]: row["tries"] for row in rows(here.path)} == begun
    assert_all_done(here)


def interrupt_twice(here: Scene, who: str, process: subprocess.Popen[bytes]) -> None:
    """While it holds its first runs: it leaves at once, and they wait again."""
    wait_until(lambda: len(here.log()) == 2)
    process.send_signal(signal.SIGINT)
    wait_until(lambda: "Ctrl-C again" in here.said(who))
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert here.said(who).splitlines()[1:] == [
        "finishing the runs that are under way; press Ctrl-C again to stop at once",
        "interrupted: left at once",
    ]
    assert states(here.path) == {"waiting": here.runs}


@needs_kill
def test_reproduce_interrupted_twice(scene: Callable[[int], Scene]) -> None:
    here = scene(3)
    here.hold()
    command = "reproduce noted --runs 1 --instances 3"
    interrupt_twice(here, "paper", here.start("paper", command=command))


@needs_kill
def test_interrupted_once_twice_and_started_again(scene: Callable[[int], Scene]) -> None:
    here = scene(7)
    here.hold()
    interrupt_twice(here, "twice", here.start("twice"))
    # once: it finishes what runs, and begins nothing
    process = here.start("once")
    wait_until(lambda: len(here.log()) == 4)
    process.send_signal(signal.SIGINT)
    wait_until(lambda: "Ctrl-C again" in here.said("once"))
    here.let_go()
    assert process.wait(30) == 130
    assert states(here.path) == {"done": 2, "waiting": 5}
    # again: only what is missing
    assert here.start("again").wait(60) == 0
    assert "7 runs, 5 to do" in here.said("again")
    begun = Counter(instance for instance, _, who in here.log() if who != "twice")
    assert begun == dict.fromkeys(range(7), 1)
    assert_all_done(here)
    # and once more: nothing
    assert here.start("more").wait(60) == 0
    assert "7 runs, 0 to do" in here.said("more")
    assert "more" not in {who for _, _, who in here.log()}


# --- a scheduler ----------------------------------------------------------------------------------


@contextlib.contextmanager
def cluster(workers: int, *preload: str) -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None,
        preload=preload,
    ) as made:  # fmt: skip
        yield made


@needs_kill
def test_a_worker_of_dask_that_is_killed(scene: Callable[[int], Scene]) -> None:
    here = scene(8)
    here.hold()
    with cluster(2, str(here.script)) as dask:
        process = here.start("main", 1, "--scheduler", dask.scheduler_address)
        wait_until(lambda: len(here.log()) == 2)  # both of Dask's workers, not one of ours
        (lost, worker, _), _ = here.log()
        os.kill(worker, signal.SIGKILL)
        here.let_go()
        assert process.wait(90) == 0, here.said("main")
    begun = Counter(instance for instance, _, _ in here.log())
    assert begun == {k: 2 if k == lost else 1 for k in range(8)}
    assert_all_done(here)


@needs_kill
@pytest.mark.slow
def test_a_run_that_kills_the_workers_of_dask(scene: Callable[[int], Scene]) -> None:
    here = scene(4)
    (here.folder / "deadly").touch()
    with cluster(2, str(here.script)) as dask:
        process = here.start("main", 1, "--scheduler", dask.scheduler_address)
        assert process.wait(90) == 1, here.said("main")
    assert states(here.path) == {"failed": 1, "done": 3}
    bad = rows(here.path)[1]
    assert bad["reason"].startswith("KilledWorker")
    assert bad["tries"] == 1
    assert sum(instance == 1 for instance, _, _ in here.log()) == 4  # Dask's own number


@needs_kill
@pytest.mark.slow
def test_a_run_that_hangs_on_dask_costs_itself_alone(scene: Callable[[int], Scene]) -> None:
    """Its worker is the only one, and does the others once it has been started again."""
    here = scene(3)
    (here.folder / "stuck").touch()
    campaign = here.folder / "campaign.toml"
    campaign.write_text(f"seconds = 20\n{campaign.read_text(encoding='utf-8')}", encoding="utf-8")
    with cluster(1, str(here.script)) as dask:
        process = here.start("main", 1, "--scheduler", dask.scheduler_address)
        assert process.wait(90) == 1, here.said("main")
    assert [row["reason"] for row in rows(here.path)] == ["no answer in 20 s", None, None]
    assert states(here.path) == {"failed": 1, "done": 2}
    assert len({worker for _, worker, _ in here.log()}) == 2


def test_a_scheduler_without_workers(tmp_path: Path) -> None:
    with cluster(0) as dask, Store(tmp_path / "runs.db") as store:
        store.request("trial", asked("random", "onemax:n=6"))
        with pytest.raises(RuntimeError, match="has no workers"):
            runner.run(store, workers=1, scheduler=dask.scheduler_address)
    assert states(tmp_path / "runs.db") == {"waiting": 1}
