"""A fit made sharp at one observation."""
