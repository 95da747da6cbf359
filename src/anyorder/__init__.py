"""anyorder: black-box optimisation over discrete variables by order-invariant RL.

    import anyorder as ao

    space = ao.Space({"cache": ao.Binary(), "algo": ao.Categorical(["a", "b", "c"]),
                      "depth": ao.Integer(1, 8)})
    result = ao.maximize(f, space, budget=10_000, seed=0)

What is named here is the public interface; nothing else is.
"""

from . import baselines, problems
from ._version import __version__
from .config import PRESETS, Config
from .failures import STATUSES, Infeasible, StudyError
from .loop import maximize, minimize, resume
from .many import solve_many
from .optimizer import Optimizer
from .result import History, Result, Run, Runs
from .running.reading import load
from .space import Space
from .variables import Binary, Categorical, Integer

__all__ = [
    "PRESETS",
    "STATUSES",
    "Binary",
    "Categorical",
    "Config",
    "History",
    "Infeasible",
    "Integer",
    "Optimizer",
    "Result",
    "Run",
    "Runs",
    "Space",
    "StudyError",
    "__version__",
    "baselines",
    "load",
    "maximize",
    "minimize",
    "problems",
    "resume",
    "solve_many",
]
