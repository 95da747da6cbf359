"""The engine `cuda`: Triton kernels, one program per variable and run.

engine.py  `CudaEngine`: the protocol on NumPy arrays, and the same on tensors
shapes.py  which kernel trains a network, and how it is cut into tiles
kernels/   the kernels
"""

from anyorder.strategies.policy.engines.cuda.engine import CudaEngine, Orders

__all__ = ["CudaEngine", "Orders"]
