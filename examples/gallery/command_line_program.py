"""
A command-line program
======================

The function can be any program that prints a number. Here it is a compressor with six settings,
and the search looks for the settings that make a file of measurements smallest. The program is a
small script; a program in C or Fortran is used in the same way.
"""

import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import anyorder as ao

folder = Path(tempfile.mkdtemp())
steps = np.random.default_rng(0).normal(size=(20_000, 2))
(folder / "measured.bin").write_bytes((100 * steps.cumsum(axis=0)).astype("<i4").tobytes())

# %%
# The program takes the settings as arguments, and prints the size of the compressed file as its
# last line.
(folder / "pack.py").write_text("""
import lzma, sys
delta, lc, lp, pb, nice, finder = sys.argv[1:]
filters = [{"id": lzma.FILTER_DELTA, "dist": int(delta)}] if delta != "0" else []
filters.append({"id": lzma.FILTER_LZMA2, "lc": int(lc), "lp": int(lp), "pb": int(pb),
                "nice_len": int(nice), "mf": getattr(lzma, "MF_" + finder)})
data = open("measured.bin", "rb").read()
print(len(lzma.compress(data, format=lzma.FORMAT_RAW, filters=filters)))
""")

# %%
# Names in braces stand for values. The sum of ``lc`` and ``lp`` is at most four; this is a
# constraint.
command = ao.program.Command(
    (sys.executable, "pack.py", "{delta}", "{lc}", "{lp}", "{pb}", "{nice}", "{finder}"),
    directory=folder,
    timeout=60,
)
space = ao.Space(
    {
        "delta": ao.Categorical([0, 1, 2, 4, 8, 16]),
        "lc": ao.Integer(0, 4),
        "lp": ao.Integer(0, 4),
        "pb": ao.Integer(0, 4),
        "nice": ao.Ordinal([8, 16, 32, 64, 128, 273]),
        "finder": ao.Categorical(["HC4", "BT2", "BT4"]),
    }
)
result = ao.minimize(
    command, space, budget=100, seed=0, executor="threads", workers=2,
    constraint=lambda point: point["lc"] + point["lp"] - 4,
)  # fmt: skip
usual = command({"delta": 0, "lc": 3, "lp": 0, "pb": 2, "nice": 64, "finder": "BT4"})
print(f"usual settings {usual:,.0f} bytes, found {result.best_value:,.0f}: {result.best}")

# %%
# Without Python, the same search is a file of a few lines and ``anyorder run problem.toml``.
evaluated = np.cumsum(~result.history.cached)  # refused points do not count
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
axes.step(evaluated, result.history.best / 1000, where="post", label="best")
axes.plot(evaluated, result.history.values / 1000, ".", color="0.6")
axes.axhline(usual / 1000, color="0.4", linestyle="--", label="usual settings")
axes.set(xlabel="programs run", ylabel="compressed size in kB")
axes.legend()
plt.show()
