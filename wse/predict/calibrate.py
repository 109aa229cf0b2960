"""The constants of `wse.catalog.PIPELINED` and the efficiencies of `wse.constants`, fitted again.

An efficiency is the share of the peak at which the model gives a published rate: one number from
one, so only models left out check it, as docs/validation.md does. Both laws of the pipelined mode
have two terms that are linear in the constants. Least squares of the relative residual

    min_x  sum_i (sum_j A_ij x_j / y_i - 1)^2

weighs 5 s of training as it weighs 800 s of set-up. Leave-one-out errors stand beside in-sample
ones: four points and two constants leave little to check a law with.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from wse.machine.constants import LLAMA_PARAMETERS, SETUP, SHARES, Setup
from wse.machine.constants import SETUPS as SETUPS_KNOWN
from wse.machine.machine import Sourced
from wse.machine.published import SETUPS, STREAMED, TABLE4, Row, Started, Streamed
from wse.machine.release import version
from wse.machine.share import Anchor, Shares
from wse.machine.specification import find
from wse.models import shapes as workloads
from wse.predict import arrays, bandwidth
from wse.predict import seconds as streamed
from wse.predict.arrays import Reals

_WAFERS = {"CS-2": "WSE-2", "CS-3": "WSE-3"}


@dataclass(frozen=True)
class Calibration:
    """A fitted law and how well it does.

    Attributes:
        constants: the two fitted constants, in SI units.
        in_sample_percent: estimate over published minus one, for each row, in percent.
        leave_one_out_percent: the same, for each row from a fit that has not seen it.

    >>> from wse import calibrate
    >>> round(calibrate.setup().leave_one_out_mape_percent, 1)
    1.3
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


def shares(runs: Sequence[Streamed] = STREAMED) -> Shares:
    """What published runs in weight streaming say of the share of the peak.

    The last run of a transformer on a machine gives the share at its width, earlier ones of the
    same model and machine what releases brought. A run of dense layers gives none.

    Args:
        runs: as of `wse.published.STREAMED`; fewer, to see what the others say without them.

    >>> [(one.model, round(one.value, 4)) for one in shares().anchors][:2]
    [('ESM-2-35M', 0.0283), ('DiT-2B-2', 0.1689)]
    """
    found = [(run, share(run)) for run in runs if not workloads.get(run.model).is_dense_chain]
    found.sort(key=lambda pair: version(pair[0].release))
    last = {(run.model, run.machine): (run, value) for run, value in found}
    anchors = [
        Anchor(_WAFERS[run.machine], _features(run.model), value, run.model)
        for run, value in last.values()
    ]
    gains: dict[str, float] = {}
    for run, value in found:
        _, best = last[run.model, run.machine]
        several = [one for one, _ in found if (one.model, one.machine) == (run.model, run.machine)]
        if len(several) > 1:
            gains[run.release] = value / best
    widest = max(one.features for one in anchors)
    every = [run.release for run, _ in found]
    narrow = [run.release for run, _ in found if _features(run.model) < widest]
    return replace(
        SHARES,
        anchors=tuple(sorted(anchors, key=lambda one: (one.wafer, one.features))),
        releases=tuple(gains.items()) or ((min(every, key=version), 1.0),),
        narrow_since=min(narrow or every, key=version),
    )


def share(run: Streamed) -> float:
    """The share of the dense peak that gives one run's rate, by bisection to 1e-9.

    >>> from wse.machine.published import STREAMED
    >>> round(share(STREAMED[2]), 3)
    0.298
    """
    work = workloads.get(run.model)
    cluster = replace(find(run.machine), systems=run.systems)
    base = arrays.shapes(work, cluster, run.release, merged=True)
    made, plans = bandwidth.rates(work, cluster), arrays.plans(work)
    batch, systems = np.array([float(run.batch)]), np.array([float(run.systems)])
    flops_s = np.full_like(base.weights, 1 / cluster.machine.peak_fp16_flops_per_s)
    low, high = 1e-4, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        layers = replace(base, seconds_per_flop=flops_s / middle)
        found = streamed.tried(layers, made, plans, batch, systems, base.density[None])
        rate = run.batch / np.nanmin([one.lockstep_s[0] for one in found])
        low, high = (middle, high) if rate < run.samples_per_s else (low, middle)
    return (low + high) / 2


