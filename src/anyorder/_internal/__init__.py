"""What every part uses and no user sees.

checks.py      checks of arguments: errors name the value and what was expected
compiling.py   functions that Numba compiles, and the cache of what it made
sqlite.py      SQLite files, for studies and campaigns
toml_file.py   TOML files, with errors that name the line
"""
