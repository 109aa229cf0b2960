"""Everything that lies between a data set and a net, settled before training."""

import logging
import warnings
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from sciml._labels import NOISE, labels_of, marked
from sciml.inverse.alarms.collapse import CollapseWarning
from sciml.inverse.axes import Grid, grid_of
from sciml.inverse.borders import is_measured, targets_of, valid_samples
from sciml.inverse.inputs import AsTheyAre, Standard
from sciml.inverse.measured import Measurement
from sciml.inverse.program import is_posterior
from sciml.inverse.scaling import MinMax, Unconstrained, rules_of, supports
from sciml.ode.observe.channels import check_channels
from sciml.ode.observe.counts import warn_of_cut
from sciml.ode.observe.noise import Noise, check_noise
from sciml.ode.prior import bounds

log = logging.getLogger(__name__)

DECADES = 1e3  # assumed: ratio of the 95 to the 5 % quantile of a parameter


@dataclass(frozen=True)
class Setup:
    """Grid, scalings and measurement of a fit, and its training set measured once.

    `clean` are observations, parameters and conditions, if any, as the data set has them;
    `observed`, as a net sees it, and `targets` one measurement of them.
    `noise` is what the noise says of itself.
    """

    grid: Grid
    inputs: AsTheyAre | Standard
    scaling: MinMax | Unconstrained
    measurement: Measurement
    clean: tuple[np.ndarray, ...]
    observed: np.ndarray
    targets: np.ndarray
    noise: dict[str, Any] | None

    def prepare(self, batch, key) -> tuple[Any, Any]:
        """Return a batch measured anew and scaled on both sides."""
        x, theta = self.measurement(batch, key)
        return self.inputs.forward(x), self.scaling.forward(theta)

    def prepared(self, observed, targets) -> tuple[Any, Any]:
        """Return a measured data set, scaled on both sides, on the device."""
        pair = self.inputs.forward(observed), self.scaling.forward(targets)
        return jax.tree.map(jnp.asarray, pair)


def setup(model, data: xr.Dataset, noise: Noise | None, seed: int, *, standardise: bool) -> Setup:
    """Return the setup of a fit of `model` to `data`; a posterior's inputs are always scaled."""
    # Noise may mark values as missing; the net must be made for it.
    data, clean = valid_samples(data, missing=accepts_missing(model))
    theta, told = targets_of(data, levels=noise is None)
    if noise is not None and is_measured(data):
        log.warning(
            "the data set was simulated with noise, to which noise= adds some in every epoch: "
            "leave one of the two out"
        )
    channels = labels_of(data["observation"], str(data["observation"].dims[-1]))
    check_noise(noise)
    check_channels(noise, channels, "the data set")
    warn_of_cut(noise, clean)
    described = noise.describe() if noise else None
    measurement = Measurement(noise)
    observed, targets = measurement.once((clean, theta), seed)
    if np.isnan(observed).any() and not accepts_missing(model):
        raise ValueError(
            f"the noise marks values as missing, which {model} cannot read; "
            "give the net missing=True"
        )
    check_varies(observed)
    names = (*told, *measurement.targets)
    if is_posterior(model):
        if "support" not in data.attrs:
            log.warning(
                "the data set does not say where its prior ends; parameters are taken to be "
                "unbounded: set attrs['support'], as '{\"rate\": [0, null]}'"
            )
        own = data.sizes["parameter"]
        given = (*told[:own], *(name.removeprefix(NOISE) for name in told[own:]))
        support = supports(data.attrs.get("support"), given)
        support += [bounds(level) for level in measurement.targets.values()]
        scaling = Unconstrained.of(targets, support, names)
        scaling = replace(scaling, inside=rules_of(data.attrs.get("inside"), names))
    else:
        scaling = MinMax.of(targets, names)
        warn_of_decades(targets, names)
    grid, whole = grid_of(data, observed, names), (clean, theta)
    scaled = standardise or is_posterior(model)
    apart = grid.dimension != "time"
    inputs = Standard.of(observed, features=apart) if scaled else AsTheyAre()
    if marked(data):
        known = grid.known(data["observation"])
        whole, shape = (*whole, known), observed.shape[1:]
        observed = np.asarray(grid.shown(observed, known))
        inputs = inputs.standard.beside(shape, grid.apart(observed)[1])
        measurement = replace(measurement, shown=grid.shown)
    return Setup(
        grid=grid,
        inputs=inputs,
        scaling=scaling,
        measurement=measurement,
        clean=whole,
        observed=observed,
        targets=targets,
        noise=described,
    )


def check_varies(observed: np.ndarray) -> None:
    """Warn of observations of which all samples have the same."""
    most, least = np.fmax.reduce(observed), np.fmin.reduce(observed)  # NaN of what all lack
    if ((most == least) | np.isnan(most)).all():
        warnings.warn(
            f"all {len(observed)} observations are the same; nothing can be learned from them: "
            "look at what is observed, and at which times",
            CollapseWarning,
            stacklevel=4,
        )


def warn_of_decades(targets: np.ndarray, names: tuple[str, ...]) -> None:
    """Say which parameters have small values that a squared error does not see."""
    low, high = np.quantile(np.abs(targets), (0.05, 0.95), axis=0)
    one_sign = (targets > 0).all(axis=0) | (targets < 0).all(axis=0)
    if (far := one_sign & (high > DECADES * low)).any():
        at = int(far.argmax())
        log.warning(
            "%s is from %.3g to %.3g in nine of ten samples, and a point net minimises its squared "
            "error, which does not tell the small ones apart: take its logarithm for the "
            "parameter, or a posterior net, as sciml.models.Gaussian()",
            *(names[at], low[at], high[at]),
        )


def accepts_missing(model) -> bool:
    """Tell whether a configuration reads NaN as missing."""
    return getattr(model, "missing", False)
