"""The engine `cuda`: Triton kernels.

device.py  what an engine on a GPU has, whatever it computes
engine.py  `CudaEngine`, for separate networks: one program per variable and run
shapes.py  which kernel trains a network, and how it is cut into tiles
kernels/   the kernels
"""

from anyorder.strategies.policy.engines.cuda.engine import CudaEngine, Orders

__all__ = ["CudaEngine", "Orders"]
