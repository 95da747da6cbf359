"""Optuna's own tests of samplers, inherited."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("optuna")
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

from anyorder.integrations.optuna import AnyOrderSampler


class TestAnyOrderSampler(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: AnyOrderSampler(seed=0)
