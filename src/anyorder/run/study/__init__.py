"""The file of a run.

writing.py     the file, written; describes the format
reading.py     the file, read
ownership.py   the lock of the process that writes it
replay.py      continues a run from its file
rescue.py      a study as CSV, also of a damaged one
"""
