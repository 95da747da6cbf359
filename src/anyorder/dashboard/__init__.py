"""A page to look at runs: live, or as one file.

studies.py     the studies of a file or a folder
following.py   a study that is followed while it is written
contents.py    what has been read of it
parts.py       what the page shows of a study: figures, tables and facts
points.py      tables of points: the best, those that run, those that failed
views.py       what a reader has chosen of the studies, and was not sent yet
pages.py       the page, as one file or as files that are served
server.py      the page, served
"""
