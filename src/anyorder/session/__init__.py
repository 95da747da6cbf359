"""Runs of functions that are slow, fail, and are interrupted: what is behind `maximize`.

    rules.py      how to evaluate and when to stop, checked
    driver.py     the loop: draws, evaluates, records, tells, until something stops it
    workers.py    where evaluations run: here, on an executor; processes.py: in processes of ours
    study.py      the durable record of a run, as it is written
    reading.py    the same, as it is read
    show.py       what a study holds, for the terminal
    rescue.py     what can still be read of one that is damaged

`loop.py`, outside, is what users call.
"""
