"""Which operations of a training function would port: rules as data, and the report they give."""

from wse.support.check import check
from wse.support.report import Finding, Report
from wse.support.rules import Constraint, Rule, Use, Where
from wse.support.table import RULES

__all__ = ["RULES", "Constraint", "Finding", "Report", "Rule", "Use", "Where", "check"]
