"""anyorder: black-box optimisation over discrete variables.

    import anyorder as ao

    space = ao.Space({"cache": ao.Binary(), "algo": ao.Categorical(["a", "b", "c"]),
                      "depth": ao.Integer(1, 8)})
    result = ao.maximize(f, space, budget=10_000, seed=0)

What is named here is the public interface; nothing else is.
"""

from anyorder import baselines, problems, strategies
from anyorder._version import __version__
from anyorder.errors import STATUSES, Infeasible, StudyError
from anyorder.history import History
from anyorder.many import solve_many
from anyorder.optimize import maximize, minimize, resume
from anyorder.optimizer import Optimizer
from anyorder.result import Result, Run, Runs
from anyorder.session.reading import load
from anyorder.space import Permutation, Space, Subset
from anyorder.space.variables import Binary, Categorical, Float, Integer
from anyorder.strategies.policy.config import PRESETS, Config

__all__ = [
    "PRESETS",
    "STATUSES",
    "Binary",
    "Categorical",
    "Config",
    "Float",
    "History",
    "Infeasible",
    "Integer",
    "Optimizer",
    "Permutation",
    "Result",
    "Run",
    "Runs",
    "Space",
    "StudyError",
    "Subset",
    "__version__",
    "baselines",
    "load",
    "maximize",
    "minimize",
    "problems",
    "resume",
    "solve_many",
    "strategies",
]
