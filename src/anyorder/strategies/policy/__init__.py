"""The order-invariant policy of the paper: configuration, networks, engines."""
