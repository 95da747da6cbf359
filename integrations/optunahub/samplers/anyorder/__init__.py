"""The sampler of anyorder for OptunaHub."""

from anyorder.integrations.optuna import AnyOrderSampler

__all__ = ["AnyOrderSampler"]
