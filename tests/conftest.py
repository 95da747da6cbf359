"""Shared by the tests of engines: cases to run them on, and the rule for comparing floats."""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import functools
import gc
import hashlib
import importlib
import os
import re
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import chromium as chromium
from browser import visit as visit
from hypothesis import settings
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

import anyorder
from anyorder.space.groups import Group
from anyorder.strategies.policy import engines, networks, orders
from anyorder.strategies.policy.config import PRESETS, Config
from anyorder.strategies.policy.engines import create, kernels, reference, why_not
from anyorder.strategies.policy.engines.base import Batch, Draw, Engine, Policy
from anyorder.strategies.policy.engines.cpu import CpuEngine
from anyorder.strategies.policy.engines.reference import ReferenceEngine
from anyorder.strategies.policy.engines.shared_cpu import SharedCpuEngine
from anyorder.strategies.policy.model import Model, make_model
from anyorder.strategies.policy.rng import split_seed

try:
    import fcntl
except ImportError:  # Windows: each process compiles
    fcntl = None  # type: ignore[assignment]

# No deadline, as machines are slow at times; in CI the same examples every time.
settings.register_profile("anyorder", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("anyorder")

# Signals, process groups, links, pipes and files that are removed while they are open.
posix = pytest.mark.skipif(os.name != "posix", reason="as Linux and macOS have it, not Windows")

SEED = 0
CARDS, ORDERED = (2, 3, 7, 2, 1, 5, 4, 6), (0, 0, 1, 0, 0, 0, 1, 0)


def compiled_words(
    seed: int, purpose: int, generation: int, row: int, count: int,
    *, epoch: int = 0, first_block: int = 0,
) -> Any:  # fmt: skip
    """`rng.words` from the compiled loop, 20 times faster: `test_rng.py` compares them."""
    out = np.empty(-(-count // 4) * 4, np.uint32)
    kernels.words(out, first_block, row, generation, purpose + 256 * epoch, *split_seed(seed))
    return out[:count]


@pytest.fixture(scope="module")
def quick_reference() -> Iterator[None]:
    """Let the reference read its random numbers from the compiled loop, and keep the orders.

    It spends most of its time on them, as it draws the orders again for each variable.
    """
    plain = reference.order_keys

    @functools.lru_cache(1 << 14)
    def order_keys(*args: Any) -> Any:
        keys = plain(*args)
        keys.flags.writeable = False
        return keys

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "order_keys", order_keys)
        for module in (reference, orders, networks.separate, networks.shared):
            patch.setattr(module, "words", compiled_words)
        yield


def _fast_engines() -> list[Any]:
    """The engines that can run here; PyTorch is imported only where there may be a GPU."""
    device = os.environ.get("TRITON_INTERPRET") == "1" or engines._may_have_a_gpu()
    if device and why_not("cuda") is None:
        return ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
    return ["cpu"]


@pytest.fixture(params=_fast_engines())
def fast(request: pytest.FixtureRequest) -> str:
    """The engines that are compared with the reference, of those that can run here."""
    return str(request.param)


def subprocess_environment(**settings: str) -> dict[str, str]:
    """The environment of a process that imports this package and these tests."""
    here = [str(Path(__file__).parent), str(Path(anyorder.__file__).parents[1])]
    path = os.pathsep.join([*here, *filter(None, sys.path)])
    return {**os.environ, "PYTHONPATH": path, **settings}


def stored(engine: Engine, policy: Policy) -> Policy:
    """The policy as NumPy arrays, wherever it is."""
    return Policy.load(engine.export(policy), engine.dtype)


@dataclass(frozen=True)
class Case:
    """A space, a configuration and a batch to compare engines on.

    `cards` is repeated up to `n`. `sharp` multiplies the initial parameters, so that probabilities
    get far from uniform and beyond the clip; `weights` is the share of (candidate, variable) pairs
    that count; `graph` lets every variable see about half of the others. The columns of `groups`,
    which share values, must have as many values in `cards`.
    """

    config: Config
    n: int = 8
    cards: tuple[int, ...] = CARDS
    batch: int = 10
    runs: int = 2
    first_run: int = 0
    sharp: float = 1.0
    weights: float = 1.0
    graph: bool = False
    groups: tuple[Group, ...] = ()
    model: Model = field(init=False)

    def __post_init__(self) -> None:
        cards = np.resize(self.cards, self.n)
        ordered = np.resize(ORDERED, self.n).astype(bool)
        graph = np.random.default_rng(SEED).random((self.n, self.n)) < 0.5 if self.graph else None
        for group in self.groups:
            ordered[group.columns] = False
        model = make_model(cards, ordered, self.config, graph, self.groups)
        object.__setattr__(self, "model", model)

    def replace(self, **settings: Any) -> Case:
        """The same case under a changed configuration."""
        return dataclasses.replace(self, config=self.config.replace(**settings))

    @property
    def seeds(self) -> list[int]:
        """One seed a run; they use both words of the key."""
        first = self.first_run
        return [SEED + r + (r << 40) for r in range(first, first + self.runs)]

    def engines(self, fast: str = "cpu") -> tuple[ReferenceEngine, ReferenceEngine, Engine]:
        """The exact one, a plain one in float32, and the one under test."""
        plain = ReferenceEngine(self.model, np.float32)
        return ReferenceEngine(self.model), plain, self.engine(fast)

    def engine(self, name: str) -> Engine:
        """The engine of that name; `cpu` with two threads whatever the machine."""
        if name != "cpu":
            return create(name, self.model)
        kind = SharedCpuEngine if self.config.network == "shared" else CpuEngine
        return kind(self.model, threads=2)

    def policy(self, engine: Engine) -> Policy:
        """The policy that every engine starts a comparison with."""
        policy = engine.fresh(self.seeds, [0] * self.runs)
        policy.theta *= self.sharp
        return policy

    def draw(self, generation: int = 0, first: int = 0, count: int | None = None) -> Draw:
        """A request for a batch."""
        runs, config = self.runs, self.config
        drop = config.drop_generation * config.drop_decay**generation
        count = self.batch if count is None else count
        return Draw(self.seeds, [generation] * runs, [first] * runs, [drop] * runs, count)

    def answers(self, points: Any, old: Any, advantages: Any = None, generation: int = 0) -> Batch:
        """A batch to train on; advantages and weights are made up where none are given."""
        rngs = [np.random.default_rng([seed, generation]) for seed in self.seeds]
        stamps = np.zeros((*points.shape[:2], 2), np.int64)
        stamps[..., 0], stamps[..., 1] = generation, np.arange(points.shape[1])
        shape = points.shape[1:]
        if advantages is None:
            advantages = np.stack([rng.normal(size=shape) for rng in rngs])
        weights = np.stack(
            [rng.uniform(0.5, 2.0, shape) * (rng.random(shape) < self.weights) for rng in rngs]
        )
        drop = self.config.drop_training * self.config.drop_decay**generation
        return Batch(
            seeds=self.seeds, generations=[generation] * self.runs, points=points, old=old,
            advantages=advantages, weights=weights, drop=[drop] * self.runs, stamps=stamps,
        )  # fmt: skip


def case(**settings: Any) -> Case:
    """A `Case` with small networks and few epochs; fields of `Case` and `Config` side by side."""
    own = {f.name for f in dataclasses.fields(Case)} & settings.keys()
    shape = {key: settings.pop(key) for key in own}
    return Case(PRESETS["paper"].replace(**{"epochs": 5, "hidden": (6,), **settings}), **shape)


def computed(variant: Case, engine: str) -> Case:
    """The case as the engine is tested on it; skips the test if it does not compute it.

    Triton's interpreter takes `cuda` seconds for what takes a GPU milliseconds: it gets less.
    """
    if engine != "cuda":
        return variant
    if reason := why_not("cuda", variant.model.network.kind) or engines._not_on_a_gpu(
        variant.model
    ):
        pytest.skip(reason)
    if os.environ.get("TRITON_INTERPRET") != "1":
        return variant
    return dataclasses.replace(variant, n=min(variant.n, 4), batch=5, runs=1).replace(epochs=2)


def rms(x: Any) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(np.asarray(x, np.float64))))) if np.size(x) else 0.0


