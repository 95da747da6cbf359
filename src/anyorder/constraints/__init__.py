"""Points that must not be evaluated: what a constraint says, and how points are repaired.

feasibility.py   what a constraint says of points, and the repair of those that it refuses
effects.py       a linear model that chooses between repairs
samples.py       where an allowed point may be
"""
