"""The Triton kernels at tiny sizes without a GPU: Triton's interpreter runs them in Python.

They cannot be imported both ways in one process, so this starts another one.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import subprocess_environment

from anyorder.strategies.policy.engines import why_not

TESTS = Path(__file__).parent
# of `test_engines.py`; each is half a second to three
FEW = ("(s,d), an order a population", "known graph", "4 layers", "half the weights, dropout")
STEPS = (
    *FEW, "(d,p)", "dropout, -1", "univariate", "frozen output", "Bernoulli KL",
    "log objective",
    "constants at the ends",
)  # fmt: skip
# of `test_cuda.py`: a run of the device's driver takes the interpreter 2 to 30 seconds, a tiling 5;
# neither races nor float32 arguments are seen there
CHOSEN = (
    "not (is_maximize or twice or host or chunks or one_failure or a_torch_function or tiling "
    "or best_points or full_precision or does_not_count or Gibbs and not agrees) "
    "or nkd and restarts or tiling and (180 or 60) or does_not_count and 0"
)


def interpreted(*arguments: str) -> None:
    environment = subprocess_environment(TRITON_INTERPRET="1")
    command = [sys.executable, "-m", "pytest", "-n", "auto", "--maxprocesses", "4", *arguments]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=1700, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "passed" in done.stdout


pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(1800),  # many tests, each of which has the usual limit
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="no Triton"),
    pytest.mark.skipif(why_not("cuda") is None, reason="the other tests use the GPU itself"),
]


def test_steps():
    interpreted(*(f"{TESTS}/test_engines.py::test_one_step[cuda-{step}]" for step in FEW))


@pytest.mark.slow
def test_more_steps():
    interpreted(*(f"{TESTS}/test_engines.py::test_one_step[cuda-{step}]" for step in STEPS))


FAMILY = [f"{TESTS}/test_critic.py", f"{TESTS}/test_gibbs.py", "-m", "gpu", "-k"]


def test_critics_and_sweeps():
    interpreted(*FAMILY, "engines_agree and (separate or frozen)")


@pytest.mark.slow
def test_more_critics_and_sweeps():
    interpreted(*FAMILY, "engines_agree")


SHARED = ("one_step[cuda-1 layer]", "one_step[cuda-constants at the ends]",
          "conditionals[cuda-n = 1]", "float16_of_many_variables[cuda-plain]")  # fmt: skip


def test_the_shared_network():
    interpreted(*(f"{TESTS}/test_shared.py::test_{one}" for one in SHARED))


@pytest.mark.slow
def test_more_of_the_shared_network():
    interpreted(f"{TESTS}/test_shared.py", "-m", "gpu")


def test_the_engine():
    interpreted(f"{TESTS}/test_cuda.py", "-k", CHOSEN)


def test_learned_orders():
    interpreted(f"{TESTS}/test_learned_order_cuda.py")


@pytest.mark.slow
def test_all_of_the_engine():
    interpreted(f"{TESTS}/test_cuda.py")
