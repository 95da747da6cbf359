"""Many independent runs of the policy, in lockstep.

solve.py       `solve_many`: checks the arguments and chooses a driver
runs.py        the outcome: `Run` and `Runs`
objective.py   ways to evaluate a batch: functions, vectorised functions, problems
base.py        task and log of a driver; the bookkeeping of runs in lockstep
host.py        the driver for all engines and objectives
device.py      the driver for objectives on the GPU; device_critic.py: its critic
"""

from anyorder.policy.many.solve import solve_many

__all__ = ["solve_many"]
