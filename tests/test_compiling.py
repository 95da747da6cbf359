"""The first use of compiled loops is announced on a terminal, later ones are not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from conftest import subprocess_environment
from numba.core import caching

from anyorder import Space, maximize
from anyorder._internal import compiling
from anyorder._internal.compiling import announce_compilation, is_compiled
from anyorder.cli import main
from anyorder.cli.compile import compile_runs


def loop() -> None: ...


def compiled(folder: Path) -> Any:
    """What Numba makes of a function that it compiles and caches."""
    return SimpleNamespace(stats=SimpleNamespace(cache_path=str(folder)), py_func=loop)


def test_announced_until_it_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    announce_compilation(compiled(tmp_path), "loops", 20)
    assert capsys.readouterr().err == ""  # nobody waits at a terminal
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    announce_compilation(compiled(tmp_path), "loops", 20)
    assert "compiling loops, once (about 20 s)" in capsys.readouterr().err
    (tmp_path / "test_compiling.loop-7.py311.nbi").touch()
    assert is_compiled(compiled(tmp_path))
    announce_compilation(compiled(tmp_path), "loops", 20)
    assert capsys.readouterr().err == ""


def test_loops_in_use_are_on_disk() -> None:
    numba = pytest.importorskip("numba")
    from anyorder.strategies.models import kernels

    # the loop is first called when the start has been measured
    maximize(sum, Space.binary(4), 5, algorithm="delta", seed=0, progress=False)
    assert numba.config.DISABLE_JIT or is_compiled(kernels.advance)


def test_a_change_of_a_file_beside_a_function_compiles_it_again(tmp_path: Path) -> None:
    """A function holds what it was compiled with, also of modules that it imports from."""
    pytest.importorskip("numba")
    folder = tmp_path / "loops_of_a_test"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "numbers_of_it.py").write_text("ONE = 1\n")
    (folder / "loops.py").write_text(
        "from anyorder._internal.compiling import entry\n"
        "from loops_of_a_test.numbers_of_it import ONE\n"
        "@entry()\ndef one():\n    return ONE\n"
    )
    script = "from loops_of_a_test.loops import one; print(one(), one.stats.cache_hits)"
    printed = []
    for number in (1, 1, 22):
        if number == 22:
            (folder / "numbers_of_it.py").write_text("ONE = 22\n")
        done = subprocess.run(
            [sys.executable, "-B", "-c", script], env=subprocess_environment(), cwd=tmp_path,
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        printed.append(done.stdout.split()[0])
    assert printed == ["1", "1", "22"]


def test_a_cache_that_cannot_be_written_is_one_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    numba = pytest.importorskip("numba")
    plain = numba.njit

    def njit(cache: bool = False, **options: Any) -> Any:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return plain(**options)

    monkeypatch.setattr(compiling, "_warned", False)
    monkeypatch.setattr(numba, "njit", njit)
    functions = [compiling.cached()(lambda x: x + 1), compiling.cached()(lambda x: x + 2)]
    assert [function(1) for function in functions] == [2, 3]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "NUMBA_CACHE_DIR" in caplog.text


def test_a_full_disk_is_one_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    numba = pytest.importorskip("numba")
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")

    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compiling, "_warned", False)
    monkeypatch.setattr(caching.Cache, "save_overload", full)
    assert compiling.cached()(add_three)(1) == 4
    assert "No space left" in caplog.text
    assert len(caplog.records) == 1


def add_three(x: int) -> int:
    return x + 3


def test_the_bound_of_numba_allows_what_is_installed() -> None:
    """The kernels compile with this version: the other tests run them."""
    numba = pytest.importorskip("numba")
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'"numba>=(\d+)\.(\d+),<(\d+)\.(\d+)"', text)
    assert found is not None
    low, high = (int(found[1]), int(found[2])), (int(found[3]), int(found[4]))
    assert low <= tuple(map(int, numba.__version__.split(".")[:2])) < high


def test_a_second_compilation_finds_all_on_disk() -> None:
    numba = pytest.importorskip("numba")
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")
    list(compile_runs(["delta"]))
    assert not [made for _, made, _ in compile_runs(["delta"]) if made]
    got = CliRunner().invoke(main, ["compile", "--algorithms", "nothing"])
    assert got.exit_code == 2
    assert "expected some of auto, delta, policy" in got.output
