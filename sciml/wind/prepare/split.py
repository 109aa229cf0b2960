"""Training, validation and test parts of which none has seen the others' weather."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from sciml._arguments import check_whole
from sciml.wind.cf.kinds import of_fields, refuse_timeless
from sciml.wind.cf.times import moments, steps_h

SHARES = {"train": 0.7, "validation": 0.15, "test": 0.15}
POINTS = 4096  # of the grid, evenly taken, at which correlation in time is measured
THRESHOLD = float(np.exp(-1))


@dataclass(frozen=True)
class Split:
    """Indices in time of each part, and the gap that keeps them apart.

    >>> import numpy as np
    >>> from sciml import wind
    >>> hours = np.datetime64("2020-01-01", "ns") + 6 * np.arange(40) * np.timedelta64(1, "h")
    >>> drawn = wind.gaussian(seed=0, snapshots=40, n=16).assign_coords(time=hours)
    >>> found = wind.split(drawn.wind_speed, gap_h=12.0)
    >>> found.gap_h, found.decorrelation_h, found.parts["test"].tolist()
    (12.0, 6.0, [34, 35, 36, 37, 38, 39])
    """

    parts: dict[str, Int[np.ndarray, " time"]]
    gap_h: float
    decorrelation_h: float | None


def autocorrelation(fields: xr.DataArray) -> Float[np.ndarray, " lag"]:
    """Return r(lag) = ⟨a(t) a(t + lag)⟩ / ⟨a²⟩ of the anomalies a from each point's mean in time.

    Means run over times and points (at most 4096, evenly taken). Removing the mean of a short
    record lowers r: what is measured here is a lower bound of how long weather lasts.
    """
    y, x = (fields.sizes[axis] for axis in ("y", "x"))
    step = max(1, int(np.ceil(np.sqrt(y * x / POINTS))))
    thin = fields.isel(y=slice(None, None, step), x=slice(None, None, step))
    values = thin.transpose("time", ...).values.reshape(fields.sizes["time"], -1)
    values = values[:, np.isfinite(values).all(axis=0)].astype(np.float64)
    anomaly = values - values.mean(axis=0)
    lags = np.arange(max(1, len(anomaly) // 2))
    covariance = np.array([np.mean(anomaly[: len(anomaly) - k] * anomaly[k:]) for k in lags])
    # What never changes lasts for ever.
    return covariance / covariance[0] if covariance[0] else np.ones(len(lags))


@of_fields
def decorrelation_h(fields: xr.DataArray) -> float | None:
    """Return after how many hours the autocorrelation falls below 1/e; None if not in the record.

    Raises:
        ValueError: there are no dates, or they do not increase.

    >>> import numpy as np
    >>> from sciml import wind
    >>> drawn = wind.gaussian(seed=0, snapshots=20, n=16)
    >>> hours = np.datetime64("2020-01-01", "ns") + np.arange(20) * np.timedelta64(1, "h")
    >>> wind.decorrelation_h(drawn.wind_speed.assign_coords(time=hours))
    1.0
    """
    refuse_timeless(fields, str(fields.name or "the field"))
    step = step_h(fields)
    below = np.flatnonzero(autocorrelation(fields) < THRESHOLD)
    return float(below[0] * step) if below.size else None


def step_h(fields: xr.DataArray) -> float:
    """Return the usual hours from one time to the next."""
    if "time" not in fields.coords or fields.sizes["time"] < 3:
        raise ValueError(
            f"sizes are {dict(fields.sizes)}; a split in time needs at least three dates; use "
            "stripes for snapshots"
        )
    return float(np.median(steps_h(moments(fields["time"]))))


@of_fields
def split(
    fields: xr.DataArray, shares: Mapping[str, float] = SHARES, *, gap_h: float | None = None
) -> Split:
    """Cut a record into consecutive parts with gaps so long that no storm is in two of them.

    Args:
        fields: (time, y, x), such as `winds.wind_speed`.
        shares: part → share of the time that the gaps leave; in the order of time.
        gap_h: hours left out between parts; None measures them (`decorrelation_h`).

    Raises:
        ValueError: shares do not sum to 1, the weather lasts longer than can be measured, the gap
            is shorter than it lasts, or a part would be empty.

    >>> import numpy as np
    >>> from sciml.wind import gaussian
    >>> hours = np.datetime64("2020-01-01", "ns") + 6 * np.arange(40) * np.timedelta64(1, "h")
    >>> speeds = gaussian(seed=0, snapshots=40, n=16).wind_speed.assign_coords(time=hours)
    >>> parts = split(speeds, gap_h=12.0).parts
    >>> [len(parts[name]) for name in ("train", "validation", "test")]
    [25, 5, 6]
    """
    check_shares(shares)
    lasts = decorrelation_h(fields)
    if gap_h is None:
        if lasts is None:
            raise ValueError(
                f"the weather of these {fields.sizes['time']} times stays correlated beyond half "
                "of the record: it is one situation; take another record for testing, or pass gap_h"
            )
        gap_h = lasts
    elif lasts is not None and gap_h < lasts:
        raise ValueError(
            f"gap_h is {gap_h:g} but speeds stay correlated for {lasts:g} h; a gap must be at "
            f"least that: pass gap_h={lasts:g}"
        )
    at_h = np.concatenate([[0.0], np.cumsum(steps_h(moments(fields["time"])))])
    free = at_h[-1] - gap_h * (len(shares) - 1)
    parts, start = {}, 0.0
    for name, share in shares.items():
        end = start + share * max(free, 0.0)
        last = name == list(shares)[-1]
        inside = (at_h >= start - 1e-6) & ((at_h <= end + 1e-6) if last else (at_h < end))
        parts[name] = np.flatnonzero(inside)
        start = end + gap_h
    if free <= 0 or min(map(len, parts.values())) == 0:
        counts = {name: len(part) for name, part in parts.items()}
        raise ValueError(
            f"{at_h[-1]:g} h with gaps of {gap_h:g} h leave {counts} times; the record is too "
            "short to be split: take another record for testing"
        )
    return Split(parts, float(gap_h), lasts)


@of_fields
def random_split(
    fields: xr.DataArray,
    shares: Mapping[str, float] = SHARES,
    *,
    seed: int = 0,
    insist: bool = False,
) -> Split:
    """Deal times out at random, which is honest only if no two of them share their weather.

    Args:
        fields: (time, y, x).
        shares: part → share.
        seed: of the shuffle.
        insist: True deals all the same; the test part then holds neighbours of training times.

    Raises:
        ValueError: times lie closer than the weather lasts, unless insisted on, or shares do not
            sum to 1.

    >>> import numpy as np
    >>> from sciml import wind
    >>> drawn = wind.gaussian(seed=0, snapshots=20, n=16)
    >>> days = np.datetime64("2020-01-01", "ns") + np.arange(20) * np.timedelta64(1, "D")
    >>> parts = wind.random_split(drawn.wind_speed.assign_coords(time=days), insist=True).parts
    >>> {name: len(indices) for name, indices in parts.items()}
    {'train': 14, 'validation': 3, 'test': 3}
    """
    check_shares(shares)
    lasts, step = decorrelation_h(fields), step_h(fields)
    if not insist and (lasts is None or step < lasts):
        first = autocorrelation(fields)[1]
        until = "beyond half of the record" if lasts is None else f"for {lasts:g} h"
        raise ValueError(
            f"times are {step:g} h apart and stay correlated {until} ({first:.2f} from one to the "
            "next): a random split tests on what it trained on; use split, or pass insist=True"
        )
    order = np.random.default_rng(seed).permutation(fields.sizes["time"])
    ends = np.round(np.cumsum([0.0, *shares.values()]) * len(order)).astype(int)
    parts = {
        name: np.sort(order[a:b]) for name, a, b in zip(shares, ends[:-1], ends[1:], strict=True)
    }
    return Split(parts, 0.0, lasts)


def check_shares(shares: Mapping[str, float]) -> None:
    """Refuse shares that are none of one whole."""
    if not shares or not np.isclose(sum(shares.values()), 1) or min(shares.values()) <= 0:
        raise ValueError(f"shares are {dict(shares)}; they must be positive and sum to 1")


def stripes(
    columns: int,
    width: int = 128,
    gap: int = 32,
    *,
    validation: Sequence[int] = (2, 7),
    test: Sequence[int] = (3, 8, 12),
) -> dict[str, list[slice]]:
    """Return columns of each part of one snapshot: vertical stripes with a gap between parts.

    Stripes of `width` columns are counted from the west; what does not fill one is left out.
    Neighbours of one part make one stripe; between different parts `gap` columns are left out,
    half of each.

    Args:
        columns: of the field.
        width: of a stripe.
        gap: columns left out where parts meet: at least the width over which winds are alike.
        validation: numbers of the stripes of validation.
        test: numbers of those of testing; the rest is for training.

    Raises:
        ValueError: a number is beyond the last stripe or in two parts, or the gap eats a stripe.

    >>> parts = stripes(2000)
    >>> parts['test'][0]
    slice(400, 496, None)
    """
    check_whole(0, columns=columns, gap=gap)
    check_whole(1, width=width)
    count = columns // width
    twice = {*validation} & {*test}
    wrong = [n for n in (*validation, *test) if not 0 <= n < count]
    if wrong or twice or not 0 <= gap < width:
        raise ValueError(
            f"{columns} columns hold {count} stripes of {width}; numbers {[*wrong, *twice]} and "
            f"gap {gap} do not go with that: each must be in one part, and the gap below the width"
        )
    named = ["test" if n in test else "validation" if n in validation else "train"
             for n in range(count)]  # fmt: skip
    parts: dict[str, list[slice]] = {"train": [], "validation": [], "test": []}
    start = 0
    for n, part in enumerate(named):
        if n + 1 < count and named[n + 1] == part:
            continue
        before = gap - gap // 2 if start else 0
        after = gap // 2 if n + 1 < count else 0
        parts[part].append(slice(start * width + before, (n + 1) * width - after))
        start = n + 1
    return parts