def assert_as_good_as_float32(got: Any, exact: Any, plain: Any, allowance: float = 0.0) -> None:
    """The float rule: rms error at most twice that of a plain float32 computation.

    The plain one may by luck be exact where its numbers are few, so one rounding of numbers of this
    size, 2^-24 of their rms, is allowed on top.
    """
    assert np.shape(got) == np.shape(exact)
    error, bar = rms(np.subtract(got, exact)), rms(np.subtract(plain, exact))
    assert error <= 2.0 * bar + 2.0**-24 * rms(exact) + allowance, f"{error:.3g} against {bar:.3g}"


def refused(kind: type[Exception], *words: str) -> Any:
    """Expect an error whose message holds every word, in order."""
    return pytest.raises(kind, match=".*".join(map(re.escape, words)))


@contextlib.contextmanager
def ctrl_c_is_heard() -> Iterator[None]:
    """Processes started in it hear Ctrl-C; those in the background of a shell would ignore it.

    A handler, whatever it does, is the default again in a new program. `preexec_fn` could do the
    same, but runs Python in a fork of a process that has threads, which may deadlock.
    """
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    had = [signal.signal(number, lambda *_: None) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, had, strict=True):
            signal.signal(number, handler)


# --- temporary files ------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    """Keep them in memory where there is room: SQLite waits for the disk thousands of times."""
    memory = Path("/dev/shm")
    if config.option.basetemp is not None or not os.access(memory, os.W_OK):
        return
    there = os.statvfs(memory)
    if there.f_bavail * there.f_frsize > 2**28 and not there.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))


