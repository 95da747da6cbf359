"""The engine `cuda`: Triton kernels.

device.py         what an engine on a GPU has, whatever it computes
engine.py         `CudaEngine`, for separate networks: one program per variable and run
learned_order.py  `DeviceOrder`, the learned orders of many runs
shapes.py         which kernel trains a network, and how it is cut into tiles
kernels/          the kernels
"""

from anyorder.strategies.policy.engines.cuda.engine import CudaEngine, Orders
from anyorder.strategies.policy.engines.cuda.learned_order import DeviceOrder

__all__ = ["CudaEngine", "DeviceOrder", "Orders"]
