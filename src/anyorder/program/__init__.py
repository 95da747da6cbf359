"""Any program as the function: `anyorder run problem.toml`.

    file.py        the problem file: space, command, where the value is
    command.py     runs the command for a point
    templates.py   texts with {placeholders}
    matching.py    regular expressions that can be interrupted
    guard.py       programs end when this process does (guard_process.py)

Linux and macOS.
"""

from anyorder.program.command import Command
from anyorder.program.file import Job, read

__all__ = ["Command", "Job", "read"]
