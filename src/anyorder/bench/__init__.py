"""Campaigns: many algorithms on many problems, on equal terms.

    campaign.py     the file of a campaign, and the runs it requests
    algorithms/     algorithms by name: the policy, the other strategies, other libraries
    store.py        the file of all runs: which process does which run, and the results
    stored_runs.py  what such a file holds; records.py: its format; owners.py: the processes
    runner.py       does the missing runs
    results.py      the measured curves, as arrays
    stats.py        means, intervals, ranks, tests, running times (distributions.py)
    curves.py       results as one small file
    tables.py       tables of results; typeset.py: as text, Markdown, LaTeX
    figures.py      convergence, ranks, ECDF, critical differences (figure_style.py)
    report.py       all tables and figures on one HTML page
    ioh_export.py   the folders that IOHanalyzer reads
    reproduce.py    the paper's tables and figures as campaigns
    distances.py    distance of a population to its best point
    compare.py      several algorithms on one problem

The command `anyorder bench` is in `cli/bench.py`.
"""
