"""The commands: what they print, where, and how they exit."""

from __future__ import annotations

import builtins
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from conftest import ctrl_c_is_heard

import anyorder
from anyorder.cli import main
from anyorder.strategies.policy.engines import ENGINES, choose, make_model, why_not

FAST = "policy+epochs=2+hidden=(3,)"
QUICK = ["--budget", "60", "--seed", "0", "--algorithm", FAST]


def on(engine: str) -> list[str]:
    return ["--algorithm", f"{FAST}+engine={engine}"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["nk", "--n", "16", "--k", "2"], "nk:n=16,k=2,seed=0"),
        (["nk:n=16,k=2,seed=5"], "nk:n=16,k=2,seed=5"),
        (["nkd", "--n", "8", "--k", "1", "--d", "3", "--instance", "2"], "nkd:n=8,k=1,d=3,seed=2"),
        (["qubo", "--n", "16", "--type", "3"], "qubo:n=16,type=3,seed=0"),
        (["onemax", "--n", "10"], "onemax:n=10"),
    ],
)
def test_solve(arguments: list[str], name: str) -> None:
    text = run("solve", *arguments, *QUICK)
    assert text.exit_code == 0
    assert name in text.output
    assert "60, stopped by budget" in text.output
    answer = json.loads(run("solve", *arguments, *QUICK, "--json").output)
    problem = anyorder.problems.get(name)
    assert answer["problem"].startswith(name)
    assert problem(answer["best"]) == pytest.approx(answer["best_value"])
    assert answer["settings"]["hidden"] == [3]
    assert answer["evaluations"] == 60


def test_solve_repeats_itself_on_both_engines() -> None:
    answers = [
        json.loads(run("solve", "nk", "--n", "12", *QUICK, "--json", *on(engine)).output)
        for engine in ("cpu", "reference", "cpu")
    ]
    assert answers[0]["best"] == answers[1]["best"] == answers[2]["best"]
    assert [answer["settings"]["engine"] for answer in answers] == ["cpu", "reference", "cpu"]


@pytest.mark.gpu
def test_solve_on_a_gpu() -> None:
    if (missing := why_not("cuda")) is not None:
        pytest.skip(missing)
    answers = [
        json.loads(run("solve", "nk", "--n", "12", *QUICK, "--json", *on(engine)).output)
        for engine in ("cuda", "reference")
    ]
    assert answers[0]["best"] == answers[1]["best"]
    assert answers[0]["settings"]["engine"] == "cuda"


def test_an_engine_that_cannot_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "anyorder.strategies.policy.engines._why_no_cuda", lambda: "it is not there"
    )
    result = run("solve", "nk", "--n", "12", *QUICK, *on("cuda"))
    assert result.exit_code == 1
    assert result.output == "Error: the engine 'cuda' cannot run here: it is not there\n"


