"""The Bayesian optimisation algorithm: a Bayesian network fitted to the best points.

Pelikan, Goldberg and Cantú-Paz, "BOA: the Bayesian optimization algorithm", GECCO (1999). For the
score see Schwarz, "Estimating the dimension of a model", Annals of Statistics 6 (1978), which
Pelikan uses in "Bayesian optimization algorithm: from single level to hierarchy" (2002).
"""

from __future__ import annotations

from graphlib import TopologicalSorter

import numpy as np
from numpy.typing import NDArray

from anyorder._internal.checks import flag, integer
from anyorder.space import Space
from anyorder.strategies.base import Codes, Index, Seed
from anyorder.strategies.plain.mimic import Modelled, count_log_count, one_hot, pair_sums

Floats = NDArray[np.float64]

# Smaller gains are rounding errors.
_LEAST_GAIN = 1e-9


class BOA(Modelled):
    """Bayesian optimisation algorithm: points from a network learned from the best points.

    The network of each generation is learned from scratch. Edges are added greedily, always the
    edge that increases the BIC most, until none does. Points are drawn from the network with the
    frequencies of the selected points; if no selected point agrees with a variable's parents, the
    frequencies of the variable alone are used. The points replace the worst of the population.
    Frequencies are not smoothed.

    Parameters
    ----------
    space, seed
        See `Search`.
    population
        The size of the population. The default of 100 is that of the paper's comparison, and small:
        with 50 selected points the BIC accepts one in twenty spurious dependences, and the
        population soon collapses. With 10,000 evaluations several hundred are much better, and
        deceptive blocks of five variables (traps) require thousands. The paper's results do not
        come from this network: the code that it names reads the tables of variables with two or
        more parents with the parents in reverse, which acts as noise and delays the collapse at
        100.
    selection
        The share of the population, its best points, to which the network is fitted.
    replacement
        The share of the population, its worst points, that is replaced in each generation. The
        defaults are those of the code that the comparison used (github.com/e5120/EDAs).
    max_parents
        The most parents of a variable. With 50 selected points the BIC never accepts a fifth binary
        parent, since k of them cost (2^k - 1)/2 ln 50 and gain at most 50 ln 2. The default of 4
        only keeps tables small if more points are selected.
    reverse_parents
        Whether to read the table of a variable with several parents with these in reverse, as the
        code of the paper's comparison does; only to reproduce the paper.
    """

    name = "boa"

    def __init__(
        self,
        space: Space,
        seed: Seed = None,
        population: int = 100,
        *,
        selection: float = 0.5,
        replacement: float = 0.5,
        max_parents: int = 4,
        reverse_parents: bool = False,
    ) -> None:
        super().__init__(space, seed, population, selection, replacement)
        self.max_parents = integer("max_parents", max_parents, 0)
        self.reverse_parents = flag("reverse_parents", reverse_parents)

    @property
    def parents(self) -> list[list[int]]:
        """The parents of each variable, by index; empty in the first generation."""
        return [list(parents) for parents in self._parents]

    def _insert(self, codes: Codes, values: Floats) -> None:
        stay = np.argsort(-self._values, kind="stable")[: self.population - len(codes)]
        self._points = np.concatenate([self._points[stay], codes])
        self._values = np.concatenate([self._values[stay], values])

    def _fit(self, rows: Codes) -> tuple[list[int], list[list[int]]]:
        parents = learn_network(rows, self._model_values, self.max_parents)
        return list(TopologicalSorter(dict(enumerate(parents))).static_order()), parents


def learn_network(
    rows: Codes, cardinalities: NDArray[np.int64], max_parents: int
) -> list[list[int]]:
    """Return the parents of each variable; edges are added greedily by their gain in BIC."""
    variables, count = len(cardinalities), len(rows)
    parents: list[list[int]] = [[] for _ in range(variables)]
    if max_parents == 0 or count < 2:
        return parents
    learner = _Gains(rows, cardinalities)
    gains = learner.first()  # by child and parent
    # leads[i, j]: there is a path from i to j, or i is j; an edge from j to i would then close a
    # cycle.
    leads = np.eye(variables, dtype=np.bool_)
    gains[leads] = -np.inf
    while True:
        child, parent = divmod(int(gains.argmax()), variables)
        if gains[child, parent] <= _LEAST_GAIN:
            return parents
        parents[child].append(parent)
        above, below = np.flatnonzero(leads[:, parent]), np.flatnonzero(leads[child])
        leads[np.ix_(above, below)] = True
        gains[np.ix_(above, below)] = -np.inf
        # An edge only changes the gains of other edges into the same variable.
        learner.add(child, parent)
        if len(parents[child]) == max_parents:
            gains[child] = -np.inf
        else:
            # A parent that is there already gains nothing and costs: it is not added again.
            gains[child] = np.where(leads[child], -np.inf, learner.into(child))


class _Gains:
    """The gain in BIC of a further parent of a variable, given the parents that it has."""

    def __init__(self, rows: Codes, cardinalities: NDArray[np.int64]) -> None:
        self._rows, self._cards = rows.astype(np.int64), cardinalities
        self._values, self._first = one_hot(rows, cardinalities)
        self._pairs = pair_sums(rows, cardinalities)
        self._price = np.log(len(rows)) / 2
        # For variables with parents: the number of the combination of their values in each row, and
        # the number of combinations, whether they occur or not.
        self._cases: dict[int, Index] = {}
        self._all_cases = np.ones(len(cardinalities))

    def first(self) -> Floats:
        """Return the gains of all edges in a network without edges, by child and parent."""
        alone = self._pairs.diagonal()
        count = len(self._rows)
        information = self._pairs - alone - alone[:, None] + count * np.log(count)
        gains: Floats = information - self._price * np.outer(self._cards - 1, self._cards - 1)
        return gains

    def add(self, child: int, parent: int) -> None:
        """Update the gains for a new edge."""
        cases = self._cases.get(child, np.zeros(len(self._rows), dtype=np.int64))
        codes = cases * self._cards[parent] + self._rows[:, parent]
        self._cases[child] = np.unique(codes, return_inverse=True)[1]
        self._all_cases[child] *= self._cards[parent]

    def into(self, child: int) -> Floats:
        """Return the gains of all edges into a variable that has parents."""
        cases, values = self._cases[child], int(self._cards[child])
        count, seen = len(self._rows), int(cases.max()) + 1
        own = np.zeros((count, seen * values), dtype=np.float32)
        own[np.arange(count), cases * values + self._rows[:, child]] = 1
        counts = own.T @ self._values  # (case and value of the child) x (value of the parent)
        by_case = counts.reshape(seen, values, -1).sum(axis=1)
        # The log-likelihood with the parent minus the one without. Each is the sum of c log c over
        # the counts with the child, minus the same sum over the counts without it.
        terms = count_log_count(counts, count).sum(axis=0)
        terms -= count_log_count(by_case, count).sum(axis=0)
        without = own.sum(axis=0)
        before = count_log_count(without, count).sum()
        before -= count_log_count(without.reshape(seen, values).sum(axis=1), count).sum()
        price = self._price * self._all_cases[child] * (values - 1) * (self._cards - 1)
        gains: Floats = np.add.reduceat(terms, self._first) - before - price
        return gains
