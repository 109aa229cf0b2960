"""Numbers that say how good a result is."""

from sciml.diagnose.recovery import r2, recovery

__all__ = ["r2", "recovery"]
