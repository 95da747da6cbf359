"""Campaigns: many algorithms on many problems, at equal terms.

campaign.py     the file that describes one, and the runs it asks for
algorithms.py   algorithms by name: ours, the baselines, other libraries'
store.py        the file of all runs: what is done, what is missing, who does it
runner.py       does what is missing
results.py      what was measured, as arrays
stats.py        means, intervals, ranks, tests, running times
tables.py       as Markdown, CSV, LaTeX
figures.py      convergence, ranks, ECDF, critical differences
report.py       one page that shows it all
"""
