"""How far estimated fields are from true ones."""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from sciml.diagnose.wind.alike import Field, alike, first


def rmse(estimate: Field, truth: Field) -> float:
    """Return √⟨(estimate − truth)²⟩, in the unit of the fields.

    >>> import numpy as np
    >>> round(rmse(np.array([1.5, 2.0, 3.0]), np.array([1.0, 2.0, 4.0])), 3)
    0.645
    """
    return float(np.sqrt(np.mean(np.square(difference(estimate, truth)))))


def mae(estimate: Field, truth: Field) -> float:
    """Return ⟨|estimate − truth|⟩.

    >>> import numpy as np
    >>> round(mae(np.array([1.5, 2.0, 3.0]), np.array([1.0, 2.0, 4.0])), 3)
    0.5
    """
    return float(np.mean(np.abs(difference(estimate, truth))))


def bias(estimate: Field, truth: Field) -> float:
    """Return ⟨estimate − truth⟩; zero by construction for a conservative estimate.

    >>> import numpy as np
    >>> round(bias(np.array([1.5, 2.0, 3.0]), np.array([1.0, 2.0, 4.0])), 3)
    -0.167
    """
    return float(np.mean(difference(estimate, truth)))


def vector_rmse(estimate: Field, truth: Field) -> float:
    """Return √⟨|estimate − truth|²⟩ of vectors, whose two components come first.

    >>> import numpy as np
    >>> round(vector_rmse(np.zeros((2, 3)), np.ones((2, 3))), 3)
    1.414
    """
    error = difference(estimate, first(truth, "channel", "component"))
    return float(np.sqrt(np.mean(np.sum(np.square(error), axis=0))))


def psnr(estimate: Field, truth: Field, *, value_range: float) -> float:
    """Return 20 log₁₀(range / RMSE) in decibels: only comparable with the same stated range.

    Args:
        estimate: fields.
        truth: fields of the same shape.
        value_range: the peak-to-peak range in the unit of the fields, such as 40 m/s for wind; the
            range of the truth itself would make the score of one field depend on another's storm.

    Raises:
        ValueError: the range is not positive, or shapes differ.

    >>> import numpy as np
    >>> truth = np.array([1.0, 2.0, 4.0])
    >>> round(psnr(truth + 0.5, truth, value_range=40.0), 2)
    38.06
    """
    if not value_range > 0:
        raise ValueError(f"value_range is {value_range}; it must be positive, such as 40 m/s")
    error = rmse(estimate, truth)
    return float("inf") if error == 0 else float(20 * np.log10(value_range / error))


def skill(estimate: Field, truth: Field, baseline: Field) -> float:
    """Return 1 − MSE(estimate) / MSE(baseline): 0 is as good as the baseline, 1 is perfect.

    NaN where the baseline is perfect.

    >>> import numpy as np
    >>> truth = np.array([1.0, 2.0, 4.0])
    >>> round(skill(truth + 0.5, truth, truth + 1.0), 3)
    0.75
    """
    reference = rmse(baseline, truth)
    return 1 - (rmse(estimate, truth) / reference) ** 2 if reference > 0 else float("nan")


def field_scores(estimates: Mapping[str, Field], truth: Field, *, baseline: str) -> xr.Dataset:
    """Return `rmse, mae, bias, skill (scheme)` of several estimates of the same fields.

    Args:
        estimates: method → fields.
        truth: fields of the same shape; means run over all of them.
        baseline: the method against which `skill` is measured.

    Raises:
        ValueError: the baseline is not among the methods, or shapes differ.

    >>> import numpy as np
    >>> from sciml import diagnose, wind
    >>> truth = wind.gaussian(seed=0, snapshots=4, n=32).wind_speed.values
    >>> coarse = wind.block_mean(truth, 4)
    >>> methods = wind.upsample.METHODS.items()
    >>> guesses = {name: np.asarray(method(coarse, 4)) for name, method in methods}
    >>> scores = diagnose.field_scores(guesses, truth, baseline="bicubic")
    >>> bool(scores.rmse.sel(scheme="conservative bicubic") < scores.rmse.sel(scheme="block"))
    True
    """
    if baseline not in estimates:
        raise ValueError(f"baseline is {baseline!r}; name one of {', '.join(estimates)}")
    fields = estimates.values()
    scores = {s.__name__: [s(field, truth) for field in fields] for s in (rmse, mae, bias)}
    scores["skill"] = [skill(field, truth, estimates[baseline]) for field in fields]
    return xr.Dataset(
        {name: ("scheme", np.array(values)) for name, values in scores.items()},
        coords={"scheme": list(estimates)},
        attrs={"baseline": baseline},
    )


def difference(estimate: Field, truth: Field) -> np.ndarray:
    """Return estimate − truth in double precision, where they lie."""
    estimate, truth = alike(estimate, truth)
    if estimate.shape != truth.shape:
        raise ValueError(
            f"estimate has shape {estimate.shape} and truth {truth.shape}; they must be equal"
        )
    return estimate - truth
