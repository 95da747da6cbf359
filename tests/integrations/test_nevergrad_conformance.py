"""Nevergrad's own tests of optimizers, called with those that are registered here.

Some of them run for a part of all names only, chosen by a checksum: they are called with a name
that they accept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

ng = pytest.importorskip("nevergrad")
pytest.importorskip("bayes_opt")  # which the tests import
from nevergrad.optimization import test_optimizerlib as theirs  # noqa: E402
from nevergrad.optimization import test_suggest as suggesting  # noqa: E402

from anyorder.integrations.nevergrad import AnyOrder  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::nevergrad.common.errors.NevergradWarning")
REGISTRY = ng.optimizers.registry


@pytest.fixture
def alias(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Register `AnyOrder` under a name that passes a test's filter."""
    made: list[str] = []
    monkeypatch.setattr(theirs, "long_name", lambda name: False)  # otherwise a random number

    def register(accepts: Any) -> str:
        name = next(name for k in range(100) if accepts(name := f"AnyOrder{chr(97 + k)}"))
        REGISTRY.register_name(name, AnyOrder)
        made.append(name)
        return name

    yield register
    for name in made:
        REGISTRY.unregister(name)


@pytest.mark.parametrize("verify", [True, False])
def test_check_optimizer(verify: bool) -> None:
    theirs.check_optimizer(AnyOrder, verify_value=verify)


def test_suggestions() -> None:
    suggesting.test_suggest_optimizers("AnyOrder")  # of 100 variables: the optimum
    suggesting.test_harder_suggest_optimizers("AnyOrder")  # its neighbour
    for name in ("AnyOrder", "AnyOrderILS", "AnyOrderPolicy"):
        suggesting.test_optimizers_suggest(name)


def test_nan_and_infinity(alias: Any) -> None:
    theirs.test_infnan(alias(lambda name: _weighted(name) % 5 == 0))


def test_an_offset_of_a_trillion(alias: Any) -> None:
    theirs.test_parametrization_offset(alias(lambda name: sum(map(ord, name)) % 4 == 0))


def _weighted(name: str) -> int:
    return 7 + sum(ord(letter) * k for k, letter in enumerate(name))


def test_pickles() -> None:
    for name in ("AnyOrder", "AnyOrderILS", "AnyOrderPolicy"):
        theirs.test_optim_pickle(name)


def test_several_objectives() -> None:
    theirs.test_mo_with_nan("AnyOrder")
    theirs.test_mo_constrained("AnyOrder")
