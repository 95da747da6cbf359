"""
MaxSAT
======

Which assignment satisfies the most clauses of a formula? Formulas are read from DIMACS files, the
format of SAT solvers. anyorder sees only the number of satisfied clauses; if you have a solver
that reads the clauses, it is better.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import anyorder as ao

# %%
# This is a random formula with three literals per clause, and with so many clauses that hardly any
# assignment satisfies all of them. ``-7`` is "not 7".
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
# A problem contains its space. The default learns from the values which variables occur together in
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
