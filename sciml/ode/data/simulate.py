"""From a problem to a labelled data set of observations and parameters."""

import logging
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array, Key

from sciml._arguments import check_whole, whole_seed
from sciml._labels import (
    NOISE,
    Labelled,
    by_name,
    flat_index,
    is_counted,
    labels_of,
    marked,
    rows_of,
    truths,
)
from sciml._precision import FEW, rounded_away, told_apart
from sciml._session import as_usual
from sciml.ode import conditions as known
from sciml.ode import prior
from sciml.ode.blackbox import BlackBox
from sciml.ode.data.calls import check_alone, from_calls
from sciml.ode.data.labels import check_some_valid, labelled
from sciml.ode.data.noise_levels import chosen_levels
from sciml.ode.ignored import warn_of_ignored
from sciml.ode.methods.accuracy import is_judged, warn_of_skipped, warn_of_step, without_exploded
from sciml.ode.methods.blocks import in_blocks, row_bytes
from sciml.ode.methods.diffrax_method import Diffrax
from sciml.ode.methods.solver import Method, Problem, chosen_method, is_series, sight, solver
from sciml.ode.observe.channels import check_channels
from sciml.ode.observe.counts import warn_of_cut
from sciml.ode.observe.noise import Noise, check_noise, level_priors, measure
from sciml.ode.system import System
from wse._processor import free_bytes

log = logging.getLogger(__name__)

Levels = Mapping[str, Any] | Labelled

# calibrated: the largest memory of a process over that of its observations, 60,000 neurons: 3.2
# without noise, 6.4 with AR1.
COPIES, NOISY_COPIES = 4, 7


@as_usual
def simulate(
    problem: Problem,
    samples: int | None = None,
    conditions: Any = None,
    *,
    parameters: Any = None,
    levels: Levels | None = None,
    seed: int = 0,
    noise: Noise | None = None,
    method: Method | None = None,
) -> xr.Dataset:
    """Solve a problem for parameters drawn from its prior, or for given ones.

    Args:
        problem: the system, the static task, or a black box, whose noise and solver are its own.
        samples: how many parameters to draw from the prior.
        conditions: known inputs of each sample, of one sample for all: a data set or an array that
            has them as coordinates, `(sample, condition)` with names, a table, or a dict. None:
            those that `parameters` carry as coordinates; with `samples` they are drawn.
        parameters: or the parameters themselves, `(sample, parameter)`. Those with names, of a
            DataArray, a table or a dict, are put in order by them; a bare array has them in
            the order of the prior. Behind the parameters may stand levels of the noise, as
            `noise_sd`, such as a posterior has them.
        levels: of the noise, in place of draws: name → number, or (sample,), a table of these, or
            a data set's `levels (sample, level)`; put in the order of labelled parameters.
        seed: of the draws and of the noise; the same seed gives the same numbers.
        noise: of the measurement; None adds nothing, `noise=problem.noise` is the published one.
        method: the integrator, its precision and chunk; default the problem's own, else
            `RungeKutta4` with as many substeps as keep 98 % of draws within 1 % of the spread.

    Returns:
        `observation`, `(sample, time)` of one channel, `(sample, time, channel)` of several,
        `(sample, feature)` of a vector; `parameters (sample, parameter)`; `valid (sample)`;
        `levels (sample, level)` if the noise draws its levels; conditions as coordinates,
        `(sample,)` or `(sample, time)`, which observations carry along, and labels of the rows of
        `parameters`. Samples whose solution is not finite are kept as NaN, marked False, and
        counted in the attribute `failures`; NaN in a valid sample is a missing value. Attributes
        hold all that it takes to make the data set again, and prior and support as JSON.

    Raises:
        ValueError: both or neither of samples and parameters; a wrong shape, other names or values
            not finite; impossible parameters, no sample that is solved, or too little memory.

    Warns:
        StepWarning: more than 2 % of some of the samples differ by more than 1 % of the spread of
            what is observed from solutions with half the step; those of an adaptive method by more
            than 5 % from fine fixed steps, which it may have stepped over.

    >>> from sciml.ode import lotka_volterra
    >>> simulate(lotka_volterra(), samples=4, seed=0).observation.shape
    (4, 10, 2)
    """
    if isinstance(problem, BlackBox):
        check_alone(problem, {"levels": levels, "noise": noise, "method": method})
        return called(problem, (samples, parameters), conditions, whole_seed(seed))
    check_noise(noise)
    given_method, method = method, chosen_method(problem, method)
    check_channels(noise, problem.observed, repr(problem.name))
    draw, add = jax.random.split(jax.random.key(whole_seed(seed)))
    theta, own = chosen_parameters(problem, samples, (parameters, noise), draw)
    given = own | chosen_levels(levels, noise, len(theta), parameters)
    theta = with_conditions(problem, theta, conditions, parameters, draw)
    check_rounding(problem, theta, method)
    if isinstance(problem, System) and (given_method or problem.method or parameters is not None):
        warn_of_step(problem, sight(problem), method, theta)
    with jax.enable_x64(method.dtype == "float64"):
        solve = jax.jit(solver(problem, method))
        check_memory(len(theta), row_bytes(solve, (theta,), method), noise)
        clean = in_blocks(solve, (theta,), method)
        if isinstance(problem, System) and is_judged(problem, method):
            clean = without_exploded(problem, sight(problem), method, theta, clean)
        elif isinstance(problem, System) and isinstance(method, Diffrax):
            warn_of_skipped(problem, sight(problem), method, theta, clean)
        seen, drawn = measured(problem, noise, add, clean, given)
    warn_of_ignored(problem, theta[0])
    settings: dict[str, Any] = {"samples": samples and int(samples), "seed": int(seed)}
    settings |= {"noise": noise.describe() if noise else None, "method": method.describe()}
    data = labelled(problem, theta, clean, (np.asarray(seen), drawn, noise), settings)
    check_some_valid(problem, data.valid.values, settings)
    return with_rows(data, parameters)


