"""Any program as the function: `anyorder run problem.toml`.

    file.py        the problem file: space, command, where the value is
    command.py     runs the command for a point
    templates.py   texts with {placeholders}
    shell.py       scripts for a shell, with values in environment variables
    matching.py    regular expressions that can be interrupted (match_process.py)
    guard.py       programs end when this process does (guard_process.py)

Linux and macOS.
"""
