"""Seconds and bytes on the real machine, from shapes alone. Nothing here needs JAX."""
