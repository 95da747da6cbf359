"""Adapters for other libraries, each in a module that imports its host: `integrations.optuna`."""
