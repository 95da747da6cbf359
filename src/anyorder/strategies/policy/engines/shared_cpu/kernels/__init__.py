"""The compiled loops of the shared network.

    common.py    products, the arrangement of parameters, contexts, outputs
    sampling.py  sampling and conditional distributions
    training.py  an epoch: `slopes` of candidates, then `update` of parameters

Numba's cache on disk does not notice changes of functions that are imported, from here or from
`engines/kernels.py`: after such a change remove `__pycache__`. Structured arguments are in
`arguments.py`, the method in `__init__.py` above.
"""
