"""Variables, spaces of them, and the integer codes that strategies work on."""

from anyorder.space.groups import List, Permutation, Subset
from anyorder.space.space import Space
from anyorder.space.variables import Binary, Categorical, Float, Integer, Variable

__all__ = [
    "Binary", "Categorical", "Float", "Integer", "List", "Permutation", "Space", "Subset",
    "Variable",
]  # fmt: skip
