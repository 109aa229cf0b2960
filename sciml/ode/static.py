"""A task without a differential equation: all of it is in the noise."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sciml.ode import conditions as known
from sciml.ode.prior import Prior, names_of
from sciml.ode.system import check_observed, check_prior, shown_problem


@dataclass(frozen=True)
class Static:
    """x ~ p(x | θ), θ drawn from a prior: what inference benchmarks use beside systems.

    The noise-free "solution" of such a task is θ itself, shape (sample, param); its noise's
    `apply` draws the observation, shape (sample, feature). Without `noise=task.noise`,
    `simulate` therefore returns θ.

    Args:
        name: one word, used in files.
        prior: as of a `System`.
        features: the length of an observation, or of its last axis.
        noise: draws x from θ; see `sciml.ode.observe.noise.Noise`.
        observed: name of what is observed, for labels.
        reference: where the task comes from.
        solution: the noise-free features of ONE θ, from which the noise draws x; pure JAX. None:
            θ itself.
        method: in whose dtype and chunks `solution` is computed; None: single precision.
        conditions: known inputs of each sample, numbers as of a `System`; then `solution` takes θ
            and a dict of them.
        times: those of an observation that is a series, (time,), or (time, channel) if the noise
            makes that; None: features.
        time_unit: of these; another one in an observation is refused.

    Raises:
        ValueError: the prior is empty or of another shape, or there are no features; or conditions
            that cannot be drawn, or that no `solution` takes.

    >>> from numpyro.distributions import Normal
    >>> from sciml.ode import Gaussian, simulate
    >>> line = Static("line", {"mean": Normal(0.0, 1.0)}, features=1, noise=Gaussian(sd=0.5))
    >>> simulate(line, samples=3, noise=line.noise).observation.shape
    (3, 1)
    """

    name: str
    prior: Prior
    features: int
    noise: Any
    reference: str = ""
    observed: str | tuple[str, ...] = "observation"
    solution: Callable[..., Any] | None = None
    method: Any = None
    conditions: known.Conditions = field(default_factory=dict)
    times: tuple[float, ...] | None = None
    time_unit: str = ""

    def __post_init__(self):
        check_prior(self.prior, self.name)
        check_observed(self.observed, self.name)
        known.check_conditions(self, 0)
        if self.conditions and (self.solution is None or not known.takes(self.solution, 2)):
            raise ValueError(
                f"{self.name!r} has the conditions {', '.join(known.names_of(self))}, which nothing"
                " takes: write solution= as a function of θ and of a dict of them"
            )
        if self.features < 1:
            raise ValueError(f"features is {self.features}; {self.name!r} needs at least 1")

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of θ, in the order of the prior."""
        return names_of(self.prior)

    def __repr__(self) -> str:
        """Return one line: name, parameters, what is seen."""
        return f"Static({self.name!r}: {', '.join(self.parameter_names)}; {self.features} features)"

    def _repr_html_(self) -> str:
        """Return the parameters with their priors, for a notebook."""
        return shown_problem(self, (f"{self.features} features", f"noise: {self.noise}"))
