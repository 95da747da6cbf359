"""Variables, spaces of them, and the integer codes that strategies work on."""

from anyorder.space.space import Space
from anyorder.space.variables import Binary, Categorical, Float, Integer, Variable

__all__ = ["Binary", "Categorical", "Float", "Integer", "Space", "Variable"]
