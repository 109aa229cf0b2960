"""A wafer-scale machine: what it would take to train on it."""
