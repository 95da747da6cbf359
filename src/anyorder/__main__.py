"""`python -m anyorder` is the command `anyorder`."""

from .cli import main

main()
