"""Running a strategy on a function that may be slow, fail, or be interrupted.

    options.py    how to evaluate and when to stop, with the checks of each option
    loop.py       proposes, evaluates, records and learns, until something stops the run
    ending.py     when it stops, and why
    progress.py   the progress bar and the log
    evaluation/   where evaluations run, and their time limits
    study/        the file of a run: written, read, locked, continued

`anyorder.optimize` is what users call.
"""
