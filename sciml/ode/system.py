"""A parametrised initial-value problem."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float

from sciml._arguments import check_row
from sciml._html import captioned
from sciml._labels import each_once
from sciml._numbers import as_numbers, has_names, real, short
from sciml._units import as_other, same_unit
from sciml.ode import conditions as known
from sciml.ode.doses import Dose, check_doses, edges, infused, steps_of
from sciml.ode.observe.channels import check_channels
from sciml.ode.observe.noise import check_noise
from sciml.ode.observe.observation import Observation
from sciml.ode.prior import Prior, check_entries, describe, names_of, parts, support

VectorField = Callable[..., Any]
OWN = {int, float}


@dataclass(frozen=True, repr=False)
class System:
    """du/dt = f(t, u, θ), u(start) = u₀(θ), θ drawn from a prior, some states observed.

    Args:
        name: one word, used in files.
        vector_field: `f(t, state, parameters)` of ONE sample, on arrays of shape (state,) and
            (param,), returning one value per state; batching is done outside. With conditions
            `f(t, state, parameters, conditions)`, the last a dict of numbers by name.
        initial_state: u₀, a tuple or list of numbers, or a function of the parameters (and of
            the conditions, if it takes two arguments) that returns them.
        prior: name → scalar numpyro distribution; or, of parameters that depend on each other, a
            tuple of names → the distribution of all of them. Entries are independent.
        observation: which states are seen, and when.
        noise: the measurement noise as published; used where `noise=system.noise` is passed.
        method: the integrator to use where none is named; None means `RungeKutta4()`.
        jumps: times at which the vector field jumps, such as the begin and end of each infusion;
            every method steps on them exactly. An adaptive one may otherwise step over a short
            pulse, a fixed step smears its edges.
        conditions: known inputs of each sample, which are given to nets and likelihoods and never
            estimated, as doses, covariates or forcing: name → what simulations draw them from, a
            distribution or a list of values. Of several that depend on each other a tuple of names
            → their distribution, or rows of values. A series has a value at each time of the
            observation, in between it is interpolated linearly.
        doses: `Bolus` and `Infusion`, what is given into states at given times; every method steps
            on them exactly.
        time_unit: the unit of t.
        observed: name and unit of what is observed, for labels; one, or one per channel.
        reference: where the problem comes from.

    Raises:
        ValueError: the prior is empty or has a distribution of another shape, an observed state
            does not exist, a jump is not finite, or conditions cannot be drawn.
        TypeError: a part is of another kind.

    >>> from numpyro.distributions import Uniform
    >>> from sciml.ode import Observation
    >>> decay = System(
    ...     name="decay",
    ...     vector_field=lambda t, u, p: (-p[0] * u[0],),
    ...     initial_state=(1.0,),
    ...     prior={"rate": Uniform(0.5, 2.0)},
    ...     observation=Observation.regular(interval=0.5, length=4),
    ...     time_unit="h",
    ... )
    >>> decay
    System('decay': rate; state 0 at 4 times, 0 to 1.5 h)
    """

    name: str
    vector_field: VectorField
    initial_state: tuple[float, ...] | Callable[..., Any]
    prior: Prior
    observation: Observation
    noise: Any = None
    time_unit: str = "s"
    observed: str | tuple[str, ...] = "observation"
    reference: str = ""
    method: Any = None
    jumps: tuple[float, ...] = ()
    conditions: known.Conditions = field(default_factory=dict)
    doses: tuple[Dose, ...] = ()

    def __post_init__(self):
        """Keep a tuple of numbers; check that the parts fit."""
        object.__setattr__(self, "initial_state", own_state(self.initial_state, self.name))
        object.__setattr__(self, "jumps", checked_jumps(self.name, self.jumps))
        check_parts(self)
        check_unit(self.observation.unit, self.time_unit, self.name)
        check_prior(self.prior, self.name)
        known.check_conditions(self, len(self.observation.times))
        alone = isinstance(self.doses, Dose) or not isinstance(self.doses, Iterable)
        object.__setattr__(self, "doses", (self.doses,) if alone else tuple(self.doses))
        check_doses(self, (*self.parameter_names, *known.split_names(self)[0]))
        check_read(self)
        if isinstance(self.initial_state, tuple):
            check_states(self, len(self.initial_state))

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of θ, in the order in which the vector field takes them."""
        return names_of(self.prior)

    @property
    def _seen(self) -> str:
        """Which states are observed, and when."""
        states, times = self.observation.states, self.observation.times
        plural = "s" if len(states) > 1 else ""
        return (
            f"state{plural} {', '.join(map(str, states))} at {len(times)} times, "
            f"{times[0]:g} to {times[-1]:g} {self.time_unit}"
        )

    def __repr__(self) -> str:
        """Return one line: name, parameters, what is seen."""
        given = f"; given {', '.join(known.names_of(self))}" if self.conditions else ""
        return f"System({self.name!r}: {', '.join(self.parameter_names)}{given}; {self._seen})"

    def _repr_html_(self) -> str:
        """Return the parameters with their priors, and what is seen, for a notebook."""
        return shown_problem(self, (f"observed: {self._seen}", f"noise: {self.noise}"))


