"""A program as the function: the problem file, the command line, the value, how it ends."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from children import wait_until
from click.testing import CliRunner
from conftest import ctrl_c_is_heard

import anyorder as ao
from anyorder.cli import main
from anyorder.errors import Infeasible
from anyorder.program.command import Command
from anyorder.program.file import read

if os.name != "posix":
    pytest.skip("a program as the function requires Linux or macOS", allow_module_level=True)

GOOD = """\
direction = "minimize"
budget = 30
seed = 0

[space]
optimise = ["-O1", "-O2", "-Os"]
unroll = { flag = "-funroll-loops" }
level = { low = 1, high = 8 }
debug = "binary"

[command]
arguments = ["echo", "{optimise}", "{unroll}", "--level={level}", "{debug}"]
"""
POINT = {"optimise": "-Os", "unroll": True, "level": 3, "debug": False}


def python(code: str, *arguments: str, **options: Any) -> Command:
    return Command((sys.executable, "-c", code, *arguments), **options)


def shell(script: str, **options: Any) -> Command:
    return Command(script, **options)


def write(folder: Path, text: str) -> Path:
    path = folder / "problem.toml"
    path.write_text(text, encoding="utf-8")
    return path


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet has, too."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
            if (
                Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
                == "Z"
            ):
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.05)
    return False


# --- the file -----------------------------------------------------------------------------------


def test_a_file_says_everything(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    text = GOOD.replace(
        "seed = 0",
        'seed = 7\nalgorithm = "policy:paper"\nworkers = 2\n'
        'timeout = 2.5\nretries = 1\non_failure = "worst"\n'
        'study = "runs.db"\ntarget = 3\nmax_seconds = 60\npatience = 20\n'
        "asynchronous = true\ndeterministic = false",
    )
    text += 'directory = "sub"\nenvironment = { CC = "gcc", N = 2 }\ninfeasible_status = 3\n'
    text += '[value]\nregex = "size: (\\\\d+)"\n[settings]\nbeta = 2\nhidden = [5]\n'
    job = read(write(tmp_path, text))
    assert job.space == ao.Space(
        {
            "optimise": ao.Categorical(["-O1", "-O2", "-Os"]),
            "unroll": ao.Binary(),
            "level": ao.Integer(1, 8),
            "debug": ao.Binary(),
        }
    )
    assert (job.direction, job.budget, job.workers) == ("minimize", 30, 2)
    assert job.options == {
        "seed": 7,
        "algorithm": "policy:paper+beta=2+hidden=[5]",
        "retries": 1,
        "on_failure": "worst",
        "study": tmp_path / "runs.db",
        "target": 3,
        "max_seconds": 60,
        "patience": 20,
        "asynchronous": True,
        "deterministic": False,
    }
    command = job.command
    assert command.flags == {"unroll": "-funroll-loops"}
    assert command.directory == tmp_path / "sub"
    assert command.environment == {"CC": "gcc", "N": "2"}
    assert (command.regex, command.timeout, command.infeasible_status) == (r"size: (\d+)", 2.5, 3)


def test_what_a_file_does_not_say_is_left_to_the_loop(tmp_path: Path) -> None:
    job = read(write(tmp_path, GOOD.replace("seed = 0\n", "")))
    assert job.options == {}
    assert (job.workers, job.command.timeout, job.command.directory) == (1, None, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("budget = 30", "budgte = 30", "line 2: unknown key 'budgte' (did you mean 'budget'?)"),
        ("budget = 30", "budget = 0", "line 2: budget is 0, expected an integer of at least 1"),
        ("budget = 30", "budget = true", "line 2: budget is True, expected an integer"),
        ("budget = 30", "budget = 3O", "at line 2"),
        ('"minimize"', '"min"', "line 1: direction is 'min' (did you mean 'minimize'?)"),
        ("seed = 0", 'config = "paper"', "line 3: unknown key 'config'"),
        ("seed = 0", 'algorithm = "policy:papre"', "line 3: unknown preset 'papre' (did you mean"),
        ("seed = 0", 'algorithm = "ils+kik=3"', "line 3: unknown setting of ils 'kik' (did you"),
        ("seed = 0", "timeout = 0", "line 3: timeout is 0, expected a finite number"),
        ("seed = 0", "timeout = inf", "line 3: timeout is inf, expected a finite number"),
        ("seed = 0", "target = nan", "line 3: target is nan, expected a number"),
        ("seed = 0", 'on_failure = "ignore"', "line 3: on_failure is 'ignore', expected one of"),
        ("seed = 0", "workers = 1.5", "line 3: workers is 1.5, expected an integer"),
        ("seed = 0", "settings = 3", "line 3: settings is 3, expected a [section]"),
        ("seed = 0", 'algorithm = "policy"\nsettings = { betta = 2 }',
         "line 4: unknown setting 'betta'"),
        ("seed = 0", 'algorithm = "policy"\nsettings = { beta = -1 }',
         "line 4: beta is -1, expected a finite number"),
        ("[command]", "[comand]", "line 11: unknown key 'comand' (did you mean 'command'?)"),
        ('["-O1", "-O2", "-Os"]', "[]", "line 6: values is empty"),
        ('["-O1", "-O2", "-Os"]', "[[1]]", "line 6: optimise has [1], expected text"),
        ('["-O1", "-O2", "-Os"]', '"-O1"', "line 6: optimise is '-O1', expected a list"),
        ("flag =", "flagg =", "line 7: unroll is {'flagg': '-funroll-loops'}, expected a list"),
        ('"-funroll-loops"', "3", "line 7: flag is 3, expected text"),
        ("high = 8", "high = 0", "line 8: low is 1 and high is 0"),
        ("high = 8", "high = 8.5", "line 8: low is 1 and high is 8.5, expected integers"),
        ("level = {", "point = {", "line 8: a variable cannot be called 'point'"),
        ("{unroll}", "{unrol}", "line 12: unknown {unrol} (did you mean 'unroll'?)"),
        ("{unroll}", "{unroll", "line 12: lone { in '{unroll', a brace is written twice"),
        ("--level={level}", "x", "line 12: {level} is in no argument"),
        ('"echo"', '"no_such_program"', "line 12: there is no program 'no_such_program' on this"),
        ('"echo"', '"./no.sh"', "line 12: there is no program './no.sh' in "),
        ('"echo"', "3", "line 12: arguments[0] is 3, expected text"),
        ("arguments = [", "arguments = 3 #", "line 12: arguments is 3, expected a list"),
        ("arguments = [", "arguments = [] #", "line 12: arguments is [], expected a list"),
        ("arguments = [", 'arguments = "echo" #', "expected a list without shell = true"),
        ("[command]", "[command]\nshell = true", "line 13: arguments is ('echo'"),
        ("[command]", "[command]\nshell = 1", "line 12: shell is 1, expected true or false"),
        ("[command]", '[command]\ndirectory = "no"', "line 12: directory is '"),
        ("[command]", "[command]\nworkers = 2", "(it belongs above the first [section])"),
        ("[command]", '[command]\nenvironment = { A = "{x}" }', "line 12: unknown {x}"),
        ("[command]", "[command]\nenvironment = { A = [] }", "line 12: A is [], expected a string"),
        ("[command]", "[command]\ninfeasible_status = 0", "line 12: infeasible_status is 0"),
        ("[command]", "[value]\nregex = '('\n[command]", "line 12: regex is '(', no regular"),
        ("[command]", "[value]\nregex = 'a'\n[command]", "line 12: regex is 'a', expected a group"),
        ("[command]", "[value]\njson='a'\nregex='(a)'\n[command]", "line 11: json and regex given"),
        ("[command]", "[value]\nfrom = 'stderr'\n[command]", "line 12: from is 'stderr', expected"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert old in GOOD
    path = write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        read(path)
    assert str(error.value).startswith(str(path))


def test_lines_of_keys_in_other_places(tmp_path: Path) -> None:
    text = GOOD.replace("level = { low = 1, high = 8 }\n", "")
    path = write(tmp_path, text + '[space."level"]\nlow = 1\nhigh = "x"\n')
    with pytest.raises(ValueError, match=r"line 12: high is 'x', expected an integer"):
        read(path)
    path.write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"problem.toml: 'utf-8' codec"):
        read(path)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "no.toml")


# --- the command line ---------------------------------------------------------------------------


def test_placeholders() -> None:
    command = Command(
        ("run", "{o}", "{flag}", "-l={n}", "[{flag}]", "{{n}}{{{n}}}", "{on}", "{x}", "{point}"),
        flags={"flag": "-f a"},
    )
    point = {"o": "a b", "flag": True, "n": 3, "on": False, "x": 0.5}
    there = ["run", "a b", "-f a", "-l=3", "[-f a]", "{n}{3}", "false", "0.5", json.dumps(point)]
    assert command._fill(point, "")[0] == there
    absent = command._fill(point | {"flag": False, "on": True}, "")[0]
    assert absent[:7] == ["run", "a b", "-l=3", "[]", "{n}{3}", "true", "0.5"]
    assert command.line(point).startswith("run 'a b' '-f a' -l=3")
    with pytest.raises(ValueError, match=r"unknown \{m\}"):
        Command(("run", "{m}"))(point)


NASTY = """it's "$(touch hacked)" `touch hacked`; touch hacked & {n} \\ * $HOME\n!"""


