"""The process behind `matching.py`: searches text by regular expressions.

Run as a script, with the number of the process it serves. Each line on stdin is a JSON list
[pattern, text]; the answer is a line with [first group of the last match], or [] for no match.
Standard library only: it starts in milliseconds.
"""

import json
import os
import re
import signal
import sys
from collections import deque
from types import FrameType

_LOOK = 1.0  # seconds between checks that the parent lives: a search may take for ever


def main() -> None:
    """Answer until stdin ends."""
    parent = int(sys.argv[1])

    def leave_with_parent(number: int, frame: FrameType | None) -> None:
        if os.getppid() != parent:
            os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, leave_with_parent)  # runs during a search as well
    signal.setitimer(signal.ITIMER_REAL, _LOOK, _LOOK)
    for line in sys.stdin:
        pattern, text = json.loads(line)
        last = deque(re.finditer(pattern, text, re.MULTILINE), maxlen=1)
        print(json.dumps([match[1] for match in last]), flush=True)


if __name__ == "__main__":
    main()