def own_state(given: Any, owner: str) -> Any:
    """Return an initial state as a tuple of Python's own numbers; a function as it is."""
    if callable(given):
        return given
    said = f"the initial state of {owner!r}"
    if has_names(given) and not isinstance(given, tuple):
        raise TypeError(
            f"{said} is {short(given)}, whose names would be lost: states have none, so pass a "
            "tuple in the order in which the vector field takes them"
        )
    check_no_imaginary(given if isinstance(given, list | tuple) else (given,), owner)
    found = real(given, said)
    if found.ndim != 1 or not np.isfinite(found).all():
        raise TypeError(
            f"{said} is {short(given)}; it must be a tuple of numbers, as (1.0,), all finite, or a "
            "function of the parameters"
        )
    return given if isinstance(given, tuple) and {*map(type, given)} <= OWN else (*found.tolist(),)


def check_no_imaginary(values: Iterable[Any], owner: str) -> None:
    """Refuse an initial state with imaginary parts."""
    if any(jnp.iscomplexobj(value) for value in values):
        raise ValueError(
            f"the initial state of {owner!r} is complex; it must be real: give the real and "
            "imaginary parts as states of their own"
        )


def checked_jumps(owner: str, jumps: Any) -> tuple[float, ...]:
    """Return times of jumps as a sorted tuple of numbers, each once."""
    times = np.unique(as_numbers(jumps, "jumps").reshape(-1))
    if not np.isfinite(times).all():
        raise ValueError(
            f"jumps of {owner!r} are {jumps!r}; they must be finite times, as (0.0, 0.5, 12.0)"
        )
    return tuple(times.tolist())


def shown_problem(problem: Any, notes: tuple[str, ...]) -> str:
    """Return a table of the parameters of a problem with notes below."""
    ends = support(problem.prior)
    rows = [
        (name, kind, "−∞" if low is None else low, "∞" if high is None else high)
        for (names, _), each in zip(parts(problem.prior), problem.prior.values(), strict=True)
        for name, kind in [(name, describe(each)["kind"]) for name in names]
        for low, high in [ends[name]]
    ]
    table = pd.DataFrame(rows, columns=["parameter", "prior", "from", "to"])
    below = (*notes, problem.reference) if problem.reference else notes
    return captioned(problem.name, table, below)


def check_parts(system: System) -> None:
    """Refuse parts of another kind, before one is used."""
    if not callable(system.vector_field):
        raise TypeError(
            f"the vector field of {system.name!r} is {system.vector_field!r}; "
            "it must be a function f(t, state, parameters)"
        )
    check_noise(system.noise)
    check_observed(system.observed, system.name)
    check_channels(system.noise, system.observed, repr(system.name))


def check_unit(said: str, time_unit: str, owner: str) -> None:
    """Refuse labelled times in another unit than the system's."""
    if said and not same_unit(said, time_unit):
        raise ValueError(
            f"Observation.times are in {said!r} and time_unit of {owner!r} is {time_unit!r}: pass "
            f"time_unit={said!r} if rates are per {said}, or else {as_other(said, time_unit)}"
        )


