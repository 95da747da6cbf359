"""The compiled loops of the shared network.

    products.py  products of matrices, operations on rows
    common.py    the arrangement of parameters, contexts, outputs
    sampling.py  sampling and conditional distributions
    training.py  an epoch: `slopes` of candidates, then `update` of parameters
    updating.py  gradients and Adam's step

Numba's cache on disk does not notice changes of imported functions, from here or from
`engines/kernels.py`: after such a change remove `__pycache__`. Structured arguments are in
`arguments.py`; the method is explained in `shared_cpu/__init__.py`.
"""
