"""Studies of inverse maps."""
