"""Timings over the versions of the library, run by asv: `asv run`, `asv publish`."""
