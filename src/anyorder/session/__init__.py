"""Running a strategy on a function that may be slow, fail, or be interrupted.

    options.py      how to evaluate and when to stop, with the checks of each option
    loop.py         proposes, evaluates, records and learns, until something stops the run
    ending.py       when it stops, and why
    progress.py     the progress bar
    jobs.py         the evaluations that are running, and their time limits
    evaluators.py   where they run: in this process or on an executor
    processes.py    or in worker processes
    interrupts.py   Ctrl-C
    study.py        the file of a run, writing; it describes the format
    reading.py      the file of a run, reading
    ownership.py    the lock of the process that writes it
    replay.py       continuing a run from its file
    rescue.py       a study as CSV, also of a damaged one

`anyorder.optimize` is what users call.
"""
