"""Studies of nets that refine wind."""
