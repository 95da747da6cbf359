"""
MaxCut on a G-set file
======================

Split the vertices of a graph so that the edges between the two parts weigh as much as possible.
The graph is a file in the format of the G-set: a line with the numbers of vertices and edges,
then a line for each edge. This one is a small torus of ten by ten vertices with weights of 1 and
-1; the files of the G-set (G1 to G81) are read in the same way.
"""

import matplotlib.pyplot as plt
import numpy as np

import anyorder as ao

FILE = "torus_10x10.txt"

problem = ao.problems.read_maxcut(FILE)
result = ao.maximize(problem, budget=2000, seed=0)
print(f"cut {result.best_value:.0f} after {int(np.argmax(result.history.best)) + 1} evaluations")

# %%
# The command line does the same: ``anyorder solve maxcut:file=torus_10x10.txt --budget 2000``.
edges = np.loadtxt(FILE, skiprows=1, dtype=int)
side = result.best
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.step(range(1, len(result.history) + 1), result.history.best, where="post")
left.set(xlabel="evaluations", ylabel="weight of the cut, best so far", xscale="log")
for i, j, weight in edges - [1, 1, 0]:
    (row, column), (row_2, column_2) = divmod(i, 10), divmod(j, 10)
    if abs(row - row_2) + abs(column - column_2) == 1:  # edges around the torus are left out
        cut = side[i] != side[j]
        style = {"color": "C0" if weight > 0 else "C1", "linewidth": 2.5 if cut else 0.5}
        right.plot([column, column_2], [row, row_2], zorder=1, **style)
colours = np.where(side == 1, "k", "w")
right.scatter(np.arange(100) % 10, np.arange(100) // 10, c=colours, edgecolor="k", zorder=2)
right.set(title="cut edges are thick; blue +1, orange -1", xticks=[], yticks=[], aspect="equal")
plt.show()
