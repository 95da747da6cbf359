"""The file of a run.

writing.py     writing the file; describes its format
reading.py     reading the file
ownership.py   the lock of the process that writes the file
replay.py      resuming a run from its file
rescue.py      exporting a study as CSV, even if it is damaged
"""