def warn_of_rounding(problem: Problem, seen: np.ndarray, noise: Noise | None) -> None:
    """Say that float32 leaves a few steps alone of what samples, with their noise, differ by."""
    each, few = seen.ndim > 2 or not is_series(problem), noise is None or len(seen) <= FEW
    if not few and (lost := rounded_away(seen, each=each)):
        kind, spread, low, step = lost
        said = (
            "observation%s of %s differs by %.3g about %.6g, where %s counts in steps of %.3g: %s"
        )
        at, remedy = f"[..., {kind}]" if each else "", f"observe what is added to {low:.6g}"
        log.warning(said, at, problem.name, spread, low, "float32", step, remedy)


def with_rows(data: xr.Dataset, parameters: Any) -> xr.Dataset:
    """Return simulations with the labels of the rows of their parameters, if these have any."""
    rows = None if parameters is None else rows_of(truths(parameters))
    if rows is None or is_counted(rows):
        return data
    return data.assign_coords(sample=("sample", flat_index(rows)))


def measured(
    problem: Problem, noise: Noise | None, key: Key[Array, ""], clean: Any, given: dict[str, Any]
) -> Any:
    """Return what `measure` does, and say where counts are of what cannot be counted."""
    warn_of_cut(noise, np.asarray(clean))
    found = measure(noise, key, jax.device_put(clean), given)
    warn_of_rounding(problem, np.asarray(found[0]), noise)
    return found


def called(box: BlackBox, chosen: tuple[Any, Any], conditions: Any, seed: int) -> xr.Dataset:
    """Return what a function that is no JAX makes of parameters, drawn or given."""
    (samples, parameters), key = chosen, jax.random.key(seed)
    theta, _ = chosen_parameters(box, samples, (parameters, None), key)
    rows = with_conditions(box, theta, conditions, parameters, key)
    data = from_calls(box, rows, {"samples": samples and int(samples), "seed": seed})
    return with_rows(data, parameters)


