"""Tools that every part of the library uses and no user sees.

checks.py      checks of arguments: errors name the value and what was expected
compiling.py   functions compiled by Numba, and their cache on disk
sqlite.py      SQLite files, for studies and campaigns
toml_file.py   TOML files, with errors that name the line
"""
