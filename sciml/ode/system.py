"""A parametrised initial-value problem."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciml._html import captioned
from sciml.ode.observe.noise import check_noise
from sciml.ode.observe.observation import Observation
from sciml.ode.prior import check_scalar, describe, support

if TYPE_CHECKING:
    from numpyro.distributions import Distribution

log = logging.getLogger(__name__)

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
        prior: name → scalar numpyro distribution of each parameter, independent of each other.
        observation: which states are seen, and when.
        noise: the measurement noise as published; used where `noise=system.noise` is passed.
        method: the integrator to use where none is named; None means `RungeKutta4()`.
        time_unit: the unit of t.
        observed: name and unit of what is observed, for labels; one, or one per channel.
        reference: where the problem comes from.

    Raises:
        ValueError: the prior is empty or not scalar, or an observed state does not exist.
        TypeError: a part is of another kind.
    """

    name: str
    vector_field: VectorField
    initial_state: tuple[float, ...] | Callable[[Any], Any]
    prior: "Mapping[str, Distribution]"
    observation: Observation
    noise: Any = None
    time_unit: str = "s"
    observed: str | tuple[str, ...] = "observation"
    reference: str = ""
    method: Any = None

    def __post_init__(self):
        """Keep a tuple of numbers; check that the parts fit."""
        if isinstance(self.initial_state, list | np.ndarray):
            object.__setattr__(self, "initial_state", tuple(self.initial_state))
        check_parts(self)
        check_prior(self.prior, self.name)
        if isinstance(self.initial_state, tuple):
            check_states(self, len(self.initial_state))

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of θ, in the order in which the vector field takes them."""
        return tuple(self.prior)

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


def shown_problem(problem: Any, notes: tuple[str, ...]) -> str:
    """Return a table of the parameters of a problem with notes below."""
    import pandas as pd

    ends = support(problem.prior)
    rows = [
        (name, describe(prior)["kind"], "−∞" if low is None else low, "∞" if high is None else high)
        for name, prior in problem.prior.items()
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


def check_prior(prior: "Mapping[str, Distribution]", owner: str) -> None:
    """Refuse an empty prior and parts of it that are not scalar distributions."""
    if not isinstance(prior, Mapping):
        raise TypeError(
            f"the prior of {owner!r} is {prior!r}; it must be a dict of names and distributions, "
            "as {'rate': numpyro.distributions.Uniform(0.0, 1.0)}"
        )
    if not prior:
        raise ValueError(f"the prior of {owner!r} is empty; name at least one parameter")
    for name, distribution in prior.items():
        check_scalar(distribution, f"the prior of {name!r} of {owner!r}")


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


def check_field(system: System, parameters: Float[Array, " param"]) -> None:
    """Refuse a vector field of another shape than the state, or of other parts, uncomputed."""
    state = jax.eval_shape(lambda p: initial_state(system, p), parameters)
    check_states(system, len(state))
    time = jax.ShapeDtypeStruct((), parameters.dtype)
    field = jax.eval_shape(system.vector_field, time, state, parameters)
    shapes = [part.shape for part in field] if isinstance(field, tuple | list) else field.shape
    if shapes not in ([()] * len(state), state.shape):
        raise ValueError(
            f"the vector field of {system.name!r} returns {shapes} for a state of shape "
            f"{state.shape}; it must return one number per state: a tuple of {len(state)} scalars"
        )
    check_indices(system, len(state))


def check_indices(system: System, states: int) -> None:
    """Refuse a vector field that reads a state or parameter which is not there.

    JAX's arrays would give the last one in its place; NumPy's say so.
    """
    names, given = system.parameter_names, system.initial_state
    state, theta = np.ones(states, np.float32), np.ones(len(names), np.float32)

    def read() -> None:
        system.vector_field(np.float32(0), state, theta)
        if callable(given):
            given(theta)

    try:
        with np.errstate(all="ignore"):
            jax.eval_shape(read)
    except IndexError as error:
        raise ValueError(
            f"{system.name!r} reads a state or parameter that is not there ({error}); it has "
            f"{states} states and the parameters {', '.join(names)}: count from 0, and give each "
            "parameter a prior"
        ) from error
    except Exception as error:  # what NumPy's arrays cannot do, JAX's may
        log.debug("the indices of %s are not checked: %s", system.name, error)
