"""Which operations a machine runs: rules as data, and what they say of one use."""
