"""Rules of operator support: the public name of `wse.checks`."""

from wse.checks import RULES, Constraint, Finding, Report, Rule, Use, Where, check

__all__ = ["RULES", "Constraint", "Finding", "Report", "Rule", "Use", "Where", "check"]
__dir__ = __all__.copy  # what tab completion shows
