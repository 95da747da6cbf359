"""Benchmark problems: all maximised, generated from a seed, and available by name.

    problem = anyorder.problems.nk(n=128, k=4, seed=3)
    problem = anyorder.problems.get("nk:n=128,k=4,seed=3")    # the same
    problem(x), problem.evaluate(X)                           # one point, a batch
    anyorder.problems.together([a, b])([X, Y])                # several of one space at once

A new problem is a subclass of `Problem` in a file of its own and one line below; the test suite
covers every registered problem.
"""

from anyorder.problems.base import Problem
from anyorder.problems.catalogue import Entry, entry, get, make, names, register, registry
from anyorder.problems.features import FeatureSelection, features
from anyorder.problems.maxcut import MaxCut, maxcut, read_maxcut
from anyorder.problems.maxsat import MaxSat, maxsat, read_maxsat
from anyorder.problems.nasbench import NasBench101, nasbench
from anyorder.problems.nk import NK, nk, nkd
from anyorder.problems.onemax import OneMax, onemax
from anyorder.problems.pbo import Pbo, pbo
from anyorder.problems.quadratic import Qubo, qubo_matrix, read_qubo
from anyorder.problems.qubo import qubo
from anyorder.problems.tabular import Tabular, read_table, table
from anyorder.problems.together import together
from anyorder.problems.trap import Trap, trap

__all__ = [
    "NK",
    "Entry",
    "FeatureSelection",
    "MaxCut",
    "MaxSat",
    "NasBench101",
    "OneMax",
    "Pbo",
    "Problem",
    "Qubo",
    "Tabular",
    "Trap",
    "entry",
    "features",
    "get",
    "make",
    "maxcut",
    "maxsat",
    "names",
    "nasbench",
    "nk",
    "nkd",
    "onemax",
    "pbo",
    "qubo",
    "qubo_matrix",
    "read_maxcut",
    "read_maxsat",
    "read_qubo",
    "read_table",
    "register",
    "registry",
    "table",
    "together",
    "trap",
]

register("nk", nk, "NK landscape: bits, each with k random neighbours, random tables")
register("nkd", nkd, "NK landscape of variables with d values")
register("qubo", qubo, "PUBOi: sparse quadratic function of bits, types 0 to 5")
register("onemax", onemax, "number of ones: no interactions, the easiest there is")
register("maxcut", maxcut, "cut of a random graph, or of a G-set file")
register("maxsat", maxsat, "satisfied clauses of random k-SAT, or of a DIMACS file")
register("nasbench", nasbench, "NAS-Bench-101: accuracy of a cell, from its table")
register("trap", trap, "concatenated traps: blocks that lead away from their optimum")
register("pbo", pbo, "the 25 problems of IOHprofiler's PBO, by name or number (needs ioh)")
register("features", features, "feature selection: score of chosen columns (needs scikit-learn)")
register("table", table, "values looked up in a CSV file, or in a small made-up table")
