"""The default strategy: a portfolio of operators that share a model of gains.

    search      `auto` and `delta`, the lists of their operators
    portfolio   the strategy: tickets, the best point, what an answer changes
    climb       a climb to a local optimum, as a state machine; request: its requests
    credit      the choice of the operator that gets the next evaluations
    memory      points that are known or being evaluated; unseen: points that are not
    furnish     values of absent variables
    progress    counters
    words       a description of a run, for its facts
    lists       untried moves of lists, and the model of lists
    operators/  the operators, which make points: one file for each

docs/default.md explains the method.
"""
