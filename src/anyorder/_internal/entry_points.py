"""Objects that other packages register under a group of entry points."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import metadata
from typing import Any


def load_entry_points(group: str, add: Callable[[str, Any], None]) -> None:
    """Call `add` with the name and the object of every entry point of a group.

    If one cannot be loaded, or `add` rejects it with a ValueError or TypeError, a warning names its
    package.
    """
    for entry in metadata.entry_points(group=group):
        try:
            add(entry.name, entry.load())
        except Exception as error:  # the code of another package may raise anything
            package = "an unknown package" if entry.dist is None else entry.dist.name
            warnings.warn(
                f"{group} {entry.name!r} of {package} is left out: {type(error).__name__}: {error}",
                RuntimeWarning, stacklevel=3,
            )  # fmt: skip