@pytest.mark.parametrize("through_a_shell", [False, True])
def test_values_arrive_as_they_are(through_a_shell: bool, tmp_path: Path) -> None:
    check = f"import sys, os; ok = sys.argv[1] == os.environ['X'] == {NASTY!r}; print(int(ok))"
    arguments: Any = (sys.executable, "-c", "{code}", "{x}")
    if through_a_shell:
        arguments = f'{sys.executable} -c "$AO_code" "$AO_x" | cat'
    command = Command(arguments, directory=tmp_path, environment={"X": "{x}"})
    assert command({"x": NASTY, "code": check}) == 1
    assert list(tmp_path.iterdir()) == []


def test_an_absent_flag_is_nothing_to_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    command = shell("set -- $AO_f b; echo $#", flags={"f": "-x"})
    assert command({"f": True}) == 2
    assert command({"f": False}) == 1
    monkeypatch.setenv("AO_f", "from outside")
    assert command({"f": False}) == 1


SHELLS = [name for name in ("dash", "bash") if shutil.which(name)]


@pytest.mark.parametrize("interpreter", SHELLS)
@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("cat <<END\n$AO_x\nEND\n", "$(touch hacked)"),
        ("cat <<END\n$AO_x\nEND\n", "END\ntouch hacked"),
        ('echo "${V:-"$AO_x"}"', '"; touch hacked; "'),
        ('echo "$AO_x"', "$(touch hacked)`touch hacked`"),
        ('echo "$(echo "$AO_x")" $AO_x', "'; touch hacked; '\";touch hacked"),
        ("case b in a) echo 1;; b) echo ${AO_x};; esac", "; touch hacked"),
        ("$AO_x || true", "touch;hacked"),
        ("sh -c 'echo \"$AO_x\"'", "it's; touch hacked"),
    ],
)
def test_a_shell_never_runs_a_value(
    script: str, value: str, interpreter: str, tmp_path: Path
) -> None:
    command = shell(f"{script}\necho 7", directory=tmp_path)
    line = command.line({"x": value})  # what a person pastes does the same
    subprocess.run([interpreter, "-c", line], cwd=tmp_path, capture_output=True, check=True)
    assert command({"x": value}) == 7
    assert list(tmp_path.iterdir()) == []


