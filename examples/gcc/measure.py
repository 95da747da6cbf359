"""The size of a program compiled with the flags given: `measure.py OUTPUT SOURCE FLAGS...`.

Prints the bytes of code and data that `size` counts. Exits with 3 if these flags cannot be used:
the compiler refuses them, or the program they make fails its own test.
"""

from __future__ import annotations

import subprocess
import sys

INFEASIBLE = 3


def main() -> None:
    output, source, *flags = sys.argv[1:]
    compiled = subprocess.run(["gcc", *flags, source, "-o", output])
    if compiled.returncode != 0 or subprocess.run([output, "t"], stdout=2).returncode != 0:
        sys.exit(INFEASIBLE)
    table = subprocess.run(
        ["size", output], stdout=subprocess.PIPE, text=True, check=True, encoding="utf-8"
    ).stdout
    text, data, *_ = table.splitlines()[1].split()
    print(int(text) + int(data))


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as error:
        sys.exit(f"measure.py: {error.filename} is not installed; it comes with GCC and binutils")
