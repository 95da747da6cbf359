"""The engine `cpu` for the shared network.

    engine.py     the protocol: threads over the compiled loops
    arguments.py  structured arguments of the loops
    kernels/      the compiled loops

Along one order the contexts are nested prefixes: the first layer's pre-activations are a running
sum of what each variable contributes, and the gradient of a variable's contribution is the sum of
the slopes of all variables after it. So an epoch costs n h^2 multiply-adds a candidate instead of
n^2 h, and memory is linear in n. The layers above are matrix products on blocks of variables.

Where contexts are not nested (dropout, a known graph) the first layer is a matrix product with
explicit masks: n^2 h more multiply-adds a candidate, and no more memory than a block of masks. If
every variable sees all others, each context is the sum of all contributions less its own.
"""

from anyorder.strategies.policy.engines.shared_cpu.engine import SharedCpuEngine

__all__ = ["SharedCpuEngine"]