def test_a_script_with_a_scratch_folder_can_be_pasted() -> None:
    script = 'echo "$AO_x" > $AO_scratch/a; cat "$AO_scratch/a"; rm -r $AO_scratch'
    done = subprocess.run(
        ["/bin/sh", "-c", shell(script).line({"x": "it's  a*"})],
        capture_output=True, text=True, check=True, encoding="utf-8",
    )  # fmt: skip
    assert done.stdout == "it's  a*\n"


def test_only_what_a_script_names_is_in_its_environment() -> None:
    command = shell("echo $AO_ab; env | grep -c ^AO_")
    assert command({"x": "y" * 200_000, "ab": 2, "a": 3}) == 1


@pytest.mark.parametrize(
    ("space", "script", "message"),
    [
        ("level = [1]", "echo ${AO_levl}", r"unknown \$AO_levl \(did you mean '\$AO_level'\?\)"),
        ("x = [1]", "echo {x}", r"line 7: \$AO_x is not in the script: the variable has no effect"),
        ('a-b = [1]\n"a b" = [1]', "echo $AO_a_b", r"'a-b' and 'a b' are both \$AO_a_b"),
    ],
)
def test_the_variables_of_a_script_are_checked(
    space: str, script: str, message: str, tmp_path: Path
) -> None:
    path = write(
        tmp_path,
        f'direction = "minimize"\nbudget = 1\n[space]\n{space}\n[command]\nshell = true\n'
        f"arguments = {json.dumps(script)}\n",
    )
    with pytest.raises(ValueError, match=message):
        read(path)


