"""A page that shows runs: live, or as one file.

studies.py     the studies of a file or a folder
following.py   a study that is followed while it is being written
contents.py    what has been read of a study
parts.py       what the page shows of a study: figures, tables and facts
points.py      tables of points: the best, the running, the failed
views.py       what a reader has chosen of the studies and has not been sent yet
pages.py       the page, as one file or as files for a server
server.py      the server of the page
"""
