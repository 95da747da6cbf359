"""Variables, spaces of them, and the integer codes that strategies work on."""

from anyorder.space.lists import List, Permutation, Sequence, Subset
from anyorder.space.space import Space
from anyorder.space.variables import Binary, Categorical, Float, Integer, Ordinal, Variable

__all__ = [
    "Binary", "Categorical", "Float", "Integer", "List", "Ordinal", "Permutation", "Sequence",
    "Space", "Subset", "Variable",
]  # fmt: skip
