"""Runs of functions that are slow, fail, and are interrupted: what is behind `maximize`.

driver.py    the loop: draws, evaluates, records, tells, until something stops it
workers.py   where evaluations run: here, in processes, on an executor
study.py     the durable record of a run
show.py      what a study holds, for the terminal
rescue.py    what can still be read of one that is damaged
"""
