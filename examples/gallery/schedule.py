"""
A job shop
==========

Six jobs pass six machines, each in its own order. When should each operation start, so that all
jobs are finished as early as possible? This is the instance of Fisher and Thompson (1963); no
schedule is shorter than 55.
"""

import matplotlib.pyplot as plt

import anyorder as ao

# For each job: the machines in the order in which it visits them, with the durations.
JOBS = [
    [(2, 1), (0, 3), (1, 6), (3, 7), (5, 3), (4, 6)],
    [(1, 8), (2, 5), (4, 10), (5, 10), (0, 10), (3, 4)],
    [(2, 5), (3, 4), (5, 8), (0, 9), (1, 1), (4, 7)],
    [(1, 5), (0, 5), (2, 5), (3, 3), (4, 8), (5, 9)],
    [(2, 9), (1, 3), (4, 5), (5, 4), (0, 3), (3, 1)],
    [(1, 3), (3, 3), (5, 9), (0, 10), (4, 4), (2, 1)],
]

# %%
# The decision is the order in which operations are started. Each job has six places in the order:
# its first place is its first operation, and so on. So every order is a valid schedule.
space = ao.Space({"order": ao.Sequence(range(6), [6] * 6)})


def operations(order):
    """Job, machine, start and end of each operation: as soon as job and machine are free."""
    job_free, machine_free, done, plan = [0] * 6, [0] * 6, [0] * 6, []
    for job in order:
        machine, duration = JOBS[job][done[job]]
        start = max(job_free[job], machine_free[machine])
        job_free[job] = machine_free[machine] = start + duration
        done[job] += 1
        plan.append((job, machine, start, start + duration))
    return plan


def length(point):
    return max(end for *_, end in operations(point["order"]))


# %%
# ``target`` ends the search as soon as a schedule of that length is found.
result = ao.minimize(length, space, budget=3000, seed=0, target=55)
print(f"length {result.best_value:.0f} after {result.evaluations} evaluations")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.5), layout="constrained")
left.step(range(1, len(result.history) + 1), result.history.best, where="post")
left.set(xlabel="schedules evaluated", ylabel="length, best so far")
for job, machine, start, end in operations(result.best["order"]):
    right.barh(machine, end - start, left=start, color=f"C{job}", edgecolor="k", linewidth=0.5)
    right.text((start + end) / 2, machine, str(job), ha="center", va="center", fontsize=8)
right.set(xlabel="time; numbers and colours are jobs", ylabel="machine")
right.invert_yaxis()
plt.show()
