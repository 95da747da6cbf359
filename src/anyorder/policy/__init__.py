"""The paper's method, order-invariant RL-EDA: its settings, and many runs at once.

    result = ao.maximize(f, space, budget=1_000, algorithm="policy:paper")
    result = ao.maximize(f, space, budget=1_000, algorithm=ao.policy.Policy(config, engine="cpu"))
    runs = ao.policy.solve_many(problems, runs=10, budget=1_000)

The strategy itself is in `anyorder.strategies.policy`.
"""

from anyorder.policy.many import solve_many
from anyorder.policy.many.runs import Run, Runs
from anyorder.policy.specification import Policy, choose_engine
from anyorder.strategies.policy.config import PRESETS, Config
from anyorder.strategies.policy.search import PolicySearch

__all__ = [
    "PRESETS",
    "Config",
    "Policy",
    "PolicySearch",
    "Run",
    "Runs",
    "choose_engine",
    "solve_many",
]
