"""A parametrised initial-value problem and what is seen of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpyro.distributions import Distribution

VectorField = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True)
class Observation:
    """One state, seen at equal intervals from time zero on.

    The times are 0, interval, …, (length − 1) interval, in the system's time unit.

    Raises:
        ValueError: a negative state, no times, or an interval that is not positive.
    """

    state: int
    interval: float
    length: int

    def __post_init__(self):
        """Check every value."""
        if self.state < 0:
            raise ValueError(f"Observation.state is {self.state}; it must be a state's index ≥ 0")
        if not self.interval > 0:
            raise ValueError(f"Observation.interval is {self.interval}; it must be positive")
        if self.length < 1:
            raise ValueError(f"Observation.length is {self.length}; it must be at least 1")

    @property
    def times(self) -> np.ndarray:
        """The observation times."""
        return np.arange(self.length) * self.interval


@dataclass(frozen=True)
class System:
    """du/dt = f(t, u, θ), u(0) given, θ drawn from a prior, one state observed.

    Args:
        name: one word, used in files.
        vector_field: `f(t, state, parameters)` of ONE sample, on arrays of shape (state,) and
            (param,); batching is done outside.
        initial_state: u(0).
        prior: name → numpyro distribution of each parameter, independent of each other.
        observation: which state is seen, and when.
        time_unit: the unit of t.
        observed: name and unit of the observed state, for labels.
        reference: where the problem comes from.

    Raises:
        ValueError: the prior is empty, or the observed state does not exist.
    """

    name: str
    vector_field: VectorField
    initial_state: tuple[float, ...]
    prior: "Mapping[str, Distribution]"
    observation: Observation
    time_unit: str = "s"
    observed: str = "observation"
    reference: str = ""

    def __post_init__(self):
        """Check that the parts fit."""
        if not self.prior:
            raise ValueError(f"the prior of {self.name!r} is empty; name at least one parameter")
        if self.observation.state >= len(self.initial_state):
            raise ValueError(
                f"Observation.state is {self.observation.state} but {self.name!r} has "
                f"{len(self.initial_state)} states; count from 0"
            )

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of θ, in the order in which the vector field takes them."""
        return tuple(self.prior)
