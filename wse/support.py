"""Rules of operator support: the public name of `wse.checks`."""

from wse.checks import RULES, Constraint, Finding, Report, Rule, Use, Where, check

__all__ = ["RULES", "Constraint", "Finding", "Report", "Rule", "Use", "Where", "check"]
