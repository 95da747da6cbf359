"""The interface of a library whose algorithms a campaign can run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import Any

from anyorder.bench.algorithms.meter import Meter
from anyorder.bench.algorithms.naming import Settings
from anyorder.space import Space


class Library(ABC):
    """A library of algorithms, each with a name.

    The methods that are not abstract are for algorithms that run on engines and have presets which
    may change.
    """

    package: str | None = None  # the package that must be installed
    # the packages whose versions are stored with a run, besides `package`
    used: tuple[str, ...] = ("numpy",)

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of its algorithms."""

    @abstractmethod
    def check(self, name: str, settings: Settings, space: Space | None) -> None:
        """Raise if the algorithm does not accept these settings or this space."""

    @abstractmethod
    def search(self, name: str, settings: Settings, meter: Meter, seed: int) -> Settings:
        """Evaluate points by the meter until its budget is spent, or the algorithm has ended.

        Return the settings, with their defaults where these are known.
        """

    def choose_engine(self, settings: Settings, engine: str) -> Settings:
        """Return the settings of a run with the engine that is to compute it, if it needs one."""
        return settings

    def engine(self, settings: Settings) -> str:
        """Return the engine that settings ask for."""
        return "auto"

    def meaning(self, name: str, settings: Settings) -> tuple[Hashable | Settings, ...]:
        """Return a key that is equal for two names and settings of the same algorithm."""
        return name, settings

    def still(self, name: str, settings: Settings, configuration: Mapping[str, Any]) -> bool:
        """Return whether a name still stands for the configuration that a run of it had."""
        return True
