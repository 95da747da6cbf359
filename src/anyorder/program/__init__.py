"""Programs as functions: `anyorder run problem.toml`.

    file.py        the problem file: the space, the command, and where the value is
    command.py     running the command for a point
    templates.py   texts with {placeholders}
    matching.py    search by regular expressions, which can be interrupted
    guard.py       killing programs when this process ends (guard_process.py)

Linux and macOS only.
"""

from anyorder.program.command import Command
from anyorder.program.file import Job, read

__all__ = ["Command", "Job", "read"]
