"""Where evaluations run.

jobs.py         the evaluations that are running, and their time limits
evaluators.py   what they have in common, and those in this process
executors.py    on an executor or a cluster
processes.py    in worker processes
interrupts.py   Ctrl-C
"""
