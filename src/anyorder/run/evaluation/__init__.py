"""The places where evaluations run.

jobs.py         the evaluations that are running, and their time limits
evaluators.py   the common interface, and evaluations in this process
executors.py    evaluations on an executor or a cluster
processes.py    evaluations in worker processes
interrupts.py   Ctrl-C
"""
