"""Strategies that fit in a file each: local search, evolutionary algorithms, EDAs."""
