"""A parametrised initial-value problem."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciml._html import captioned
from sciml.ode.observe.channels import check_channels
from sciml.ode.observe.noise import check_noise
from sciml.ode.observe.observation import Observation
from sciml.ode.prior import Prior, check_entries, describe, names_of, parts, support

VectorField = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True, repr=False)
class System:
    """du/dt = f(t, u, θ), u(start) = u₀(θ), θ drawn from a prior, some states observed.

    Args:
        name: one word, used in files.
        vector_field: `f(t, state, parameters)` of ONE sample, on arrays of shape (state,) and
            (param,), returning one value per state; batching is done outside.
        initial_state: u₀, a tuple or list of numbers, or a function of the parameters that
            returns them.
        prior: name → scalar numpyro distribution; or, of parameters that depend on each other, a
            tuple of names → the distribution of all of them. Entries are independent.
        observation: which states are seen, and when.
        noise: the measurement noise as published; used where `noise=system.noise` is passed.
        method: the integrator to use where none is named; None means `RungeKutta4()`.
        jumps: times at which the vector field jumps, such as the begin and end of each infusion;
            every method steps on them exactly. An adaptive one may otherwise step over a short
            pulse, a fixed step smears its edges.
        time_unit: the unit of t.
        observed: name and unit of what is observed, for labels; one, or one per channel.
        reference: where the problem comes from.

    Raises:
        ValueError: the prior is empty or has a distribution of another shape, an observed state
            does not exist, or a jump is not finite.
        TypeError: a part is of another kind.
    """

    name: str
    vector_field: VectorField
    initial_state: tuple[float, ...] | Callable[[Any], Any]
    prior: Prior
    observation: Observation
    noise: Any = None
    time_unit: str = "s"
    observed: str | tuple[str, ...] = "observation"
    reference: str = ""
    method: Any = None
    jumps: tuple[float, ...] = ()

    def __post_init__(self):
        """Keep a tuple of numbers; check that the parts fit."""
        if isinstance(self.initial_state, list | np.ndarray):
            object.__setattr__(self, "initial_state", tuple(self.initial_state))
        object.__setattr__(self, "jumps", checked_jumps(self.name, self.jumps))
        check_parts(self)
        check_prior(self.prior, self.name)
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
        return f"System({self.name!r}: {', '.join(self.parameter_names)}; {self._seen})"

    def _repr_html_(self) -> str:
        """Return the parameters with their priors, and what is seen, for a notebook."""
        return shown_problem(self, (f"observed: {self._seen}", f"noise: {self.noise}"))


def checked_jumps(owner: str, jumps: Any) -> tuple[float, ...]:
    """Return times of jumps as a sorted tuple of numbers, each once."""
    try:
        times = np.unique(np.asarray(jumps, np.float64).reshape(-1))
    except (TypeError, ValueError):
        times = np.array([np.nan])
    if not np.isfinite(times).all():
        raise ValueError(
            f"jumps of {owner!r} are {jumps!r}; they must be finite times, as (0.0, 0.5, 12.0)"
        )
    return tuple(times.tolist())


def shown_problem(problem: Any, notes: tuple[str, ...]) -> str:
    """Return a table of the parameters of a problem with notes below."""
    import pandas as pd

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
    given = system.initial_state
    if not callable(system.vector_field):
        raise TypeError(
            f"the vector field of {system.name!r} is {system.vector_field!r}; "
            "it must be a function f(t, state, parameters)"
        )
    if not (isinstance(given, tuple) or callable(given)):
        raise TypeError(
            f"the initial state of {system.name!r} is {given!r}; it must be a tuple of numbers, "
            f"as ({given!r},), or a function of the parameters"
        )
    check_noise(system.noise)
    check_channels(system.noise, system.observed, repr(system.name))


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
    if max(system.observation.states) >= states:
        raise ValueError(
            f"Observation.states is {system.observation.states} but {system.name!r} has "
            f"{states} states; count from 0"
        )


def initial_state(system: System, parameters: Float[Array, " param"]) -> Float[Array, " state"]:
    """Return u₀ of one sample, in the dtype of its parameters."""
    given = system.initial_state
    values = given if isinstance(given, tuple) else given(parameters)
    return jnp.stack([jnp.asarray(value, parameters.dtype) for value in values])
