"""What somebody does who has never used the library: install, copy from the start page, look."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Seconds of CPU time: what two cores do in three minutes, and what of it may be compiling.
MOST, MOST_COMPILING = 2 * 180, 60


def spent() -> float:
    """Seconds of CPU time of the processes that this one has waited for."""
    times = os.times()
    return times.children_user + times.children_system


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell the times of children")
def test_install_the_first_example_and_its_report(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    first = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    (tmp_path / "first.py").write_text(first, encoding="utf-8")
    command = re.search(r"`anyorder (report run\.db -o run\.html)`", page)
    assert command is not None
    begin = spent()

    venv.create(tmp_path / "venv", with_pip=True)
    scripts = tmp_path / "venv" / "bin"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "compiled")}

    def run(*arguments: str) -> tuple[str, float]:
        before = spent()
        done = subprocess.run(
            [str(scripts / arguments[0]), *arguments[1:]], cwd=tmp_path, env=environment,
            capture_output=True, text=True, encoding="utf-8",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout, spent() - before

    run("pip", "install", "-qq", str(ROOT))
    printed, first_run = run("python", "first.py")
    assert printed.splitlines() == re.findall(r"^print\(.*\)\s+# (.*)$", first, re.MULTILINE)
    run("anyorder", *command[1].split())
    assert "</html>" in (tmp_path / "run.html").read_text(encoding="utf-8")
    assert spent() - begin < MOST

    (tmp_path / "run.db").unlink()
    _, later_run = run("python", "first.py")
    assert first_run - later_run < MOST_COMPILING
