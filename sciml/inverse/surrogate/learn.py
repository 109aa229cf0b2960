"""Learn the likelihood of parameters from simulations."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from sciml._arguments import check_whole, whole_seed
from sciml._numbers import short
from sciml._session import as_usual
from sciml.inverse.fit import fit
from sciml.inverse.program import is_posterior
from sciml.inverse.surrogate.law import Likelihood
from sciml.inverse.surrogate.points import LOOKED, pairs, points_of
from sciml.inverse.validation import split_off
from sciml.train.recipe import Recipe

log = logging.getLogger(__name__)

JUDGED = 500  # assumed: samples by which parts are said to depend on each other
DRAWN = 255  # assumed: draws among which all parts of a sample are ranked
FEWER = 63  # assumed: those among which each is, where each has its own
DEPEND = 0.1  # assumed: mean correlation of the ranks of two parts from which that is said
ONE_PAIR = 0.25  # assumed: that of one pair of many
SURE = 5.0  # assumed: standard deviations of a correlation that is none


@as_usual
def fit_likelihood(
    model: Any,
    data: xr.Dataset,
    validation: float = 0.1,
    epochs: int = 100,
    seed: int = 0,
    *,
    parts: int = 1,
    conditions: Any = None,
    recipe: Recipe | None = None,
    checkpoint: Path | str | None = None,
) -> Likelihood:
    """Train a net to tell how probable an observation is under parameters.

    Where an observation is of several independent draws x_k of one law, as repeated measurements,
    the net learns that of one, q(x_k | θ), from all of them, and

        ln p(x | θ) = Σ ln q(x_k | θ)

    holds for any number of them. Posteriors follow by a sampler, as `sciml.reference.smc`, under
    any prior; or by weighing the draws of a `sciml.fit`, by `sciml.reference.importance`. A fit of
    a posterior needs no sampler; a likelihood is the better the fewer features there are, and the
    sharper or stranger in shape the posterior is.

    Args:
        model: a configuration of a posterior, as `sciml.models.SplineFlow(width=128)`.
        data: `observation (sample, feature)` and `parameters (sample, parameter)`, measured: drawn
            from the prior or from anything else that spans it. Of a series, (sample, time) or
            (sample, time, channel), a part is what is seen at one time, which is known of it.
        validation: the share of samples to hold out; the weights that do best there are kept.
        epochs: passes over the data.
        seed: of weights, shuffles, and of what is held out.
        parts: how many independent draws make an observation: first all features of the first of
            them, then those of the second; of a series as many as it has times.
        conditions: what is known of each part, as its time, stimulus or dose: name → (part,), or
            (sample, part) where samples differ. Parts then follow one law given these, and a
            problem asks for any values of them that the training spans. What the data set marks as
            conditions is known of all parts of a sample.
        recipe: how to train; default `model.recipe()`.
        checkpoint: a file from which an interrupted fit goes on.

    Raises:
        ValueError: parts that do not divide the features, or do not follow one law; features that
            no density describes (few whole numbers, one value again and again); values that lack;
            conditions of another shape, or named as a parameter; simulations without noise.
        TypeError: data that are no data set, or a model without a density.

    Source: Papamakarios, Sterratt, Murray, arXiv 1805.07226; one net for each draw of a law:
    Geffner, Papamakarios, Mnih, arXiv 2209.14249.

    >>> import sciml
    >>> from numpyro.distributions import Normal
    >>> line = sciml.ode.Static("line", {"mean": Normal(0.0, 1.0)}, 1, sciml.ode.Gaussian(sd=0.5))
    >>> data = sciml.simulate(line, samples=1000, noise=line.noise)
    >>> found = sciml.fit_likelihood(sciml.models.Gaussian(8, 1), data)
    >>> draws = sciml.reference.smc(found.problem(line.prior), [1.0])
    >>> bool(abs(draws.posterior.mean() - 0.8) < 0.2)  # of the closed form
    True
    """
    if not is_posterior(model):
        raise TypeError(
            f"the model is {model!r}, which has no density; pass sciml.models.SplineFlow(), "
            "Gaussian() or FlowMatching()"
        )
    check_whole(1, parts=parts)
    if not isinstance(validation, int | float | np.number):
        raise TypeError(
            f"validation is {short(validation)}; it must be the share of samples to hold out, by "
            "which weights are chosen: pass 0.1"
        )
    seed = whole_seed(seed, least=0)
    parts_of_all, points = points_of(data, int(parts), conditions)
    chosen = whole_samples(parts_of_all, validation, seed)
    train, held = (pairs(part, points, seed + i) for i, part in enumerate(chosen))
    found = fit(model, train, held, epochs, seed, recipe=recipe, checkpoint=checkpoint)
    found = found.replace(attrs=found.attrs | {"likelihood": points.described()})
    made = Likelihood(found)
    if parts > 1:
        warn_of_dependence(made, parts_of_all)
    return made


def whole_samples(data: xr.Dataset, validation: Any, seed: int) -> tuple[xr.Dataset, xr.Dataset]:
    """Return what is trained on and what is held out, all parts of a sample on one side."""
    rows = xr.Dataset(
        {"observation": (("sample", "feature"), np.arange(data.sizes["sample"])[:, None])}
    )
    both = split_off(rows, validation, seed)
    train, held = (part["observation"].values[:, 0] for part in both)
    return data.isel(sample=train), data.isel(sample=held)


def warn_of_dependence(made: Likelihood, data: xr.Dataset) -> None:
    """Say that parts depend on each other given the parameters, by their ranks among draws.

    So do parts of different laws, whose ranks tell which parts are alike.
    """
    some = data.isel(sample=slice(JUDGED), one=slice(LOOKED))
    seen, inputs = (np.moveaxis(some[name].values, 1, 0) for name in ("part", "input"))
    alike = (inputs == inputs[0]).all()
    every = inputs[:1] if alike else inputs
    drawn = made.fit.sample(np.concatenate(every), draws=DRAWN if alike else FEWER)
    drawn = drawn.posterior.values.reshape(-1, *every.shape[:2], seen.shape[-1])  # draws first
    ranks = (drawn < np.asarray(made.points.root(seen))).mean(axis=0) - 0.5
    count, samples = ranks.shape[:2]
    in_all, of_pair = (
        max(least, SURE / (samples * pairs) ** 0.5)
        for least, pairs in ((DEPEND, count * (count - 1) / 2), (ONE_PAIR, 1))
    )
    for i in range(made.points.size):
        size = np.square(ranks[..., i]).sum(axis=1) ** 0.5
        found = ranks[..., i] @ ranks[..., i].T / np.outer(size, size)
        apart = found[~np.eye(len(found), dtype=bool)]
        worst = apart[np.abs(apart).argmax()]
        if abs(worst) > of_pair or abs(apart.mean()) > in_all:
            log.warning(
                "feature %d of two parts of an observation have a correlation of up to %.2f that "
                "the parameters do not explain: parts must be independent draws of one law given "
                "them, else posteriors are wrong, mostly too narrow; leave parts=1, or train "
                "longer",
                *(i, worst),
            )
            return
