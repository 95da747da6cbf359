"""All that is known in a run: its answers, and what was measured before it.

archive.py     all answers, in arrays that grow, with look-up of points
objectives.py  several objectives: names, directions, what a function has to return
hypervolume.py sets of vectors of which none dominates another, and their hypervolume
candidate.py   a point on its way from the strategy to its evaluation and back
history.py     the archive as users see it
front.py       the front of several objectives as users see it
notes.py       what evaluations report besides their values
knowledge.py   points to evaluate first and data of earlier runs, in their many forms
"""

from anyorder.archive.archive import CLAIM, CONFIRM, DATA, FREEDOM, Archive, Codes, Estimate

__all__ = ["CLAIM", "CONFIRM", "DATA", "FREEDOM", "Archive", "Codes", "Estimate"]
