"""A simulator that is no JAX: a function of one sample, of which nothing is known but its calls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from sciml._arguments import check_row
from sciml._numbers import short
from sciml.ode import conditions as known
from sciml.ode.prior import Prior, check_entries, names_of

SCHEDULERS = (  # of Dask
    "threads",
    "processes",
    "synchronous",
    "threading",
    "multiprocessing",
    "sync",
    "single-threaded",
    "distributed",
)


@dataclass(frozen=True)
class BlackBox:
    """x = f(θ), at random or not, of a function that is no JAX, such as of NumPy or a program.

    `simulate` calls it; `Fit.sample(check=)` and `sciml.refine` take it as they take a `System`,
    and ask simulations alone. What needs its likelihood or its derivatives, as NUTS, refuses it.

    Args:
        simulator: of one sample, as of `black_box`.
        prior: as of a `System`.
        conditions: known inputs, numbers as of a `System`.
        time: of the first axis of what it returns, which are features otherwise; or it returns them
            as names.
        labels: names of channels, or of features.
        scheduler: of Dask, as of `black_box`.
        folder: where results are kept as they come, as of `black_box`.

    Raises:
        TypeError: the simulator cannot be called.
        ValueError: a prior or a condition that cannot be drawn.

    >>> import numpy as np, sciml
    >>> from numpyro.distributions import Uniform
    >>> box = sciml.ode.BlackBox(lambda p: p["rate"] * np.arange(5), {"rate": Uniform(0.1, 1.0)})
    >>> sciml.simulate(box, 20).observation.shape
    (20, 5)
    """

    simulator: Callable[..., Any]
    prior: Prior
    conditions: known.Conditions = field(default_factory=dict)
    time: Any = None
    labels: Sequence[str] | None = None
    scheduler: Any = "threads"
    folder: Path | str | None = None
    noise: ClassVar[None] = None

    def __post_init__(self):
        """Check every value."""
        if not callable(self.simulator):
            raise TypeError(
                f"the simulator is {short(self.simulator)}; it must be a function of a dict of "
                "parameters that returns an array"
            )
        if isinstance(self.scheduler, str) and self.scheduler not in SCHEDULERS:
            raise ValueError(
                f"scheduler is {self.scheduler!r}; it must be one of {', '.join(SCHEDULERS)}, or a "
                "distributed.Client: pass 'threads'"
            )
        runs = callable(getattr(self.scheduler, "submit", self.scheduler))
        if not (self.scheduler is None or isinstance(self.scheduler, str) or runs):
            raise TypeError(
                f"scheduler is {short(self.scheduler)}; it must be a word or a distributed.Client: "
                "pass 'threads'"
            )
        check_row(time=self.time, labels=self.labels)
        check_entries(self.prior)
        known.check_conditions(self, 0)

    @property
    def name(self) -> str:
        """The name of the function."""
        return getattr(self.simulator, "__name__", "simulator")

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names of θ, in the order of the prior."""
        return names_of(self.prior)