def started(logs: Sequence[Started] = SETUPS) -> dict[str, Setup]:
    """What the logs of set-up say, by wafer: as `wse.constants.SETUPS` has it.

    Where two logs of different models show a phase of compilation, it grows with parameters as they
    say; where one does, searching does not, and making programs grows with their root. Other phases
    are geometric means, with the interval of `wse.constants`.

    Args:
        logs: as of `wse.published.SETUPS`; fewer, to see what the others say without them.

    >>> round(started()["WSE-2"].search_s.value)
    1641
    """

    def of(name: str, wafer: str | None = None) -> list[tuple[float, float]]:
        return [
            (float(workloads.get(log.model).parameters), float(log.seconds[name]))
            for log in logs
            if name in log.seconds and wafer in (None, _WAFERS[log.machine])
        ]

    changes: dict[str, Sourced] = {}
    for name, usual in (("search", 0.0), ("codegen", 0.5)):
        power, at_llama = _power(of(name), usual, LLAMA_PARAMETERS)
        changes[f"{name}_s"] = scaled(getattr(SETUP, f"{name}_s"), at_llama)
        changes[f"{name}_power"] = scaled(getattr(SETUP, f"{name}_power"), power)
    for name in ("job", "prepare"):
        changes[f"{name}_s"] = scaled(getattr(SETUP, f"{name}_s"), _mean(of(name)))
    quick = [time_s for _, time_s in of("prime") if time_s < 60]  # of tokens
    changes["prime_s"] = scaled(SETUP.prime_s, _mean([(1.0, time_s) for time_s in quick]))
    every = {wafer: replace(SETUPS_KNOWN[wafer], **changes) for wafer in _WAFERS.values()}
    for wafer, one in every.items():
        program = of("program", wafer) or of("program")
        sent = [(size, t) for size, t in of("weights", wafer) if size > 1e9]
        floor_s = one.weights_s.value
        each = _mean([(1.0, max(t - floor_s, 0.5) / size) for size, t in sent or of("weights")])
        every[wafer] = replace(
            one,
            program_s=scaled(one.program_s, _mean(program)),
            weights_s_per_parameter=scaled(one.weights_s_per_parameter, each),
        )
    return every


def scaled(number: Sourced, value: float) -> Sourced:
    """The number with another value, its interval moved by the same factor.

    >>> from wse import constants
    >>> scaled(constants.SETUP.front_s, 50.0).interval
    (25.0, 100.0)
    """
    factor = value / number.value if number.value else 1.0
    ends = number.interval and (number.interval[0] * factor, number.interval[1] * factor)
    return replace(number, value=value, interval=ends)


def _power(points: list[tuple[float, float]], usual: float, size: float) -> tuple[float, float]:
    """Power and value at a size of the law through the smallest and the largest of points."""
    points = sorted(points)
    (p, low), (q, high) = points[0], points[-1]
    power = float(np.log(high / low) / np.log(q / p)) if q > p else usual
    return power, high * (size / q) ** power


def _mean(points: list[tuple[float, float]]) -> float:
    return float(np.exp(np.mean([np.log(time_s) for _, time_s in points])))


def _features(model: str) -> int:
    return max(layer.features or 0 for layer in workloads.get(model).layers)


def errors_percent() -> dict[str, float | list[float]]:
    """Errors of both laws on the published rows, by row and on average, in and out of sample.

    >>> from wse import calibrate
    >>> round(calibrate.errors_percent()["train_in_sample_mape_percent"], 1)
    2.9
    """
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
