"""A parameter of PEtab: its scale, and its prior within its bounds."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist

from sciml.ode.sbml.tables import cells, number

UNSCALED = {"lin": lambda x: x, "log": jnp.exp, "log10": lambda x: 10.0**x}
SCALED = {"lin": lambda x: x, "log": np.log, "log10": np.log10}
PRIORS = ("uniform", "normal", "laplace", "logNormal", "logLaplace")
PRIORS += ("parameterScaleUniform", "parameterScaleNormal", "parameterScaleLaplace")
LABELS = {"lin": "{}", "log": "ln({})", "log10": "log10({})"}


def one_of(value: str, known: tuple[str, ...], what: str) -> str:
    """Return a word that must be one of those known."""
    if value not in known:
        raise ValueError(f"{what} is {value!r}; it must be one of {', '.join(known)}: correct it")
    return value


def prior_of(row: Any) -> Any:
    """Return the prior of a parameter on its own scale, within its bounds."""
    name, scale = row["parameterId"], row["parameterScale"] or "lin"
    ends = [number(row.get(x, "") or "nan", f"{x} of {name}") for x in ("lowerBound", "upperBound")]
    low, high = (float(SCALED[scale](x)) for x in ends)
    kind = row.get("objectivePriorType", "") or "parameterScaleUniform"
    one_of(kind, PRIORS, f"objectivePriorType of {name}")
    said = [
        number(x, f"a prior of {name}") for x in cells(str(row.get("objectivePriorParameters", "")))
    ]
    if said and len(said) != 2:
        raise ValueError(
            f"the prior of {name} has {len(said)} parameters; it must have two: correct it"
        )
    if kind.endswith("niform"):
        if kind == "uniform" and scale != "lin":
            raise ValueError(
                f"the prior of {name} is uniform, its scale {scale}: make one the other"
            )
        if said:  # fmin and fmax leave out a bound that is not there
            low, high = np.fmax(low, said[0]), np.fmin(high, said[1])
        if not (np.isfinite([low, high]).all() and low < high):
            raise ValueError(
                f"{name} has bounds {ends}{f' and a prior within {said}' if said else ''}; they "
                "must be two numbers that increase: correct them"
            )
        return dist.Uniform(float(low), float(high))
    if len(said) != 2:
        raise ValueError(f"the prior of {name} has no parameters; a {kind} must have two: add them")
    centre, width = said
    if not width > 0:
        raise ValueError(
            f"the prior of {name} has the width {width:g}; it must be above 0: correct it"
        )
    if kind.startswith("log") and scale == "log10":
        centre, width = centre / np.log(10), width / np.log(10)
    fits = kind.startswith("parameterScale") or scale == "lin" or kind.startswith("log")
    families = {"normal": dist.Normal, "laplace": dist.Laplace}
    family = kind.removeprefix("parameterScale").removeprefix("log").lower()
    if family not in families or not fits or (kind.startswith("log") and scale == "lin"):
        raise ValueError(f"the prior of {name} is {kind} on scale {scale}, which is not supported")
    base = families[family](centre, width)
    least, most = (x if np.isfinite(x) else None for x in (low, high))
    return dist.TruncatedDistribution(base, low=least, high=most)
