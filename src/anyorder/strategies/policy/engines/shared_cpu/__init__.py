"""The engine `cpu` for the shared network.

    engine.py     the protocol: threads over the compiled loops
    arguments.py  structured arguments of the loops
    kernels/      the compiled loops

In one order the contexts are nested prefixes: the first layer's pre-activations are a running sum
of the contributions of variables, and the gradient of a variable's contribution is the sum of the
slopes of all variables after it. An epoch therefore costs n h^2 multiply-adds a candidate instead
of n^2 h, and memory is linear in n. The layers above are matrix products on blocks of variables.

If contexts are not nested (with dropout, or a known graph), the first layer is a matrix product
with explicit masks: it costs n^2 h more multiply-adds a candidate, but only the memory of a block
of masks. If every variable sees all others, each context is the sum of all contributions minus its
own.
"""

from anyorder.strategies.policy.engines.shared_cpu.engine import SharedCpuEngine

__all__ = ["SharedCpuEngine"]