def test_each_evaluation_has_its_own_scratch_folder_which_is_removed() -> None:
    script = "echo $AO_x > $AO_scratch/a && ls -A $AO_scratch | wc -l; echo $AO_scratch >&2; exit 1"
    command = shell(script)
    with pytest.raises(RuntimeError) as error:
        command({"x": 1})
    folder = Path(str(error.value).splitlines()[-1].rpartition(": ")[2])
    assert folder.name.startswith("anyorder-")
    assert not folder.exists()
    alone = shell("ls -A $AO_scratch | wc -l; touch $AO_scratch/a; sleep 0.1")
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(alone, [{}] * 8)) == [0] * 8


def test_where_it_runs(tmp_path: Path) -> None:
    (tmp_path / "seven.sh").write_text("#!/bin/sh\necho $X\n", encoding="utf-8")
    (tmp_path / "seven.sh").chmod(0o755)
    command = Command(("./seven.sh",), directory=tmp_path, environment={"X": "{x}.5"})
    assert command({"x": 7}) == 7.5


def test_it_travels_to_other_processes() -> None:
    command = pickle.loads(pickle.dumps(python("print({x})")))
    assert command({"x": 4}) == 4


# --- the value ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "where", "value"),
    [
        ("1\n2.5e3\n\n", {}, 2500),
        ("  -inf ", {}, -float("inf")),
        ("size: 3\nsize: 4 kB\n", {"regex": r"size: (\d+)"}, 4),
        ("a 1\nb 2\n", {"regex": r"^a (\d)$"}, 1),
        ('{"metrics": {"size": [1, 7]}}', {"json": "metrics.size.1"}, 7),
        ('a log\n{"size": 2}\n', {"json": "size"}, 2),
        ('{\n"size": 2.5\n}', {"json": "size"}, 2.5),
    ],
)
def test_values(printed: str, where: dict[str, str], value: float) -> None:
    assert Command(("printf", "%s", "{x}"), **where)({"x": printed}) == value


@pytest.mark.parametrize(
    ("printed", "where", "message"),
    [
        ("", {}, "nothing on stdout, expected a number"),
        ("12 bytes", {}, "the value is '12 bytes', expected a number: printf %s '12 bytes'"),
        ("nan", {}, "the value is 'nan'"),
        ("sizes", {"regex": r"size: (\d+)"}, r"no match of 'size: (\\d+)' in stdout"),
        ("size: x", {"regex": r"size: (\d+)?"}, "the value is None"),
        ("size", {"json": "size"}, "neither stdout nor its last line is JSON"),
        ('{"a": 1}', {"json": "b"}, "no 'b', of 'b', in the JSON {'a': 1}"),
        ('{"a": [1]}', {"json": "a.1"}, "no '1', of 'a.1', in the JSON [1]"),
        ('{"a": true}', {"json": "a"}, "the value is True"),
        ('{"a": "1"}', {"json": "a"}, "the value is '1'"),
        ('{"a": null}', {"json": "a"}, "the value is None"),
        ("1" + "0" * 400, {"json": "a"}, "no 'a', of 'a', in the JSON 1000"),
    ],
)
def test_no_value(printed: str, where: dict[str, str], message: str) -> None:
    with pytest.raises(RuntimeError) as error:
        Command(("printf", "%s", "{x}"), **where)({"x": printed})
    assert message in str(error.value)


def test_notes(tmp_path: Path) -> None:
    where = {
        "size": {"regex": r"size: (\d+)"}, "log": {"regex": "log: (.*)"}, "gone": {"regex": "x(y)"},
        "parts": {"json": "parts"}, "none": {"json": "b.c"},
    }  # fmt: skip
    printed = 'size: 12\nlog: a.txt\n{"v": 2, "parts": [1, "p"]}\n'
    command = Command(("printf", "%s", "{x}"), json="v", notes=where)
    assert command({"x": printed}) == ao.Measured(
        2.0, {"size": 12.0, "log": "a.txt", "parts": [1, "p"]}
    )
    path = write(
        tmp_path,
        'direction = "maximize"\nbudget = 3\nalgorithm = "random"\nseed = 0\n'
        '[space]\na = [1, 2, 3]\n[command]\narguments = ["printf", "size: %s\\n{a}", "{a}"]\n'
        '[notes]\nsize = { regex = "size: (.*)" }\n',
    )
    assert read(path).command.notes == {"size": {"regex": "size: (.*)"}}
    study = tmp_path / "run.db"
    done = CliRunner().invoke(main, ["run", str(path), "--study", str(study)])
    assert done.exit_code == 0, done.output
    history = ao.load(study)
    noted = [note["size"] for note in history.notes.values()]
    assert noted == history.values[~history.cached].tolist()


