"""The default strategy: a portfolio of operators around a model of single changes.

    search      `auto` and `delta`: which operators they have
    portfolio   the strategy: tickets, the best point, what an answer changes
    climb       from a point to a local optimum, as a state machine; request: what it asks for
    credit      which operator gets the next evaluations
    memory      what is known or being evaluated; unseen: what is not
    furnish     values of variables that conditions take away
    progress    counters
    words       what a run did, for its facts
    lists       moves of lists that are not tried yet, and a model of them
    operators/  how points are made, a file each

docs/default.md explains the method.
"""
