"""Any program as the function: `anyorder run problem.toml`.

    file.py      the file: space, command, where the value is
    command.py   runs the command for a point

Linux and macOS.
"""
