"""Strategies with one file each: local search, evolutionary algorithms, EDAs."""
