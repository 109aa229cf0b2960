"""Models by name, as shapes and as Flax modules, and graphs as either."""
