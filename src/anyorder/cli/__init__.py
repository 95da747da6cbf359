"""The command `anyorder`.

    solve.py      solve a built-in problem
    run.py        optimise what a program prints
    compare.py    several algorithms on one problem
    problems.py   list the problems
    info.py       the version and the engines
    show.py       the contents of a study (study.py), and figures of it
    front.py      the front of several objectives, for best.py, show.py and solve.py
    dashboard.py  a page of studies, live or as a file
    best.py       the best point of a study, and continuing the study
    algorithms.py list the algorithms
    compile.py    compile the loops of all algorithms ahead of their use
    bench.py      campaigns (campaigns.py)
    reproduce.py  the paper's tables and figures
    common.py     errors, output and signals, for all of them

Heavy packages (Numba, Matplotlib, PyTorch) are imported by the commands that use them, when they
run: `anyorder --help` imports none.
"""

from __future__ import annotations

import click

from anyorder._version import __version__
from anyorder.cli.algorithms import algorithms
from anyorder.cli.bench import bench
from anyorder.cli.best import best, resume
from anyorder.cli.common import MainGroup, escape_what_cannot_be_printed, log_to_terminal
from anyorder.cli.compare import compare
from anyorder.cli.compile import compile_all
from anyorder.cli.dashboard import dashboard, report
from anyorder.cli.info import info
from anyorder.cli.problems import problems
from anyorder.cli.reproduce import reproduce
from anyorder.cli.run import run
from anyorder.cli.show import plot, show
from anyorder.cli.solve import solve


@click.group(cls=MainGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="anyorder")
@click.pass_context
def main(context: click.Context) -> None:
    """Optimise black-box functions over discrete variables."""
    escape_what_cannot_be_printed()
    log_to_terminal(context)


for _command in (
    solve, run, resume, best, show, plot, dashboard, report, compare, problems, algorithms, info,
    compile_all, bench, reproduce,
):  # fmt: skip
    main.add_command(_command)
