"""A normal mean under a normal prior: the task whose posterior is known exactly."""

import math

from numpyro.distributions import Normal

from sciml.ode.observe.noise import Gaussian
from sciml.ode.static import Static

SIZE = 10  # sourced: arXiv 2101.04653, task T.1
VARIANCE = 0.1  # sourced: as SIZE; of the prior and of the noise
# Sourced: sbibm 1.1, observation 1.
TRUTH = (
    0.27184236, 0.6762953, 0.17189318, -0.04218617, -0.82151634,
    0.024290232, -0.24255924, -0.16438946, -0.13595216, 0.26958188,
)  # fmt: skip


def gaussian_linear() -> Static:
    """Return the linear Gaussian task.

    θ ~ N(0, 0.1)¹⁰, x ~ N(θ, 0.1); 0.1 are variances. The posterior of θ given x is
    N(x / 2, 0.05).

    Source: Lueckmann et al., "Benchmarking Simulation-Based Inference", arXiv 2101.04653,
    task T.1.

    >>> gaussian_linear().features
    10
    """
    sd = math.sqrt(VARIANCE)
    return Static(
        name="gaussian_linear",
        prior={f"theta{i}": Normal(0.0, sd) for i in range(SIZE)},
        features=SIZE,
        noise=Gaussian(sd=sd),
        reference="Lueckmann et al., arXiv 2101.04653",
    )