@pytest.mark.parametrize(
    ("notes", "message"),
    [
        ('size = "x"', "size is 'x', expected"),
        ("size = {}", "size has 0 places, expected one: regex or json"),
        ('size = { regex = "(a)", json = "b" }', "size has 2 places"),
        ('size = { regex = "a" }', "a group around the value"),
        ('size = { rgex = "(a)" }', "unknown key 'rgex'"),
    ],
)
def test_what_is_wrong_with_notes(tmp_path: Path, notes: str, message: str) -> None:
    path = write(
        tmp_path,
        'direction = "maximize"\nbudget = 3\n[space]\na = [1, 2]\n[command]\n'
        f'arguments = ["echo", "{{a}}"]\n[notes]\n{notes}\n',
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        read(path)


# --- how it ends --------------------------------------------------------------------------------


def test_a_failure_shows_the_command_the_status_and_the_end_of_stderr() -> None:
    command = python("import sys; print(5); sys.exit('x' * 2000 + ' no such option {x}')", "{x}")
    with pytest.raises(RuntimeError) as error:
        command({"x": "-q"})
    text = str(error.value)
    assert text.startswith(f"exit status 1: {sys.executable} -c ")
    assert text.endswith("xxx no such option -q")
    assert len(text) < 1_500
    with pytest.raises(RuntimeError, match=r"exit status 2: .*: it printed nothing"):
        shell("exit 2")({})
    with pytest.raises(RuntimeError, match="killed by signal 9"):
        shell("kill -9 $$")({})
    with pytest.raises(RuntimeError, match=r"cannot run no_such_program: .*No such file"):
        Command(("no_such_program",))({})


def test_a_status_may_say_infeasible() -> None:
    with pytest.raises(Infeasible, match=r"exit status 3: .*: too big"):
        shell("echo too big >&2; exit 3", infeasible_status=3)({})
    with pytest.raises(RuntimeError, match="exit status 4"):
        shell("exit 4", infeasible_status=3)({})


def test_a_timeout_kills_the_children_too(tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! > {tmp_path}/child; (sleep 60; echo) & echo $$ > {tmp_path}/self"
    command = shell(f"{script}; wait; echo 1", timeout=0.5)
    start = time.monotonic()
    with pytest.raises(TimeoutError, match=r"no end after 0.5 s: sleep 60"):
        command({})
    assert time.monotonic() - start < 50  # of the minute that it sleeps
    assert gone(int((tmp_path / "child").read_text(encoding="utf-8")))
    itself = int((tmp_path / "self").read_text(encoding="utf-8"))
    with pytest.raises(ChildProcessError):  # not even a zombie
        os.waitpid(itself, os.WNOHANG)


def test_a_timeout_of_one_that_has_closed_its_output() -> None:
    with pytest.raises(TimeoutError):
        shell("exec >&- 2>&-; sleep 60", timeout=0.5)({})
    assert shell("echo 3; exec >&- 2>&-; sleep 0.3", timeout=30)({}) == 3


def test_what_a_command_leaves_behind_neither_delays_it_nor_stays(tmp_path: Path) -> None:
    start = time.monotonic()
    assert shell(f"sleep 60 & echo $! > {tmp_path}/child; echo 5")({}) == 5
    assert time.monotonic() - start < 50  # of the minute that it sleeps
    assert gone(int((tmp_path / "child").read_text(encoding="utf-8")))


@pytest.mark.parametrize("timeout", [float("inf"), float("nan"), 1e10, 0, -1, True, "3"])
def test_time_limits_that_are_refused(timeout: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"timeout is .*, expected a finite number"):
        shell("echo 1", timeout=timeout)


@pytest.mark.parametrize("timeout", [3e6, 1e9])
def test_time_limits_beyond_what_the_system_can_wait(timeout: float) -> None:
    assert shell("sleep 0.2; echo 1", timeout=timeout)({}) == 1


def test_much_output_on_both_pipes() -> None:
    code = (
        "import sys\n"
        "for _ in range(200):\n"
        "    sys.stderr.write('e' * 50_000 + '\\n'); sys.stdout.write('o' * 50_000 + '\\n')\n"
        "print(6)"
    )
    assert python(code.replace("{", "{{"))({}) == 6


ENDLESS = {"regex": "((a+)+)$"}  # exponential in the number of a's


def test_a_timeout_covers_the_regular_expression(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyorder.program.command._MATCH_GRACE", 0.2)
    command = Command(("echo", "a" * 44 + "X"), timeout=0.5, **ENDLESS)
    with ThreadPoolExecutor(1) as pool, pytest.raises(TimeoutError, match=r"no end after 0.5 s"):
        pool.submit(command, {}).result()
    assert Command(("echo", "7a12"), regex=r"a(\d+)")({}) == 12  # a new process answers


def test_stop_ends_a_search() -> None:
    command = Command(("echo", "a" * 44 + "X"), **ENDLESS)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(command, {})
        time.sleep(0.3)
        command.stop()
        assert "stopped" in str(running.exception())


def test_a_long_text_is_searched() -> None:
    code = "print('x' * 3_000_000); print('size 5 ä')"
    assert python(code, regex=r"size (\d) ä")({}) == 5


def test_stop_ends_what_runs_in_other_threads() -> None:
    command = shell("sleep 60; echo 1")
    start = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(command, {}) for _ in range(4)]
        time.sleep(0.3)
        command.stop()
    assert time.monotonic() - start < 50  # of the minute that it sleeps
    assert all("stopped" in str(future.exception()) for future in running)


# --- anyorder run -------------------------------------------------------------------------------

SCRIPT = """\
if [ "$2" = bad ]; then echo bad mode >&2; exit 1; fi
miss=$(($1 > 5 ? $1 - 5 : 5 - $1))
if [ "$3" = --fast ]; then echo cost $miss; else echo cost $((miss + 1)); fi
"""
SETTINGS = """\
algorithm = "policy"
[settings]
epochs = 3
hidden = [4]
"""
PROBLEM = f"""\
direction = "minimize"
budget = 60
seed = 0
workers = 2
on_failure = "worst"
{SETTINGS}[space]
level = {{ low = 1, high = 50 }}
mode = ["a", "bad", "b"]
fast = {{ flag = "--fast" }}
[command]
arguments = ["/bin/sh", "script.sh", "{{level}}", "{{mode}}", "{{fast}}"]
[value]
regex = "cost (.*)"
"""


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    (tmp_path / "script.sh").write_text(SCRIPT, encoding="utf-8")
    return write(tmp_path, PROBLEM)


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(main, ["run", *map(str, arguments)])


def test_run(problem: Path, tmp_path: Path) -> None:
    answer = json.loads(invoke(problem, "--json").stdout)
    best = answer["best"]
    assert answer["best_value"] == abs(best["level"] - 5) + (not best["fast"])
    assert best["mode"] != "bad"
    assert answer["evaluations"] == 60
    assert 0 < answer["failures"] < 60
    text = invoke(problem, "--workers", 1, "--output", tmp_path / "a.png")
    assert text.exit_code == 0
    rows = dict(re.split("  +", line, maxsplit=1) for line in text.stdout.splitlines())
    assert rows["problem"] == f"minimize {problem}"
    assert rows["best value"] == f"{answer['best_value']:g}"
    assert rows["evaluations"] == f"60, {answer['failures']} of them failed, stopped by budget"
    assert json.loads(rows["best point"]) == best
    assert rows["command"] == answer["command"]
    assert answer["command"].startswith(f"/bin/sh script.sh {best['level']} ")
    assert (tmp_path / "a.png").exists()


def test_run_takes_the_search_from_the_command_line(problem: Path, tmp_path: Path) -> None:
    options = ["--algorithm", "random", "--budget", 20, "--json"]
    one, same, other = (
        json.loads(invoke(problem, *options, "--seed", seed).stdout) for seed in (3, 3, 4)
    )
    assert (one["algorithm"], one["seed"], other["seed"]) == ("random", 3, 4)
    assert one["best"] == same["best"]
    # Without the mode that fails: a run whose only evaluation failed ends as "failed", not by time.
    sound = write(tmp_path, PROBLEM.replace(', "bad"', ""))
    done = json.loads(invoke(sound, "--max-seconds", 0.001, "--json").stdout)
    assert done["stop_reason"] == "time"
    for name, value, said in [
        ("--algorithm", "radnom", "did you mean 'random'?"),
        ("--seed", -1, "seed is -1"),
        ("--max-seconds", 0, "max_seconds is 0"),
    ]:
        wrong = invoke(problem, name, value)
        assert wrong.exit_code == 2
        assert said in wrong.output


def test_run_goes_on_with_a_study(problem: Path, tmp_path: Path) -> None:
    study = tmp_path / "a.db"
    first = json.loads(invoke(problem, "--study", study, "--budget", 20, "--json").stdout)
    assert (first["evaluations"], first["study"]) == (20, str(study))
    more = json.loads(invoke(problem, "--study", study, "--budget", 40, "--json").stdout)
    assert more["evaluations"] == 40


def test_run_where_everything_fails(problem: Path) -> None:
    text = problem.read_text(encoding="utf-8").replace("cost (.*)", "price (.*)")
    problem.write_text(text.replace("high = 50", "high = 999"), encoding="utf-8")
    done = invoke(problem, "--budget", 110, "--json")
    assert done.exit_code == 1
    answer = json.loads(done.stdout)
    assert (answer["evaluations"], answer["failures"]) == (110, 110)
    assert answer["best"] is answer["best_value"] is answer["command"] is None
    assert answer["best_every_100"] == [None]
    text = invoke(problem, "--budget", 10).output
    assert re.search("best value +none\n", text)
    assert re.search("last failure +RuntimeError: (no match of|exit status 1)", text)


def test_infeasible_is_no_failure_to_run(problem: Path) -> None:
    text = problem.read_text(encoding="utf-8").replace('"worst"', '"raise"')
    problem.write_text(
        text.replace("[command]", "[command]\ninfeasible_status = 1"), encoding="utf-8"
    )
    answer = json.loads(invoke(problem, "--json").stdout)
    assert answer["best"]["mode"] != "bad"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
def test_the_gcc_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = read(Path(__file__).parent.parent / "examples" / "gcc" / "problem.toml")
    first = job.space.one([0] * len(job.space))
    assert 2_000 < job.command(first) < 20_000
    with pytest.raises(Infeasible, match="unrecognized"):
        job.command(first | {"optimise": "--no-such-option"})
    (tmp_path / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="gcc is not installed"):
        job.command(first)


def test_run_says_what_is_wrong(problem: Path, tmp_path: Path) -> None:
    for arguments, status, message in [
        ([tmp_path / "no.toml"], 2, "does not exist"),
        ([problem, "--budget", 0], 2, "budget is 0"),
        ([problem, "--workers", 0], 2, "--workers is 0"),
        ([problem, "--output", tmp_path / "no" / "a.png"], 2, "no such folder"),
    ]:
        done = invoke(*arguments)
        assert done.exit_code == status
        assert message in done.output
    problem.write_text(
        problem.read_text(encoding="utf-8").replace('"worst"', '"raise"'), encoding="utf-8"
    )
    done = invoke(problem)
    assert done.exit_code == 1
    assert "exit status 1: " in done.output
    assert " bad mode; while evaluating {'level': " in done.output


def runs_python(problem: Path, script: str, algorithm: str) -> None:
    """Let the problem run this script of Python's instead, and another algorithm.

    Random search starts in a third of the time of the policy, which has threads of its own.
    """
    (problem.parent / "script.py").write_text(script, encoding="utf-8")
    text = problem.read_text(encoding="utf-8")
    if algorithm != "policy":
        assert SETTINGS in text
        text = f'algorithm = "{algorithm}"\n' + text.replace(SETTINGS, "")
    text = text.replace('"/bin/sh", "script.sh"', f'"{sys.executable}", "script.py"')
    problem.write_text(text, encoding="utf-8")


def started(problem: Path, folder: Path, script: str, algorithm: str) -> subprocess.Popen[str]:
    """`anyorder run`, once the program it optimises is at work."""
    runs_python(problem, script, algorithm)
    with ctrl_c_is_heard():
        process = subprocess.Popen(
            [sys.executable, "-m", "anyorder", "run", str(problem)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=os.environ | {"TMPDIR": str(folder / "scratch")},
            encoding="utf-8",
        )  # fmt: skip
    try:
        wait_until(lambda: process.poll() is not None or (folder / "pid").exists())
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
    except BaseException:
        process.kill()
        raise
    return process


@pytest.mark.parametrize(
    ("number", "algorithm"),
    [(signal.SIGTERM, "policy"), (signal.SIGHUP, "random"), (signal.SIGKILL, "random")],
)
def test_nothing_is_left_when_run_is_ended(
    number: int, algorithm: str, problem: Path, tmp_path: Path
) -> None:
    (tmp_path / "scratch").mkdir()
    text = problem.read_text(encoding="utf-8").replace("workers = 2", "workers = 1")
    problem.write_text(text.replace('"script.sh"', '"script.sh", "{scratch}"'), encoding="utf-8")
    script = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        "open(sys.argv[1] + '/file', 'w').close()\n"
        "open('pid.part', 'w').write(f'{os.getpid()} {child.pid}')\n"
        "os.rename('pid.part', 'pid')\n"
        "time.sleep(600)"
    )
    with started(problem, tmp_path, script, algorithm) as process:
        assert len(list((tmp_path / "scratch").iterdir())) == 1
        try:
            process.send_signal(number)
            process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert all(gone(int(pid)) for pid in (tmp_path / "pid").read_text(encoding="utf-8").split())
    for _ in range(200):  # the guard is another process
        if not list((tmp_path / "scratch").iterdir()):
            break
        time.sleep(0.05)
    assert list((tmp_path / "scratch").iterdir()) == []


FORKS = """
import os, sys, threading, time
from anyorder.program import guard
from anyorder.program.command import Command

def hold(lock):
    lock.acquire()
    threading.Event().wait()

command = Command(("echo", "cost 3"), regex=r"cost (\\d)")
assert command({}) == 3
if sys.argv[1] == "held":
    threading.Thread(target=hold, args=[guard._lock], daemon=True).start()
    while not guard._lock.locked():
        time.sleep(0.01)
if os.fork() == 0:
    if sys.argv[1] == "held":
        assert command({}) == 3
    os.write(1, b"forked\\n")
    time.sleep(600)  # and has every pipe of its parent
sys.stdin.readline()
if sys.argv[1] == "held":
    os._exit(0)
"""


@pytest.mark.parametrize("lock", ["held", "free"])
def test_a_fork_delays_neither_its_parent_nor_itself(lock: str, tmp_path: Path) -> None:
    """Such as those of `multiprocessing`; a thread of the parent may hold a lock just then."""
    with subprocess.Popen(
        [sys.executable, "-c", FORKS, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == b"forked\n"
            process.stdin.close()
            assert process.wait(60) == 0
        finally:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize(("presses", "algorithm"), [(1, "random"), (2, "policy")])
def test_ctrl_c_waits_for_what_runs_and_twice_does_not(
    presses: int, algorithm: str, problem: Path, tmp_path: Path
) -> None:
    mark, go = tmp_path / "pid", tmp_path / "go"
    runs_python(
        problem,
        f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid()))\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
        "print('cost 1')",
        algorithm,
    )
    command, said = [sys.executable, "-m", "anyorder", "run", str(problem)], tmp_path / "said"
    with said.open("w", encoding="utf-8") as stderr, ctrl_c_is_heard():
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, encoding="utf-8")

    def noted(file: Path, text: str = "") -> Any:
        wait_until(
            lambda: (
                process.poll() is not None
                or (
                    file.exists()
                    and file.stat().st_size
                    and text in file.read_text(encoding="utf-8")
                )
            )
        )
        assert process.poll() is None, said.read_text(encoding="utf-8")

    with process:
        try:
            noted(mark)
            process.send_signal(signal.SIGINT)
            noted(said, "Ctrl-C again")
            if presses == 2:
                process.send_signal(signal.SIGINT)
            else:
                go.touch()
            out, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    _, *err = said.read_text(encoding="utf-8").splitlines()
    assert process.returncode == 130
    assert ("stopped by interrupted" in out) is (presses == 1)
    assert err == (["interrupted: left at once"] if presses == 2 else [])
    assert gone(int(mark.read_text(encoding="utf-8")))
