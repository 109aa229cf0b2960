"""The constants of `wse.catalog.PIPELINED` and the efficiencies of `wse.constants`, fitted again.

An efficiency is the share of the peak at which the model gives GPT-J's published rate: one number
from one, so nothing is left to check it with. Both laws of the pipelined mode have two terms that
are linear in the constants. Least squares of the relative residual

    min_x  sum_i (sum_j A_ij x_j / y_i - 1)^2

weighs 5 s of training as it weighs 800 s of set-up. Leave-one-out errors stand beside in-sample
ones: four points and two constants leave little to check a law with.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from wse.machine import published
from wse.machine.cluster import CS2
from wse.machine.published import TABLE4, Row
from wse.models import shapes as workloads
from wse.predict import arrays, bandwidth
from wse.predict import seconds as streamed
from wse.predict.arrays import Reals


@dataclass(frozen=True)
class Calibration:
    """A fitted law and how well it does.

    Attributes:
        constants: the two fitted constants, in SI units.
        in_sample_percent: estimate over published minus one, for each row, in percent.
        leave_one_out_percent: the same, for each row from a fit that has not seen it.
    """

    constants: tuple[float, float]
    in_sample_percent: tuple[float, ...]
    leave_one_out_percent: tuple[float, ...]

    @property
    def in_sample_mape_percent(self) -> float:
        """Mean absolute in-sample error."""
        return float(np.mean(np.abs(self.in_sample_percent)))

    @property
    def leave_one_out_mape_percent(self) -> float:
        """Mean absolute error over rows that were left out of their fit."""
        return float(np.mean(np.abs(self.leave_one_out_percent)))


def train(rows: Sequence[Row] = TABLE4) -> Calibration:
    """Fit tau = a + b W to the published samples per second.

    Args:
        rows: at least three published rows.

    Returns:
        The calibration; its constants are a in s and b in s per unit.

    Raises:
        ValueError: fewer than three rows.

    >>> [f"{x:+.1f}" for x in train().in_sample_percent]
    ['-4.7', '+5.5', '-1.3', '-0.0']
    """
    widths = np.array([row.units for row in rows], dtype=np.float64)
    seconds = np.array([1.0 / row.cs2_samples_per_s for row in rows])
    return _calibrate(widths, seconds)


def setup(rows: Sequence[Row] = TABLE4) -> Calibration:
    """Fit T_setup = S0 + c (P / 1e6)^1.5 to the published set-up seconds.

    Args:
        rows: at least three published rows.

    Returns:
        The calibration; its constants are S0 in s and c in s per (million parameters)^1.5.

    Raises:
        ValueError: fewer than three rows.

    >>> [f"{x:.4f}" for x in setup().constants]
    ['172.9437', '3.5665']
    """
    areas = np.array([(row.parameters / 1e6) ** 1.5 for row in rows])
    seconds = np.array([row.cs2_setup_s for row in rows])
    return _calibrate(areas, seconds)


def efficiency(release: str) -> float:
    """The share of the dense peak that gives GPT-J's published rate on two CS-2.

    Args:
        release: of `wse.published.GPTJ_SAMPLES_PER_S`.

    Returns:
        The share, by bisection to 1e-9.

    >>> round(efficiency("R2.0.3"), 3)
    0.298
    """
    work, cluster = workloads.get("GPT-J-6B"), CS2(published.GPTJ_SYSTEMS)
    base = arrays.shapes(work, cluster, release, merged=True)
    made, plans = bandwidth.rates(work, cluster), arrays.plans(work)
    batch, systems = np.array([float(published.GPTJ_BATCH)]), np.array([float(cluster.systems)])
    flops_s = np.full_like(base.weights, 1 / cluster.machine.peak_fp16_flops_per_s)
    low, high = 0.01, 1.0
    while high - low > 1e-9:
        share = (low + high) / 2
        layers = replace(base, seconds_per_flop=flops_s / share)
        found = streamed.tried(layers, made, plans, batch, systems, base.density[None])
        rate = published.GPTJ_BATCH / np.nanmin([one.lockstep_s[0] for one in found])
        low, high = (share, high) if rate < published.GPTJ_SAMPLES_PER_S[release] else (low, share)
    return (low + high) / 2


def errors_percent() -> dict[str, float | list[float]]:
    """Errors of both laws on the published rows, by row and on average, in and out of sample."""
    errors: dict[str, float | list[float]] = {}
    for name, fit in (("train", train()), ("setup", setup())):
        errors[f"{name}_in_sample_percent"] = list(fit.in_sample_percent)
        errors[f"{name}_leave_one_out_percent"] = list(fit.leave_one_out_percent)
        errors[f"{name}_in_sample_mape_percent"] = fit.in_sample_mape_percent
        errors[f"{name}_leave_one_out_mape_percent"] = fit.leave_one_out_mape_percent
    return errors


def _calibrate(x: Float[Reals, " row"], y: Float[Reals, " row"]) -> Calibration:
    if len(y) < 3:
        raise ValueError(
            f"{len(y)} published rows; two constants and a row to leave out need at least three: "
            "pass wse.published.TABLE4"
        )
    terms = np.stack([np.ones_like(x), x], axis=1)
    a, b = _fit(terms, y)
    kept = [np.arange(len(y)) != i for i in range(len(y))]
    left_out = [terms[i] @ _fit(terms[keep], y[keep]) for i, keep in enumerate(kept)]
    return Calibration(
        (float(a), float(b)),
        _percent(terms @ np.array([a, b]), y),
        _percent(np.array(left_out), y),
    )


def _fit(terms: Float[Reals, "row term"], y: Float[Reals, " row"]) -> Float[Reals, " term"]:
    # Columns differ by up to nine orders of magnitude: scaled, the small one is not cut off.
    scaled = terms / y[:, None]
    size = np.asarray(np.linalg.norm(scaled, axis=0), dtype=np.float64)
    solution = np.linalg.lstsq(scaled / size, np.ones_like(y), rcond=None)[0]
    return solution / size


def _percent(estimate: Float[Reals, " row"], y: Float[Reals, " row"]) -> tuple[float, ...]:
    return tuple(float(x) for x in 100 * (estimate / y - 1))
