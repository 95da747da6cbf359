"""All strategies by name."""

from __future__ import annotations

from typing import Any

from anyorder.strategies.auto import AutoSearch
from anyorder.strategies.delta.search import DeltaSearch
from anyorder.strategies.policy.search import PolicySearch

REGISTRY: dict[str, Any] = {"policy": PolicySearch, "delta": DeltaSearch, "auto": AutoSearch}
ALIASES: dict[str, str] = {"iterated-local-search": "ils"}
