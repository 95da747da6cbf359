"""What a campaign asks of a source of algorithms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import Any

from anyorder.bench.algorithms.meter import Meter
from anyorder.bench.algorithms.naming import Settings
from anyorder.space import Space


class Library(ABC):
    """A source of algorithms, each known by its name there.

    What has a default is for algorithms that compute on engines and whose presets may change.
    """

    package: str | None = None  # that must be installed
    used: tuple[str, ...] = ("numpy",)  # the packages whose versions a run notes, beside `package`

    @abstractmethod
    def names(self) -> list[str]:
        """List its algorithms."""

    @abstractmethod
    def check(self, name: str, settings: Settings, space: Space | None) -> None:
        """Raise if the algorithm does not accept these settings or this space."""

    @abstractmethod
    def search(self, name: str, settings: Settings, meter: Meter, seed: int) -> Settings:
        """Evaluate points by the meter until its budget is spent, or the algorithm has ended.

        Returns the settings, with defaults where they are known.
        """

    def choose_engine(self, settings: Settings, engine: str) -> Settings:
        """Return the settings of a run that is to be computed by an engine, if it has engines."""
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
