"""Running a strategy on a function that may be slow, fail, or be interrupted.

    options.py    how to evaluate and when to stop, with a check of each option
    loop.py       proposes, evaluates, records and learns until something stops the run
    ending.py     when a run stops, and why
    progress.py   the progress bar and the log
    evaluation/   where evaluations run, and their time limits
    study/        the file of a run: writing, reading, locking, continuing

Users call `anyorder.optimize`.
"""
