"""anyorder: black-box optimisation over discrete variables.

    import anyorder as ao

    space = ao.Space({"cache": ao.Binary(), "algo": ao.Categorical(["a", "b", "c"]),
                      "depth": ao.Integer(1, 8)})
    result = ao.maximize(f, space, budget=10_000, seed=0)

The public interface is what is named here, and the names in the `__all__` of the modules listed.
Nothing else is public.
"""

from anyorder import plotting, policy, problems, program, strategies, testing
from anyorder._version import __version__
from anyorder.archive.front import Front
from anyorder.archive.history import History
from anyorder.archive.notes import Measured
from anyorder.errors import STATUSES, Infeasible, StudyError
from anyorder.optimize import maximize, minimize, optimize, resume
from anyorder.optimizer import Optimizer
from anyorder.result import Result
from anyorder.run import stopping
from anyorder.run.study.reading import load
from anyorder.space import Permutation, Sequence, Space, Subset
from anyorder.space.variables import Binary, Categorical, Float, Integer, Ordinal

__all__ = [
    "STATUSES",
    "Binary",
    "Categorical",
    "Float",
    "Front",
    "History",
    "Infeasible",
    "Integer",
    "Measured",
    "Optimizer",
    "Ordinal",
    "Permutation",
    "Result",
    "Sequence",
    "Space",
    "StudyError",
    "Subset",
    "__version__",
    "load",
    "maximize",
    "minimize",
    "optimize",
    "plotting",
    "policy",
    "problems",
    "program",
    "resume",
    "stopping",
    "strategies",
    "testing",
]


def __dir__() -> list[str]:
    """Return the public names: the packages inside are not for users."""
    return sorted(__all__)
