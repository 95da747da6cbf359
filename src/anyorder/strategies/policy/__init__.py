"""The paper's order-invariant policy: configuration, networks, engines."""
