"""Numbers that say how good a result is."""

from sciml.diagnose.field import bias, field_scores, mae, rmse, skill
from sciml.diagnose.recovery import r2, recovery

__all__ = ["bias", "field_scores", "mae", "r2", "recovery", "rmse", "skill"]
