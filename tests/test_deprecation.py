"""What warns of names that go away."""

from __future__ import annotations

import warnings

import pytest

from anyorder._internal.deprecation import deprecated


class Shelf:
    """Something with a method of an old name."""

    def load(self, path: str, *, check: bool = True) -> tuple[str, bool]:
        return path, check

    @deprecated("1.4", "`Shelf.load`")
    def read(self, path: str, *, check: bool = True) -> tuple[str, bool]:
        """Load a file."""
        return self.load(path, check=check)


def test_a_deprecated_name_works_and_says_what_to_use_and_until_when() -> None:
    with pytest.warns(DeprecationWarning, match="deprecated") as caught:
        assert Shelf().read("run.db", check=False) == ("run.db", False)
    (warning,) = caught
    assert str(warning.message) == (
        "Shelf.read is deprecated and will be removed in anyorder 1.4; use `Shelf.load`"
    )
    assert warning.filename == __file__  # the caller's line
    assert (Shelf.read.__name__, Shelf.read.__doc__) == ("read", "Load a file.")


def test_nothing_warns_before_the_call() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @deprecated("1.4", "`new`")
        def old() -> int:
            return 1

    with pytest.warns(DeprecationWarning, match="1.4"):
        assert old() == 1
