"""
Compiler flags
==============

Which flags of GCC give the smallest binary? Each evaluation compiles a program and measures the
result. Flags that the compiler does not know are infeasible instead of an error, so the same script
runs with other versions. Requires GCC and binutils.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import which

import matplotlib.pyplot as plt

import anyorder as ao

SOURCE = Path("../gcc/lz.c").resolve()  # replace this by your own program
if which("gcc") is None or which("size") is None:
    sys.exit("This example compiles with gcc and measures with size: one of them is not installed.")

# %%
# A flag is present or absent, or has one of several values. A flag such as ``-flto`` can also be
# the name of its variable.
SWITCHES = [
    "-flto", "-ffunction-sections", "-Wl,--gc-sections", "-fwhole-program", "-fmerge-all-constants",
    "-fno-asynchronous-unwind-tables", "-fno-plt", "-no-pie", "-Wl,--build-id=none",
    "-fno-jump-tables", "-fno-tree-tail-merge", "-fno-align-functions", "-funroll-loops",
]  # fmt: skip
space = ao.Space(
    {
        "level": ao.Categorical(["-O1", "-O2", "-O3", "-Os", "-Oz"]),
        "inline": ao.Ordinal([1, 10, 50, 200]),
        **{flag: ao.Binary() for flag in SWITCHES},
    }
)


def compiled_size(flags):
    """Return the bytes of code and data."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["gcc", *flags, str(SOURCE), "-o", f"{folder}/program"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise ao.Infeasible(done.stderr[-200:])
        table = subprocess.run(["size", f"{folder}/program"], capture_output=True, text=True)
        text, data, *_ = table.stdout.splitlines()[1].split()
        return int(text) + int(data)


def size(point):
    chosen = [flag for flag in SWITCHES if point[flag]]
    return compiled_size([point["level"], f"-finline-limit={point['inline']}", *chosen])


# %%
# The compiler runs in a separate process, so threads are enough to keep two cores busy.
result = ao.minimize(size, space, budget=120, seed=0, executor="threads", workers=2)
print(f"{result.best_value:.0f} bytes: {result.best['level']}, inline {result.best['inline']}")
print(*[flag for flag in SWITCHES if result.best[flag]])

# %%
# For comparison, the common optimisation levels:
by_hand = {level: compiled_size([level]) for level in ("-O2", "-O3", "-Os")}

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
left.step(range(1, len(result.history) + 1), result.history.best, where="post")
left.set(xlabel="compilations", ylabel="bytes, best so far")
right.bar([*by_hand, "found"], [*by_hand.values(), result.best_value], color=["0.7"] * 3 + ["C0"])
right.set(ylabel="bytes")
plt.show()