def check_observed(observed: Any, owner: str) -> None:
    """Refuse a name of a channel or feature that occurs twice."""
    if not isinstance(observed, str):
        check_row(observed=observed)
        each_once(tuple(observed), f"those observed of {owner!r}")


def check_prior(prior: Prior, owner: str) -> None:
    """Refuse an empty prior and parts of it that are no distributions of so many parameters."""
    if not isinstance(prior, Mapping):
        raise TypeError(
            f"the prior of {owner!r} is {prior!r}; it must be a dict of names and distributions, "
            "as {'rate': numpyro.distributions.Uniform(0.0, 1.0)}"
        )
    if not prior:
        raise ValueError(f"the prior of {owner!r} is empty; name at least one parameter")
    check_entries(prior, f" of {owner!r}")


def check_states(system: System, states: int) -> None:
    """Refuse to observe what a system of so many states does not have."""
    if wrong := [dose for dose in system.doses if dose.state >= states]:
        raise ValueError(
            f"{wrong[0]} is into state {wrong[0].state}, but {system.name!r} has {states} states; "
            "count from 0"
        )
    if max(system.observation.states) >= states:
        raise ValueError(
            f"Observation.states is {system.observation.states} but {system.name!r} has "
            f"{states} states; count from 0"
        )


def check_read(system: System) -> None:
    """Refuse conditions that no function of the system takes."""
    given = system.initial_state
    read = known.takes(system.vector_field, 4) or (callable(given) and known.takes(given, 2))
    read = read or any(dose.amount in known.names_of(system) for dose in system.doses)
    if system.conditions and not read:
        raise TypeError(
            f"{system.name!r} has the conditions {', '.join(known.names_of(system))}, which "
            "nothing takes: write the vector field as f(t, state, parameters, conditions), or the "
            "initial state as a function of parameters and conditions, or name them in doses"
        )


def initial_state(system: System, row: Float[Any, " param"]) -> Float[Array, " state"]:
    """Return u₀ of one sample, before any dose, in the dtype of its parameters and conditions."""
    given, theta = system.initial_state, row[: len(system.parameter_names)]
    if isinstance(given, tuple):
        values: Any = given
    elif system.conditions and known.takes(given, 2):
        at = known.inputs_at(system, row[len(theta) :])
        values = given(theta, at(jnp.asarray(system.observation.start, row.dtype)))
    else:
        values = given(theta)
    check_no_imaginary(values, system.name)
    return jnp.stack([jnp.asarray(value, row.dtype) for value in values])


def rate(system: System, row: Float[Any, " param"]) -> Callable[[Any, Any], Any]:
    """Return (t, state) ↦ du/dt of one sample, behind whose parameters its conditions stand."""
    function, theta = system.vector_field, row[: len(system.parameter_names)]
    if system.conditions and known.takes(function, 4):
        at = known.inputs_at(system, row[len(theta) :])
        field: Any = lambda t, u: function(t, u, theta, at(t))  # noqa: E731
    else:
        field = lambda t, u: function(t, u, theta)  # noqa: E731
    more = infused(system, amounts(system, row))
    return field if more is None else lambda t, u: more(t, jnp.stack(field(t, u)))


def amounts(system: System, row: Float[Any, " param"]) -> dict[str, Any]:
    """Return what doses may name: parameters and conditions of one sample."""
    names = system.parameter_names
    found = dict(zip(names, row, strict=False))
    return found | known.columns_of(system, row[len(names) :])


def stops(system: System) -> tuple[float, ...]:
    """Return the times at which every method steps: jumps, and begin and end of infusions."""
    return (*system.jumps, *edges(system))


def bolus_steps(
    system: System, row: Float[Any, " param"], ends: np.ndarray, state: Float[Array, " state"]
) -> Float[Array, "end state"]:
    """Return by how much what is given at once changes the state of one sample, at some times."""
    return steps_of(system, amounts(system, row), ends, state)
