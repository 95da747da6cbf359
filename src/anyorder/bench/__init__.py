"""Campaigns: many algorithms on many problems, at equal terms.

    campaign.py     the file that describes one, and the runs it asks for
    algorithms/     algorithms by name: ours, the baselines, other libraries'
    store.py        the file of all runs: what is done, what is missing, who does it
    runner.py       does what is missing
    results.py      what was measured, as arrays
    stats.py        means, intervals, ranks, tests, running times; special.py: its functions
    curves.py       the same as one small file
    tables.py       what stands in a table; typeset.py: as text, Markdown, LaTeX
    figures.py      convergence, ranks, ECDF, critical differences
    report.py       one page that shows it all
    ioh_export.py   the folders that IOHanalyzer reads
    reproduce.py    the paper's tables and figures as campaigns
    distances.py    how far a population is from its best point

The command `anyorder bench` is in cli.py.
"""
