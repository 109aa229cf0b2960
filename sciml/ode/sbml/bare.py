"""An SBML model by itself, without the tables of PEtab, as a system."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciml.ode.observe.observation import Observation
from sciml.ode.prior import Prior, check_entries, names_of
from sciml.ode.sbml import model as sbml
from sciml.ode.sbml import stated
from sciml.ode.sbml.conditions import constants_of
from sciml.ode.sbml.formula import TIME
from sciml.ode.system import System


def read_sbml(
    path: Path | str,
    prior: Prior,
    *,
    times: Sequence[float] | np.ndarray,
    observed: Sequence[str],
    noise: Any = None,
    method: Any = None,
    time_unit: str | None = None,
) -> System:
    """Read an SBML model as a system, of which some values are unknown.

    Args:
        path: the file. Formulas are parsed by libsbml; no text is executed.
        prior: as of a `System`: name of a parameter, or of a species whose first value is meant →
            distribution. All others have the values of the file.
        times: of the observation, increasing, from 0 on.
        observed: names of species, of what rate rules change, or of what assignment rules make of
            these; a channel each. A species is seen as the file means its name, as concentration
            or as amount.
        noise: as of a `System`.
        method: the integrator; default a fixed step, `Diffrax("Kvaerno5", …)` for stiff ones.
        time_unit: the unit of the file's times; default what the file says, else "s".

    Returns:
        A `System` whose states are those of the model, amounts of species; doses may be added by
        `dataclasses.replace(system, doses=...)`.

    Raises:
        ValueError: a damaged file, another unit of time, a name that the model does not have, or
            that a rule makes, a value that nothing gives, events, or rates that jump at times that
            are estimated.
        ImportError: python-libsbml is not installed.

    >>> import sciml
    >>> from numpyro.distributions import LogNormal
    >>> prior = {"k": LogNormal(0.0, 0.5)}
    >>> system = sciml.ode.read_sbml("a.xml", prior, times=[1], observed=["A"])  # doctest: +SKIP
    """
    check_entries(prior)
    found, names = sbml.read(path), names_of(prior)
    unit = stated.time_unit(path, time_unit)
    stated.warn_of_constraints(path)
    check_model(found, names, tuple(observed))

    def begin(parameters: Any) -> tuple[dict[str, Any], Any]:
        values = {**found.values, **dict(zip(names, parameters, strict=True))}
        return found.start(values, dict.fromkeys(names, True))

    def field(time: Any, state: Any, parameters: Any) -> tuple[Any, ...]:
        return tuple(found.rate(time, state, constants_of(found, begin(parameters)[0])))

    with jax.enable_x64(True):
        env, _ = begin(np.full(len(names), np.nan))
        jumps = [float(one(env)) for one in found.jumps]
    if not np.isfinite(jumps).all():
        raise ValueError(
            f"rates of {found.name} jump at times that are estimated, {jumps}: leave their names "
            "out of the prior"
        )
    if lost := found.lacking(names, observed):
        raise ValueError(
            f"{', '.join(lost)} of {found.name} have no value in the file: give each a prior"
        )
    made = [name for name in observed if name in found.rules]
    states = range(len(found.states)) if made else map(found.states.index, observed)
    see = by_rules(found, names, observed, env) if made else by_volume(found, observed, env)
    return System(
        name=found.name,
        vector_field=field,
        initial_state=lambda parameters: tuple(begin(parameters)[1]),
        prior=prior,
        observation=Observation(tuple(states), times, see),
        noise=noise,
        time_unit=unit,
        observed=tuple(observed) if len(observed) > 1 else observed[0],
        reference=str(path),
        method=method,
        jumps=tuple(t for t in jumps if t >= 0),
    )


def by_volume(found: sbml.Model, observed: Sequence[str], env: dict[str, Any]) -> Any:
    """Return what makes concentrations of amounts, or None where all volumes are 1."""
    sizes = np.array([float(found.size(name, env)) for name in observed])
    if not np.isfinite(sizes).all():
        raise ValueError(
            f"the volumes of {', '.join(observed)} are estimated; what is seen would change with "
            "them: leave them out of the prior"
        )
    return None if (sizes == 1).all() else lambda u: u / sizes.astype(u.dtype)


def by_rules(
    found: sbml.Model, names: Sequence[str], observed: Sequence[str], env: dict[str, Any]
) -> Any:
    """Return what makes channels of all states where some of them are made by rules."""
    for name in observed:
        if odd := sorted(found.needs.get(name, frozenset()) & {*names, TIME} - {*found.states}):
            raise ValueError(
                f"{name} of {found.name} is observed and its rule reads {odd[0]}; rules of what is "
                "observed may read states and fixed values alone: observe the states, or leave "
                f"{odd[0]} out of the prior"
            )
    fixed = {n: float(x) for n, x in constants_of(found, env).items()}

    def see(u: Any) -> Any:
        made = found.env(0.0, u.T, fixed)
        return jnp.stack([jnp.broadcast_to(made[n], u.shape[:1]) for n in observed], axis=-1)

    return see


def check_model(found: sbml.Model, names: tuple[str, ...], observed: tuple[str, ...]) -> None:
    """Refuse events, and names that the model does not have, or that a rule makes."""
    if found.events:
        raise ValueError(
            f"{found.name} has events, {', '.join(event.name for event in found.events)}, which are"
            " read with a PEtab problem alone: remove them, and give doses to the system"
        )
    known = {*found.values, *found.states}
    for name in names:
        if name not in known or name in found.rules:
            why = "a rule makes" if name in found.rules else f"{found.name} does not have"
            raise ValueError(
                f"the prior names {name!r}, which {why}; it must be one of "
                f"{', '.join(sorted(known - {*found.rules}))[:300]}"
            )
    seen = (*found.states, *found.rules)
    if not observed or not {*observed} <= {*seen}:
        raise ValueError(
            f"observed is {observed!r}; each must be a state of {found.name} or made by a rule: "
            f"{', '.join(seen)[:300]}"
        )