def test_every_hundredth_best_value(tmp_path: Path) -> None:
    answer = json.loads(
        run("solve", "onemax", "--n", "8", *QUICK, "--budget", "250", "--json",
            "--output", str(tmp_path / "a.png")).output
    )  # fmt: skip
    assert len(answer["best_every_100"]) == 2
    assert answer["best_every_100"][-1] <= answer["best_value"]
    assert (tmp_path / "a.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nkk"], "nk"),
        (["nk", "--type", "2"], "type"),
        (["nk", "--n", "0"], "n is 0"),
        (["nk:n=x"], "x"),
        (["nk:n=16", "--k", "2"], "--k given beside the full name"),
        (["nk", "--budget", "0"], "budget is 0"),
        (["onemax", "--instance", "1"], "onemax has no --instance"),
        (["nk", "--algorithm", "policy+beta=1e999"], "expected a finite number"),
        (["nk", "--seed", "-1"], "seed is -1"),
        (["nk", "--algorithm", "policy+betta=2"], "did you mean 'beta'"),
        (["nk", "--algorithm", "policy+beta=x"], "beta is 'x', expected a finite number"),
        (
            ["nk", "--algorithm", "policy+population=1"],
            "population is 1, expected an integer of at least 2",
        ),
        (["nk", "--algorithm", "policy:papre"], "did you mean 'paper'"),
        (["nk", "--algorithm", "policy+engine=gpu"], "reference"),
    ],
)
def test_bad_usage_exits_with_2_and_says_why(arguments: list[str], message: str) -> None:
    result = run("solve", *arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_a_figure_that_cannot_be_written(tmp_path: Path) -> None:
    result = run("solve", "onemax", "--n", "4", *QUICK, "--output", str(tmp_path / "no" / "a.png"))
    assert result.exit_code == 2  # seen before anything is spent
    assert "no such folder" in result.output
    result = run("solve", "onemax", "--n", "4", *QUICK, "--output", str(tmp_path / "a.xyz"))
    assert result.exit_code == 1
    assert "best value" in result.output  # the run is not lost
    assert "xyz" in result.output


def test_info_names_the_engines() -> None:
    text = run("info").output
    assert anyorder.__version__ in text
    assert "reference" in text
    facts = json.loads(run("info", "--json").output)
    assert facts["engines"]["cpu"] == {"runs": True, "why_not": None}
    assert list(facts["engines"]) == list(ENGINES)


def unfound(name: str) -> str:
    raise metadata.PackageNotFoundError(name)


def test_a_triton_by_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", types.SimpleNamespace(__version__="3.2.0"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(metadata, "version", unfound)
    assert why_not("cuda") == "Triton 3.2.0 is too old, expected 3.6 or later"


@pytest.mark.parametrize(("module", "title"), [("triton", "Triton"), ("torch", "PyTorch")])
def test_what_does_not_import(module: str, title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def without(name: str, *rest: Any, **options: Any) -> Any:
        if name == module:
            raise OSError("libcudart.so.12: cannot open shared object file")
        return plain(name, *rest, **options)

    plain = builtins.__import__
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(importlib, "import_module", without)
    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr(metadata, "version", unfound if module == "triton" else lambda name: "9.9")
    reason = why_not("cuda")
    assert reason == f"{title} is installed, but does not import: libcudart.so.12: cannot open " \
                     "shared object file"  # fmt: skip
    monkeypatch.setattr("anyorder.strategies.policy.engines._may_have_a_gpu", lambda: True)
    assert choose(make_model([2] * 4, [False] * 4, anyorder.policy.Config())) == ("cpu", reason)


def test_an_engine_that_there_is_not() -> None:
    with pytest.raises(
        ValueError, match=r"unknown engine 'gpu'.* expected one of cuda, cpu, reference"
    ):
        why_not("gpu")


@pytest.mark.parametrize("missing", [None, "it is not there"])
def test_info_says_what_auto_takes(missing: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyorder.strategies.policy.engines._may_have_a_gpu", lambda: True)
    monkeypatch.setattr("anyorder.strategies.policy.engines._why_no_cuda", lambda: missing)
    text, facts = run("info").output, json.loads(run("info", "--json").output)
    assert facts["engines"]["cuda"] == {"runs": missing is None, "why_not": missing}
    assert f"cannot run here: {missing}" in text or missing is None
    engine, reason = choose(make_model([2] * 128, [False] * 128, anyorder.policy.Config()))
    assert facts["auto"] == {"n": 128, "runs": 1, "takes": engine, "reason": reason}
    assert f"takes {engine} for one run of 128 bits: {reason}" in text
    assert missing is None or reason == missing


def test_info_says_why_an_engine_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "cannot run here: Numba is not installed" in run("info").output
    with pytest.raises(RuntimeError, match="cannot run here: Numba is not installed"):
        anyorder.Optimizer(anyorder.Space.binary(3), algorithm=anyorder.policy.Policy(engine="cpu"))
    policy = anyorder.Optimizer(
        anyorder.Space.binary(3), algorithm=anyorder.policy.Policy(engine="auto")
    )
    assert policy.strategy.settings()["engine"] == "reference"


def test_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "anyorder", "--version"],
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    assert anyorder.__version__ in done.stdout


HEAVY = """
import sys, anyorder
heavy = {
    "numba", "matplotlib", "scipy", "torch", "tqdm", "plotly", "starlette", "uvicorn", "pandas"
}
imported = {"import anyorder": sorted((heavy | {"click"}) & sys.modules.keys())}
from anyorder.cli import main
for arguments in (["--help"], ["bench", "table", "--help"], ["problems"]):
    main(arguments, standalone_mode=False)
    imported[" ".join(arguments)] = sorted(heavy & sys.modules.keys())
print({what: modules for what, modules in imported.items() if modules})
"""


def test_the_package_and_its_commands_import_only_what_they_use() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HEAVY], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    assert done.stdout.splitlines()[-1] == "{}"


RED = "\x1b[31mred\x07\x9b"


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    (tmp_path / f"{RED}.toml").write_text("x", encoding="utf-8")
    failing = tmp_path / "failing.toml"
    script = r"printf '\\\\033[31mred' >&2; exit 1"
    failing.write_text(
        'direction = "minimize"\nbudget = 3\non_failure = "worst"\n[settings]\nhidden = [3]\n'
        '[space]\nx = ["a", "b"]\n[command]\nshell = true\n'
        f'arguments = "{script} # $AO_x"\n',
        encoding="utf-8",
    )
    campaign = tmp_path / "campaign.toml"
    campaign.write_text(
        'budget = 2\nruns = 1\n[[algorithm]]\nname = "random"\nlabel = "\\u001b[31mred"\n'
        '[[problem]]\nproblem = "onemax:n=4"\n',
        encoding="utf-8",
    )
    runs = str(tmp_path / "runs.db")
    for arguments in [
        ["solve", "nk", "--output", f"/{RED}/a.png"],
        ["solve", f"nk{RED}"],
        ["solve", "nk", f"--{RED}"],
        [f"--{RED}"],
        [RED],
        ["run", str(tmp_path / f"{RED}.toml")],
        ["run", str(failing)],
        ["show", str(tmp_path / RED)],
        ["bench", "run", str(campaign), "--output", runs],
        ["bench", "status", runs],
        ["bench", "table", runs],
        ["bench", "table", runs, "--algorithms", RED],
    ]:
        output = CliRunner().invoke(main, arguments, color=True).output
        assert output, arguments
        assert not set(output) & {"\x1b", "\x07", "\x9b"}, arguments
    assert r"\x1b[31mred" in CliRunner().invoke(main, ["bench", "table", runs], color=True).output


def test_silent_when_not_a_terminal() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "anyorder", "solve", "onemax", "--n", "6", *QUICK],
        capture_output=True, text=True, check=True,
        encoding="utf-8",
    )  # fmt: skip
    assert done.stderr == ""


