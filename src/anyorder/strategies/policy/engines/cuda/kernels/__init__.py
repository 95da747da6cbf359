"""Triton kernels of the engine `cuda`.

common.py         the array `runs`, arithmetic, the random stream
objective.py      the derivative of eq. (8) at the outputs
initial.py        initial parameters
orders.py         training orders
relaxed_sort.py   learned orders: sorts, relaxed sorts, the gradient of their scores
sample.py         candidates, one program each
registers.py      training with the parameters in registers: up to 20 units and 1,024 inputs,
                  or 24 units and 512 inputs
tiles.py          its first layer
output_layers.py  its other layers
general.py        training and conditionals of any network, with the parameters in memory
shared.py         the shared network: initial parameters, candidates and conditionals
shared_training.py, shared_update.py  its training: gradients, steps of Adam
generation.py     ranks, incumbents, restarts and ends of many runs
"""