# --- pytest-xdist ---------------------------------------------------------------------------------


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """For `-n auto`: one more than there are cores, as some tests wait for other processes."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """One thread of BLAS in each process: there is a process a core, and threads wait busily."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_collection(session: pytest.Session) -> None:
    """Let the processes of pytest-xdist share the translation of the tests.

    All of them import every test, in the same order: each would add pytest's assertions to all of
    them and translate them, which takes seconds. So each begins with another part, and reads the
    other parts from the disk, where the others have left them.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    here = Path(__file__).parent
    wanted = [session.config.invocation_params.dir / name for name in session.config.args]
    if count == 1 or not worker.isdecimal() or here not in [path.resolve() for path in wanted]:
        return
    names = sorted(path.stem for path in here.glob("test_*.py"))
    first = int(worker) % count * len(names) // count
    for name in [*names[first:], *names[:first]]:
        # pytest imports those again that cannot be, and says why
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(name)


def pytest_collection_finish() -> None:
    """Let the garbage collector leave alone what is there until the end: modules and tests."""
    gc.freeze()


# --- nothing hangs for ever -----------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """End the process of a test that outlives its time limit by a minute.

    pytest-timeout raises an exception in the main thread. That does not end a loop in compiled
    code, and a `with` that it leaves may wait for what hangs: for a thread or a process.
    """
    marker, option = item.get_closest_marker("timeout"), item.config.getoption("timeout")
    usual = item.config.getini("timeout") if option is None else option
    limit = float(marker.args[0] if marker is not None else usual or 0)
    if limit:
        faulthandler.dump_traceback_later(limit + 60, exit=True, file=_STDERR)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


_STDERR = os.dup(2)  # while tests run, pytest captures what is written to the file 2


# --- Numba ----------------------------------------------------------------------------------------

# The tests that each process begins with compile loops that those of the next do not use.
FIRST = (
    ("test_engines", "test_groups_policy", "test_learned_order", "test_shared"),
    ("test_delta", "test_lists"),
)


@pytest.hookimpl(trylast=True)  # after -m has taken out some
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let no process of pytest-xdist wait for what the other compiles.

    Under `--dist worksteal` each begins with a share of the tests in this order.
    """
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if count == 1:
        return
    starts: list[list[pytest.Item]] = [[] for _ in range(count)]
    others = []
    for item in items:
        places = [k for k, names in enumerate(FIRST) if item.path.stem in names]
        (starts[places[0] % len(starts)] if places else others).append(item)
    share, ordered = len(items) // len(starts), list[pytest.Item]()
    for start in starts[:-1]:
        rest = max(0, share - len(start))
        ordered += [*start, *others[:rest]]
        others = others[rest:]
    items[:] = [*ordered, *starts[-1], *others]


@contextlib.contextmanager
def _one_process_at_a_time(name: str) -> Iterator[None]:
    """A lock between the processes of pytest-xdist, which the system releases when one dies."""
    with (Path(tempfile.gettempdir()) / f"anyorder-tests-{name}.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _compile_once() -> None:
    """Let one process compile a loop, and the others wait for it and read it from the disk.

    Each would compile all of them otherwise, which takes longer than the tests. Loops are locked
    in the order in which they call each other, so that nobody waits for those that wait for him.
    """
    plain = Dispatcher.compile

    @functools.wraps(plain)
    def compile(self: Any, signature: Any) -> Any:
        if not isinstance(self._cache, FunctionCache):
            return plain(self, signature)
        code = self.py_func.__code__
        place = f"{os.getuid()} {code.co_filename} {code.co_firstlineno}"
        name = hashlib.sha256(place.encode()).hexdigest()[:16]
        # the lock of threads first, so that only one thread of a process waits for the other
        with global_compiler_lock, _one_process_at_a_time(name):
            return plain(self, signature)

    Dispatcher.compile = compile


if fcntl is not None and "PYTEST_XDIST_WORKER" in os.environ:
    _compile_once()
