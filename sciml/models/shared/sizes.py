"""Checks of configurations that several nets share."""

from typing import Any


def check_sizes(config: Any, **least: int) -> None:
    """Refuse fields of `config` that are not whole numbers of at least `least`."""
    kind = type(config).__name__
    for name, bound in least.items():
        value = getattr(config, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < bound:
            good = type(config).__dataclass_fields__[name].default
            good = good if isinstance(good, int) else bound
            raise ValueError(
                f"{kind}.{name} is {value!r}; it must be a whole number ≥ {bound}: pass "
                f"{kind}({name}={good})"
            )
