"""The engine `cuda`: Triton kernels.

device.py         the part that both engines share
engine.py         `CudaEngine`, for separate networks: one program per variable and run
shared.py         `SharedCudaEngine`, for the shared network: one program per candidate
learned_order.py  `DeviceOrder`, the learned orders of many runs
shapes.py         which kernel trains a network, and its tiles
kernels/          the kernels
"""

from anyorder.strategies.policy.engines.cuda.engine import CudaEngine, Orders
from anyorder.strategies.policy.engines.cuda.learned_order import DeviceOrder
from anyorder.strategies.policy.engines.cuda.shared import SharedCudaEngine

__all__ = ["CudaEngine", "DeviceOrder", "Orders", "SharedCudaEngine"]
