"""Constraints: the points that must not be evaluated, and how such points are repaired.

feasibility.py   calls of the constraint, and the repair of rejected points
effects.py       a linear model that chooses between repairs
samples.py       samples among which allowed points are looked for
"""
