"""What the rules say of one use of an operation."""

from collections.abc import Iterable
from dataclasses import replace

from wse.machine.support.rules import Rule, Use, Verdict, worst
from wse.machine.support.table import RULES
from wse.machine.target import Target

PRODUCTS = ("dot_general", "conv_general_dilated")  # what a machine does in half precision


def judged(
    use: Use, goal: Target, rules: tuple[Rule, ...] = RULES
) -> tuple[Verdict, tuple[Rule, ...]]:
    """The verdict on a use: by every rule on all operations, and by the first on this one.

    Where the cluster has a precision, products take what they read and write in it.

    Returns:
        The verdict and the rules that decided; none where nothing is known.
    """
    where = goal.cluster.machine.wafer, goal.cluster.mode or "streaming", goal.release
    if goal.precision and use.operation in PRODUCTS:
        kinds = tuple(goal.precision if x == "float32" else x for x in use.dtypes)
        use = replace(use, dtypes=kinds)
    speaking = [rule for rule in rules if rule.speaks(use, *where)]
    general = [rule for rule in speaking if rule.operations == ("*",)]
    own = [rule for rule in speaking if rule.operations != ("*",)][:1]
    silent: tuple[Verdict, ...] = () if own else ("unknown",)
    verdict = worst((*silent, *(rule.verdict for rule in (*general, *own))))
    return verdict, tuple(rule for rule in (*general, *own) if rule.verdict == verdict)


def cautions(uses: Iterable[Use], goal: Target) -> tuple[str, ...]:
    """One sentence for each reason for which a machine does not run some of these uses."""
    found: dict[str, list[str]] = {}
    for use in uses:
        verdict, rules = judged(use, goal)
        for rule in rules if verdict == "unsupported" else ():
            found.setdefault(rule.reason, []).append(use.operation)
    return tuple(
        f"wse.check calls {', '.join(dict.fromkeys(names))} unsupported: {reason}; the time is of "
        "a machine that would run it"
        for reason, names in found.items()
    )
