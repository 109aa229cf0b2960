"""Which operations of a training function would port: rules as data, and the report they give."""

from wse.checks.check import check
from wse.checks.verdicts import Finding, Report
from wse.machine.support.rules import Constraint, Rule, Use, Where
from wse.machine.support.table import RULES

__all__ = ["RULES", "Constraint", "Finding", "Report", "Rule", "Use", "Where", "check"]
__dir__ = __all__.copy  # what tab completion shows
