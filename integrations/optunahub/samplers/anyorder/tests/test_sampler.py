"""Optuna's tests of samplers, on the module as OptunaHub loads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import optunahub
import pytest
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

ROOT = Path(__file__).resolve().parents[3]
AnyOrderSampler = optunahub.load_local_module(
    "samplers/anyorder", registry_root=str(ROOT)
).AnyOrderSampler


class TestAnyOrderSampler(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    """All of them."""

    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        """Return what makes a sampler."""
        return lambda: AnyOrderSampler(seed=0)
