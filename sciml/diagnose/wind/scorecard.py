"""All scores of a refined wind in one table: no single one of them is enough."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from jaxtyping import Float

from sciml.diagnose.wind.alike import Field, alike, first, warn_of_uneven
from sciml.diagnose.wind.errors import bias, mae, psnr, rmse, skill
from sciml.diagnose.wind.fractions import fractions_skill
from sciml.diagnose.wind.increments import distribution_distance, gradient_length, quantile_bias
from sciml.diagnose.wind.similarity import ssim
from sciml.diagnose.wind.skill_interval import SkillInterval, skill_interval
from sciml.diagnose.wind.spectra import cosine_spectrum, effective_wavelength_m
from sciml.diagnose.wind.subgrid import subgrid_variance_ratio

Fields = Float[np.ndarray, "time y x"]

RANGE_M_S = 40.0  # of PSNR and SSIM, stated so that scores of different data compare
EVENT = 0.95  # quantile of the truth from which on wind is strong
SQUARE = 64  # fine points: of one snapshot, squares of this side are drawn again
NEIGHBOURHOOD = 9  # points, of the fractions skill score


def scorecard(
    estimates: Mapping[str, Field],
    truth: Field,
    *,
    baseline: str,
    factor: int,
    spacing_m: float,
    block: int | None = None,
) -> pd.DataFrame:
    """Return the scores of several estimates of the same fields, a row each.

    Points where the truth or an estimate is missing count in none of RMSE, MAE, bias, skill and
    quantiles; what needs whole fields (spectra, SSIM, FSS, gradients, variances) is then NaN.

    Args:
        estimates: method → fields, in m/s.
        truth: fields of the same shape.
        baseline: the method against which skill is measured.
        factor: fine points per coarse one, which says what is subgrid.
        spacing_m: between fine points.
        block: consecutive times drawn together for the interval of the skill; None, or a record
            too short for two of them, draws squares of 64 points instead.

    Returns:
        Columns `scheme, rmse_m_s, mae_m_s, bias_m_s, skill, skill_low, skill_high, psnr_db, ssim,
        fine_energy_ratio` (of wavelengths shorter than two coarse cells), `effective_wavelength_m,
        subgrid_variance_ratio, fss, q99_bias_m_s, gradient_distance_per_s`.

    Raises:
        ValueError: the baseline is not among the methods, or shapes differ.
    """
    if baseline not in estimates:
        raise ValueError(f"baseline is {baseline!r}; name one of {', '.join(estimates)}")
    warn_of_uneven(truth)
    *aligned, truth = alike(*estimates.values(), first(truth, "time"))
    arrays = dict(zip(estimates, aligned, strict=True))
    there = np.isfinite(truth)
    for fields in aligned:
        if fields.shape != truth.shape:
            raise ValueError(f"an estimate has shape {fields.shape}, the truth {truth.shape}")
        there = there & np.isfinite(fields)
    if not there.any():
        raise ValueError(
            f"no point is in the truth and in every estimate, of {truth.size}; none can be scored"
        )
    reference = np.where(there, arrays[baseline], 0)
    known = np.where(there, truth, 0)
    rows = []
    for name, fields in arrays.items():
        interval = sureness(np.where(there, fields, 0), known, reference, block)
        rows.append(
            {
                "scheme": name,
                "rmse_m_s": rmse(fields[there], truth[there]),
                "mae_m_s": mae(fields[there], truth[there]),
                "bias_m_s": bias(fields[there], truth[there]),
                "skill": interval.skill,
                "skill_low": interval.low,
                "skill_high": interval.high,
                "psnr_db": psnr(fields[there], truth[there], value_range=RANGE_M_S),
                "q99_bias_m_s": float(quantile_bias(fields[there], truth[there], [0.99])[0]),
            }
            | (whole(fields, truth, factor, spacing_m) if there.all() else {})
        )
    return pd.DataFrame(rows)


def sureness(
    estimate: Fields, truth: Fields, reference: Fields, block: int | None
) -> SkillInterval:
    """Return the skill with its interval; NaN limits where there is too little to draw from."""
    if block is not None and 2 * block <= len(truth):
        return skill_interval(estimate, truth, reference, block=block)
    one = skill(estimate, truth, reference)
    cut = [squares(filled_up(field)) for field in (estimate, truth, reference)]
    if len(cut[0]) == 1:
        return SkillInterval(one, float("nan"), float("nan"))
    return skill_interval(*cut, block=1)._replace(skill=one)


def filled_up(field: Fields) -> Float[np.ndarray, "time y_up x_up"]:
    """Return fields with zeros behind their last rows and columns, so that squares cover all.

    Where estimate, baseline and truth are all zero nothing is added to either's errors.
    """
    side = min(SQUARE, *field.shape[1:])
    return np.pad(field, [(0, 0), *((0, -n % side) for n in field.shape[1:])])


def squares(field: Fields) -> Float[np.ndarray, "square SQUARE SQUARE"]:
    """Return fields cut into squares; what does not fill one is left out."""
    times, y, x = field.shape
    side = min(SQUARE, y, x)
    rows, columns = y // side, x // side
    cut = field[:, : rows * side, : columns * side].reshape(times, rows, side, columns, side)
    return cut.swapaxes(2, 3).reshape(-1, side, side)


def whole(estimate: Fields, truth: Fields, factor: int, spacing_m: float) -> dict[str, float]:
    """Return the scores that need fields without gaps."""
    spectra = [cosine_spectrum(field, spacing_m=spacing_m) for field in (estimate, truth)]
    fine = spectra[1].wavelength_m < 2 * factor * spacing_m
    energies = [spectrum.energy[fine].sum() for spectrum in spectra]
    y, x = (n - n % factor for n in truth.shape[1:])
    strong = float(np.quantile(truth, EVENT))
    slopes = [gradient_length(field, spacing_m=spacing_m) for field in (estimate, truth)]
    return {
        "ssim": ssim(estimate, truth, value_range=RANGE_M_S),
        "fine_energy_ratio": float(energies[0] / energies[1]),
        "effective_wavelength_m": effective_wavelength_m(*spectra),
        "subgrid_variance_ratio": subgrid_variance_ratio(
            estimate[:, :y, :x], truth[:, :y, :x], factor
        ),
        "fss": fractions_skill(estimate, truth, threshold=strong, width=NEIGHBOURHOOD),
        "gradient_distance_per_s": distribution_distance(*slopes),
    }
