"""The compiled loops of the shared network.

    common.py    products, the arrangement of parameters, contexts, outputs
    sampling.py  sampling and conditional distributions
    training.py  an epoch: `slopes` of candidates, then `update` of parameters

Their structured arguments are in `arguments.py`, the method in `__init__.py` above.
"""
