"""Which operations of a training function would port: rules as data, and the report they give."""

from wse.checks.check import check
from wse.checks.rules import Constraint, Rule, Use, Where
from wse.checks.table import RULES
from wse.checks.verdicts import Finding, Report

__all__ = ["RULES", "Constraint", "Finding", "Report", "Rule", "Use", "Where", "check"]
__dir__ = __all__.copy  # what tab completion shows