def with_conditions(
    problem: Problem, theta: np.ndarray, given: Any, parameters: Any, key: Key[Array, ""]
) -> np.ndarray:
    """Return rows of parameters, and behind them conditions, given or drawn."""
    if given is None and (parameters is None or not problem.conditions):
        return known.rows(problem, theta, key)
    carried = parameters if isinstance(parameters, Labelled) else {}
    source = (carried if marked(carried) else {}) if given is None else given
    like = None if parameters is None else truths(parameters)
    columns = known.given(problem, source, len(theta), like)
    return np.concatenate([theta, columns], axis=1)


def check_rounding(problem: Problem, theta: np.ndarray, method: Method) -> None:
    """Refuse parameters and conditions that a solution in float32 would not tell apart."""
    names = (*problem.parameter_names, *known.split_names(problem)[0])
    for name, column in zip(names, theta.T, strict=False):
        if method.dtype == "float32" and (column != column.astype(np.float32)).any():
            told_apart(column, name, each=False)


def check_memory(samples: int, each: int, noise: Noise | None) -> None:
    """Refuse more samples than the free memory holds: XLA would end the process."""
    copies, free = NOISY_COPIES if noise else COPIES, free_bytes()
    if (needed := copies * samples * each) > free:
        raise ValueError(
            f"{samples} samples of {each} bytes take about {needed / 1e9:.1f} GB to simulate, and "
            f"{free / 1e9:.1f} GB of memory are free; simulate at most {free // (copies * each)}, "
            "or write them to a store with `sciml.ode.accumulate`, chunk by chunk"
        )


def chosen_parameters(
    problem: Problem, samples: Any, given: tuple[Any, Noise | None], key: Key[Array, ""]
) -> tuple[np.ndarray, dict[str, Any]]:
    """Return parameters (sample, param), given and checked or drawn, and the levels among them."""
    parameters, noise = given
    if (samples is None) == (parameters is None):
        raise ValueError(
            f"samples is {samples} and parameters are {'absent' if parameters is None else 'given'}"
            "; give exactly one: samples=1000 draws from the prior"
        )
    if samples is not None:
        check_whole(1, samples=samples)
        return prior.draw(problem.prior, int(samples), key, problem.name), {}
    values = truths(parameters)
    names, sampled = problem.parameter_names, tuple(level_priors(noise))
    check_names(problem, labels_of(values), sampled)
    found = np.asarray(values, dtype=np.float64)
    wide = (*names, *sampled)
    if found.ndim != 2 or found.shape[1] not in (len(names), len(wide)) or not len(found):
        raise ValueError(
            f"parameters have shape {found.shape}; {problem.name} takes (sample, {len(names)}): "
            f"columns {', '.join(names)}{', and maybe ' * bool(sampled)}{', '.join(sampled)}"
        )
    ordered = by_name(values, wide if found.shape[1] == len(wide) else names, "parameters")
    found = np.asarray(ordered, dtype=np.float64)
    if not np.isfinite(found).all():
        row = int(np.argmin(np.isfinite(found).all(axis=1)))
        raise ValueError(f"parameters[{row}] is {found[row]}; all must be finite: drop that row")
    columns = found[:, len(names) :].T
    levels = dict(zip((noise.prior if noise else {}), columns, strict=False))
    return found[:, : len(names)], levels


def check_names(problem: Problem, own: tuple[str, ...], levels: tuple[str, ...]) -> None:
    """Refuse names that are neither those of parameters nor of levels that the noise samples."""
    strange = [name for name in own if name not in (*problem.parameter_names, *levels)]
    if strange:
        said = f" and the noise samples {', '.join(levels)}" if levels else ""
        remedy = (
            "pass the noise whose levels they are"
            if all(name.startswith(NOISE) for name in strange)
            else "select the parameters by name"
        )
        raise ValueError(
            f"parameters name {', '.join(strange)}; {problem.name} has "
            f"{', '.join(problem.parameter_names)}{said}: {remedy}"
        )
