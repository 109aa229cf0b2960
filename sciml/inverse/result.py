"""A trained inverse map."""

import dataclasses
import functools
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import xarray as xr

from sciml._answers import in_parts
from sciml._arguments import check_whole, whole_seed
from sciml._html import captioned
from sciml._labels import Observed, by_name, marked, observations_in, of_samples, truths
from sciml._precision import with_room
from sciml._session import as_usual
from sciml.diagnose.pairs import belonging
from sciml.diagnose.samples.misspecification import Alarm
from sciml.inverse import storage
from sciml.inverse.alarms.seen import tell_seen
from sciml.inverse.alarms.unlike import alarm_of, overflowing, tell_far, unlike, untrained
from sciml.inverse.axes import Grid
from sciml.inverse.borders import observations_of
from sciml.inverse.inputs import AsTheyAre, Standard
from sciml.inverse.inside import all_hold, draws_inside, log_share
from sciml.inverse.loss import executed_loss
from sciml.inverse.program import (
    densities_of,
    in_order,
    is_posterior,
    outputs_of,
    structure,
)
from sciml.inverse.report import write_report
from sciml.inverse.scaling import MinMax, Unconstrained
from sciml.inverse.setup import accepts_missing
from sciml.models.archive import reading
from sciml.ode.data.identity import identity
from sciml.reference.observed import check_problem_of
from sciml.reference.trust import trust
from sciml.train.checkpoint import Store, digest
from sciml.train.recipe import Recipe

log = logging.getLogger(__name__)

REFERENCES = 512  # assumed: training observations that are kept
CHUNK_BYTES = 2**26  # assumed: of draws that are in memory and in one file
POSTERIOR = ("draw", "sample", "parameter")
POINT_DRAWS = 512  # assumed: draws of which the mean is a posterior's point estimate


