"""
MaxSAT
======

Which assignment satisfies most clauses of a formula? Formulas come as DIMACS files, in the same
format as for SAT solvers. anyorder sees the number of satisfied clauses only; a solver that reads
the clauses is better where you have one.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import anyorder as ao

# %%
# A random formula with three literals a clause, so many that hardly any assignment satisfies them
# all. ``-7`` is "not 7".
rng = np.random.default_rng(0)
n, m = 100, 500
clauses = [
    rng.choice(np.arange(1, n + 1), 3, replace=False) * rng.choice([-1, 1], 3) for _ in range(m)
]
lines = [f"p cnf {n} {m}", *(" ".join(map(str, clause)) + " 0" for clause in clauses)]
file = Path(tempfile.mkdtemp()) / "formula.cnf"
file.write_text("\n".join(lines))

problem = ao.problems.read_maxsat(file)
print("A random assignment satisfies", problem(rng.integers(0, 2, n)), "of", m)

# %%
# Problems have their space with them. The default learns from the values which variables meet in
# a clause.
runs = {}
for algorithm in ("auto", "ils", "random"):
    runs[algorithm] = ao.maximize(problem, budget=3000, seed=0, algorithm=algorithm)
    print(f"{algorithm}: {runs[algorithm].best_value:.0f} of {m}")

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
for algorithm, result in runs.items():
    unsatisfied = m - result.history.best
    axes.step(range(1, len(unsatisfied) + 1), unsatisfied, where="post", label=algorithm)
axes.set(xlabel="assignments evaluated", ylabel="clauses not satisfied", xscale="log")
axes.legend()
plt.show()
