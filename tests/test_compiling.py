"""The first use of compiled loops is announced on a terminal, later ones are not."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from anyorder import Space, maximize
from anyorder.strategies.compiling import announce_compilation, is_compiled


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
    from anyorder.strategies.delta import kernels

    # the loop is first called when the start has been measured
    maximize(sum, Space.binary(4), 5, algorithm="delta", seed=0, progress=False)
    assert numba.config.DISABLE_JIT or is_compiled(kernels.advance)
