"""`python -m anyorder` is the command `anyorder`."""

from anyorder.cli import main

main()
