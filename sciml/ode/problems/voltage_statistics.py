"""Seven numbers that describe a membrane potential under a step of current."""

import jax.numpy as jnp
from jaxtyping import Array, Float

NAMES = ("spikes", "rest", "rest_sd", "mean", "variance", "skewness", "kurtosis")
THRESHOLD = -10.0  # sourced: tutorial of the sbi package; mV


def voltage_statistics(
    voltage: Float[Array, "*sample time"], interval: float, on: float, off: float
) -> Float[Array, "*sample feature"]:
    """Return `NAMES` of each trace.

    The number of spikes is that of upward crossings of −10 mV while the current flows; rest and
    rest_sd are the mean before the current and the standard deviation in the last tenth of that
    time; the moments are those while the current flows, skewness and kurtosis divided by the
    third and fourth power of the standard deviation.

    Args:
        voltage: in mV, equally spaced in time from zero.
        interval: the spacing.
        on: when the current starts, in the unit of the spacing.
        off: when it ends.

    Source: Gonçalves et al. 2020 and the tutorial of the sbi package, which count peaks above
    −10 mV that lie 0.5 ms apart.

    >>> import jax.numpy as jnp
    >>> from sciml.ode import voltage_statistics
    >>> trace = jnp.full((2, 1200), -65.0)
    >>> voltage_statistics(trace, 0.1, 10.0, 110.0).shape
    (2, 7)
    """
    first, last = round(on / interval), round(off / interval)
    during, before = voltage[..., first + 1 : last], voltage[..., :first]
    above = during > THRESHOLD
    spikes = (above[..., 1:] & ~above[..., :-1]).sum(axis=-1)
    mean, sd = during.mean(axis=-1), during.std(axis=-1)
    standard = (during - mean[..., None]) / jnp.maximum(sd, 1e-6)[..., None]
    return jnp.stack(
        [
            spikes.astype(voltage.dtype),
            before.mean(axis=-1),
            voltage[..., round(0.9 * first) : first].std(axis=-1),
            mean,
            sd**2,
            (standard**3).mean(axis=-1),
            (standard**4).mean(axis=-1),
        ],
        axis=-1,
    )