@dataclass(frozen=True, repr=False)
class Fit:
    """A trained inverse map: weights, configuration, scaling, history, and what made it.

    `history` holds the loss by epoch, and the validation loss at the epochs where it was taken;
    its attributes the seconds of set-up (compilation), training, and validation with
    checkpoints. `collapsed` names the parameters of which a point net learned nothing.
    `reference` are some of the training observations as measured (sample, …), by which `predict`
    tells observations that the simulator does not make. `run` is what an executor recorded of its
    last step, as `wse.execute.timeline.Run`: its `dataset`, `figure()` and `save("step.json")` for
    Perfetto; None of plain JAX, and of a fit that was read from a file. `checkpoint` keeps the
    training on disk until `save` has written the fit.

    >>> import sciml
    >>> data = sciml.simulate(sciml.ode.van_der_pol(), samples=120)
    >>> sciml.fit(sciml.models.Gaussian(width=8, depth=1), data, epochs=2).parameter_count
    2799
    """

    model: Any
    params: Any
    inputs: AsTheyAre | Standard
    scaling: MinMax | Unconstrained
    grid: Grid
    recipe: Recipe
    history: xr.Dataset
    reference: np.ndarray
    collapsed: tuple[str, ...] = ()
    attrs: dict[str, Any] = field(default_factory=dict)
    run: Any = None
    checkpoint: Store = field(default_factory=Store)

    @as_usual
    def predict(self, data: Observed, *, out: Path | str | None = None) -> xr.Dataset:
        """Estimate the parameters from observations.

        Args:
            data: observations (sample, time[, channel]) on the grid of the training data, or one
                alone, (time[, channel]): labelled, a table with a row for each, or bare.
            out: a Zarr store to write to, as of `sample`.

        Returns:
            `estimate (sample, parameter)`, with the coordinates of `data`: the output of a point
            net, the mean over an ensemble of them, or the mean of a posterior: of the
            512 draws that `sample(data, 512, 0)` gives, so alone an observation that stood at
            place k has another estimate, by a twentieth of its spread.
            `spread`, of the same shape, is the standard deviation over members or draws, where
            there are any: of members it says how far the nets disagree, not how far they err.
            `flagged (sample)` marks observations unlike those of the training, for which no
            estimate is to be trusted; so are 5 % of proper ones. It is not there for a fit to
            fewer than 120 samples. Conditions beyond those of the training are flagged too, and
            told, as are gaps in a channel that had none; and observations that their conditions do
            not give.

        Raises:
            TypeError, ValueError: another type, shape, grid or unit, values that are not
                finite, or conditions that lack, or that the fit does not know.
        """
        if out is not None:
            return self.written(self.estimated, data, POINT_DRAWS, out)
        return self.estimated(data, 0)

    def estimated(self, data: Any, first: int) -> xr.Dataset:
        """Return estimates from observations of which the first has this number."""
        observed = self.checked(data)
        estimate, spread = point_estimates(self, self.grid.seen(observed), first)
        variables = {"estimate": estimate} | ({} if spread is None else {"spread": spread})
        return self.answer(observed, ("sample", "parameter"), variables)

    @functools.cached_property
    def alarm(self) -> Alarm | None:
        """What the training observations look like; None where there are too few of them."""
        return alarm_of(self)

    @functools.cached_property
    def said(self) -> set[str]:
        """What was told of observations that the training did not have, each once."""
        return set()

    @as_usual
    def sample(
        self,
        data: Observed,
        draws: int = 1000,
        seed: int = 0,
        *,
        check: Any = None,
        out: Path | str | None = None,
    ) -> xr.Dataset:
        """Draw from the posterior of every observation.

        Draws of observation k depend on `seed`, `draws`, k and what was observed: not on how many
        there are, nor on what the others are. Another call with the same seed takes the same random
        numbers again: give each call a seed of its own.

        Args:
            data: observations, as for `predict`.
            draws: how many for each.
            seed: of the draws.
            check: the problem that the fit was trained on, which then says of each observation
                how far its draws can be trusted, by `sciml.reference.trust`: with a likelihood for
                500 solutions an observation, without for 2000 simulations in all and 1000 of each.
            out: a Zarr store to write to, for more draws than fit into memory: observations, best
                lazy, are read and answered some at a time. The same call goes on after a kill.

        Returns:
            `posterior (draw, sample, parameter)`, within the support of the prior; `flagged
            (sample)` as `predict` has it. Where a joint prior has a rule, as a + b < 1, draws that
            break it are drawn again, and `inside (sample)` is the share that did not. With `check`
            also `too_wide (sample, parameter)`, and `c2st` and `effective (sample)`, or, but for a
            refined fit, `p_value` and `statistic`; `flagged` is True where they say that the draws
            are wrong.

        Raises:
            TypeError: the model is a point net.
            ValueError: as `predict`, no draws, or hardly any inside (less than 1 %); or `check`
                has another prior or noise than the fit.
            FileExistsError: `out` is there already.
        """
        self.check_density()
        check_whole(1, draws=draws)
        seed = whole_seed(seed)
        if out is not None:
            call = functools.partial(self.drawn, draws=draws, seed=seed, check=check)
            if check is not None:
                check_problem_of(self, check)
            told = None if check is None else identity(check, {}, "float32")
            return self.written(call, data, draws, out, seed=seed, check=told)
        return self.drawn(data, 0, draws, seed, check)

    def written(self, call: Any, data: Any, draws: int, out: Any, **asked: Any) -> xr.Dataset:
        """Return `call(observations, number of the first)` of all, as `in_parts` does."""
        size = 4 * draws * len(self.grid.parameters) + self.reference[0].nbytes
        fit = f"{self.model!r} {digest((self.params, self.reference))}"
        told = {"fit": fit, "draws": draws, **asked}
        return in_parts(call, data, out, asked=told, at_once=max(1, CHUNK_BYTES // size))

    def drawn(self, data: Any, first: int, draws: int, seed: int, check: Any) -> xr.Dataset:
        """Return draws of observations of which the first has this number."""
        observed = self.checked(data)
        seen = self.grid.seen(observed)
        posterior, share = draws_inside(self, seen, draws, seed, in_order(seen, first))
        found = self.answer(observed, POSTERIOR, {"posterior": posterior})
        found = found if share is None else found.assign(inside=("sample", share))
        if check is None:
            return found
        own = np.random.SeedSequence([seed, first]).generate_state(1)[0] >> 1 if first else seed
        return self.judged(found, observed, check, int(own))

    def judged(
        self, found: xr.Dataset, observed: xr.DataArray, problem: Any, seed: int
    ) -> xr.Dataset:
        """Return draws with what `trust` says of them, and flagged where it doubts them."""
        check_problem_of(self, problem)
        said = trust(self, problem, observed, seed=seed)
        doubted = said.doubted.values
        flagged = doubted | found.flagged.values if "flagged" in found else doubted
        found = found.assign(
            {name: each.variable for name, each in said.items() if name != "doubted"}
        )
        return found.assign(flagged=("sample", flagged)).assign_attrs(said.attrs)

    @as_usual
    def log_prob(self, data: Observed, parameters: Any) -> xr.DataArray:
        """Return log p(θ | x) of every observation and its own parameters.

        Args:
            data: observations, as for `predict`.
            parameters: one θ for each, shape (sample, parameter), in their own units; put in order
                by their names if they have any. A data set gives its parameters and levels.

        Returns:
            `(sample,)`, labelled as `data`; −∞ for parameters outside the support, NaN for NaN.
            Where a joint prior has a rule, the net's density is divided by its mass inside, from
            4096 draws.

        Raises:
            TypeError: the model is a point net.
            ValueError: as `predict`, or parameters of another shape or other names.
        """
        self.check_density()
        assert isinstance(self.scaling, Unconstrained)
        observed = self.checked(data)
        given = belonging(truths(parameters), observed, "the parameters")
        theta = np.asarray(by_name(given, self.grid.parameters, "parameters"), np.float32)
        expected = (len(observed), len(self.grid.parameters))
        if theta.shape != expected:
            raise ValueError(
                f"parameters have shape {theta.shape}; they must have (sample, parameter) = "
                f"{expected}: {', '.join(self.grid.parameters)}"
            )
        scaled = np.asarray(self.scaling.forward(theta))
        seen = self.grid.seen(observed)
        untrained(self, seen)
        tell_far(self, observed)
        density = densities_of(self, scaled, seen) + np.asarray(self.scaling.log_slope(theta))
        within = (theta > np.array(self.scaling.low)) & (theta < np.array(self.scaling.high))
        possible = within.all(axis=1) & all_hold(self, theta)
        impossible = np.where(np.isnan(theta).any(axis=1), np.nan, -np.inf)
        values = np.where(possible, density - log_share(self, seen), impossible)
        return xr.DataArray(values, of_samples(observed), ["sample"], "log_prob")

    def traceable(self, batch: int = 100) -> tuple[Any, Any, Any]:
        """Return the training function, the weights, and a batch of shapes alone.

        They are what `wse` asks of any model: `wse.check(*fit.traceable())` says whether its
        operations would port, `wse.estimate(*fit.traceable())` how long training would take.

        Args:
            batch: samples of a step.

        Raises:
            ValueError: the batch is not positive.
        """
        check_whole(1, batch=batch)
        outputs = len(self.grid.parameters)
        shapes = (
            (self.reference.shape[1:], np.float32),
            ((outputs,), np.float32),
            ((2,), np.uint32),
        )
        made = tuple(jax.ShapeDtypeStruct((batch, *shape), dtype) for shape, dtype in shapes)
        graph, _ = structure(self.model, self.grid.inputs, outputs)
        return executed_loss(self.model, graph), self.params, made

    def checked(self, data: Observed) -> xr.DataArray:
        """Return the observations if they are such as the net was trained on."""
        tell_seen(self, data)
        seen = observations_in(with_coordinates(data, self.grid), self.grid.dimensions)
        observed = observations_of(seen, accepts_missing(self.model))
        self.grid.check(observed)
        return observed

    def check_density(self) -> None:
        """Refuse a point net where a density is needed."""
        if not is_posterior(self.model):
            raise TypeError(
                f"{self.model} gives a point, not a posterior; fit sciml.models.Gaussian, "
                "SplineFlow or FlowMatching"
            )

    def answer(self, observed: xr.DataArray, dims, variables) -> xr.Dataset:
        """Return arrays by sample, and which observations are unlike those of the training."""
        lost = overflowing(variables.values(), dims)
        kept = {n: np.where(lost[:, None], np.float32(np.nan), x) for n, x in variables.items()}
        found = xr.Dataset(
            {name: (dims, with_room(values)) for name, values in kept.items()},
            coords={**of_samples(observed), "parameter": list(self.grid.parameters)},
            attrs=self.attrs,
        )
        found = found.assign_coords({name: observed[name] for name in marked(observed)})
        lost = lost | untrained(self, self.grid.seen(observed))
        if self.alarm is None:
            return found
        return found.assign(flagged=("sample", unlike(self, observed) | lost))

    def replace(self, **changes: Any) -> "Fit":
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def __repr__(self) -> str:
        """Return one line: configuration, size, targets, how far it was trained."""
        losses = self.history["loss"].values
        return (
            f"Fit({self.model}, {self.parameter_count:,} parameters → "
            f"{', '.join(self.grid.parameters)}; {len(losses)} epochs, loss {losses[-1]:.2e})"
        )

    def save(self, path: Path | str) -> Path:
        """Write everything to one file, aside and then renamed; `sciml.load` reads it.

        Then the checkpoint of the training is removed.
        """
        written = storage.save(self, path)
        self.checkpoint.remove()
        return written

    def report(self, path: Path | str, data: xr.Dataset | None = None) -> Path:
        """Write one HTML file on the training, on unseen `data` if given, and on what made it."""
        return write_report(self, path, data)

    def _repr_html_(self) -> str:
        """Return a table for a notebook: what was trained, how far, and in which time."""
        seconds, losses = self.history.attrs, self.history["loss"].values
        rows = {
            "model": f"{self.model}",
            "weights": self.parameter_count,
            "targets": ", ".join(self.grid.parameters),
            "observations": " × ".join(map(str, self.reference.shape[1:])),
            "epochs": len(losses),
            "loss": float(losses[-1]),
            "set-up, training (s)": f"{seconds['compile_s']:.1f}, {seconds['train_s']:.1f}",
        }
        lost = ", ".join(self.collapsed)
        notes = (f"learned nothing of {lost}",) if lost else ()
        return captioned("Fit", pd.DataFrame(rows.items(), columns=["what", "is"]), notes)

    @property
    def parameter_count(self) -> int:
        """The number of trainable numbers."""
        return sum(leaf.size for leaf in jax.tree.leaves(self.params))


def point_estimates(
    fit: Fit, observed: np.ndarray, first: int = 0
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return estimates (sample, parameter) and their spread, if the model has one."""
    if is_posterior(fit.model):
        values, _ = draws_inside(fit, observed, POINT_DRAWS, 0, in_order(observed, first))
    else:
        values = np.asarray(fit.scaling.backward(outputs_of(fit, observed)))
    if values.ndim == 2:
        return values, None
    values = with_room(values)
    with np.errstate(invalid="ignore"):  # of infinite ones, which `overflowing` tells
        return values.mean(axis=0), values.std(axis=0)


def with_coordinates(data: Any, grid: Grid) -> Any:
    """Return a data set whose conditions are coordinates, which observations carry along."""
    if not isinstance(data, xr.Dataset):
        return data
    return data.set_coords([n for n in (*grid.conditions, *grid.series) if n in data])


def load(path: Path | str) -> Fit:
    """Read a fit that `Fit.save` wrote.

    Raises:
        FileNotFoundError: there is no such file.
        NotAFitError: the file is damaged, foreign, of a newer schema, or its weights do not fit
            its configuration.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import sciml
    >>> data = sciml.simulate(sciml.ode.gaussian_linear(), samples=100)
    >>> fit = sciml.fit(sciml.models.Gaussian(8, 1), data, epochs=1)
    >>> path = Path(tempfile.mkdtemp(), "run.fit")
    >>> _ = fit.save(path)
    >>> again = sciml.load(path)
    >>> bool((again.predict(data).estimate == fit.predict(data).estimate).all())
    True
    """
    return Fit(**reading(path, storage.read, "Fit.save"))