def test_problems() -> None:
    text, listed = run("problems"), json.loads(run("problems", "--json").output)
    assert [entry["name"] for entry in listed] == sorted(anyorder.problems.registry)
    for entry in listed:
        assert entry["name"] in text.output
        assert entry["description"] in text.output
    assert "nk:n=128,k=4,seed=0" in text.output


def test_a_file_that_is_not_there() -> None:
    done = run("solve", "maxcut:file=no_such_file.txt", *QUICK)
    assert done.exit_code == 1
    assert "no_such_file.txt" in done.output
    assert "Traceback" not in done.output


# A problem whose evaluations never end; `python -m anyorder`, or what the installed script calls.
HELD = """
import runpy, sys, time
from importlib.metadata import entry_points
from pathlib import Path
import anyorder

class Held(anyorder.problems.Problem):
    def _values(self, points):
        Path("begun").touch()
        while True:
            time.sleep(0.01)

anyorder.problems.register("held", lambda: Held("held:", anyorder.Space.binary(4)), "never ends")
if sys.argv.pop(1) == "module":
    runpy.run_module("anyorder", run_name="__main__")
else:
    (script,) = entry_points(group="console_scripts", name="anyorder")
    sys.exit(script.load()())
"""


@pytest.mark.skipif(os.name != "posix", reason="signals as Linux and macOS have them")
@pytest.mark.parametrize(
    ("way", "command", "presses"),
    [
        ("module", "solve held", 2),
        ("script", "compare held --algorithms policy", 2),
        ("module", "compare held --algorithms random", 2),
        ("script", "solve held --algorithm random", 2),
    ],
)
def test_ctrl_c_that_leaves_at_once_exits_with_130(
    way: str, command: str, presses: int, tmp_path: Path
) -> None:
    (tmp_path / "held.py").write_text(HELD, encoding="utf-8")
    said = tmp_path / "said"
    with said.open("w", encoding="utf-8") as stderr, ctrl_c_is_heard():
        process = subprocess.Popen(
            [sys.executable, "held.py", way, *command.split()], cwd=tmp_path,
            stdout=subprocess.PIPE, stderr=stderr,
        )  # fmt: skip
    with process:
        try:
            wait_for(process, (tmp_path / "begun").exists)
            process.send_signal(signal.SIGINT)
            if presses == 2:
                wait_for(process, lambda: "Ctrl-C again" in said.read_text(encoding="utf-8"))
                process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, said.read_text(encoding="utf-8")
    assert out == b""
    waits = ["finishing what is being evaluated; press Ctrl-C again to stop at once"]
    assert said.read_text(encoding="utf-8").splitlines() == [
        *waits[: presses - 1],
        "interrupted: left at once",
    ]


def wait_for(process: subprocess.Popen[bytes], condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, "it ended"
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
