"""Random search."""

from __future__ import annotations

from collections.abc import Sequence

from anyorder.strategies.base import Answer, Codes, Search


class RandomSearch(Search):
    """Independent random points: every other method must be better.

    Parameters
    ----------
    space, seed
        See `Search`.
    """

    name = "random"
    batch = 10
    several = True

    def _propose(self, count: int) -> Codes:
        return self._uniform(count)

    def _learn(self, answers: Sequence[Answer]) -> None:
        pass
