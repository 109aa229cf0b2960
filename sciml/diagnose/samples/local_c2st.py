"""Whether the posterior is right at one observation: a classifier of draws and truths given x."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Bool, Float, Key
from tqdm.auto import tqdm

from sciml._labels import Labelled, by_name, measured_alike, variable
from sciml._session import as_usual
from sciml.diagnose.pairs import POSTERIOR, belonging, check_draws, pair
from sciml.diagnose.samples.features import flat, principal

AT_ONCE = 8  # classifiers trained side by side
BATCH = 4096  # assumed: samples of a step, of which more see no more; fewer are taken whole
POINTS = 2**16  # of a classifier at once, which bounds memory


@dataclass(frozen=True)
class Classifier:
    """A perceptron with two hidden layers, trained on all points at once, or 4096 samples a step.

    Attributes:
        units: of each hidden layer.
        steps: of AdamW.
        rate: its learning rate.
        decay: its weight decay, which keeps the perceptron from learning the points by heart.
        components: principal components of the observations at most, which it sees.

    >>> import numpy as np
    >>> from sciml import diagnose
    >>> rng = np.random.default_rng(0)
    >>> theta = rng.normal(size=(1000, 1))
    >>> x = theta + rng.normal(size=(1000, 1))  # so θ given x is N(x/2, ½)
    >>> wide = x / 2 + 1.5 * rng.normal(size=(2, 1000, 1))
    >>> at = 1.5 * rng.normal(size=(500, 1, 1)), np.zeros((1, 1))
    >>> small = diagnose.Classifier(units=8, steps=50)
    >>> found = diagnose.local_c2st(wide, theta, x, at=at, classifier=small, nulls=10)
    >>> float(found.p_value[0]) < 0.1
    True
    """

    units: int = 32
    steps: int = 200
    rate: float = 0.01
    decay: float = 0.1
    components: int = 10

    def __post_init__(self) -> None:
        if min(self.units, self.steps, self.components) < 1 or self.rate <= 0 or self.decay < 0:
            raise ValueError(
                f"{self} must have positive units, steps, rate and components, and no negative "
                "decay: Classifier()"
            )


@as_usual
def local_c2st(
    posterior: Labelled,
    truth: Labelled,
    observation: Labelled,
    *,
    at: tuple[Labelled, Labelled],
    classifier: Classifier | None = None,
    nulls: int = 100,
    seed: int = 0,
) -> xr.Dataset:
    """Return, for single observations, how far the posterior there is from the true one.

    A classifier learns to tell (θ_q, x) from (θ*, x), θ_q ~ q(θ | x), over many simulations. At one
    observation x_o the statistic is t = ⟨(d(θ, x_o) − ½)²⟩ over draws θ ~ q(θ | x_o), d the
    probability that the classifier gives to "drawn from q": 0 where q is right. The null
    distribution comes from classifiers trained after swapping θ_q and θ* at random, sample by
    sample, which changes nothing in distribution if q is right everywhere.

    Args:
        posterior: `posterior (draw, sample, parameter)` of the simulations; one draw each is used.
        truth: their `parameters (sample, parameter)`; a thousand samples or more.
        observation: theirs (sample, …).
        at: the posterior draws (draw, sample, parameter) and the observations to judge, which
            must not be among the simulations.
        classifier: its sizes.
        nulls: classifiers that make the null distribution.
        seed: of everything random.

    Returns:
        `statistic, p_value (sample)`, `null (null, sample)` and `probability (draw, sample)`: above
        ½ where q has too many draws, below ½ where too few.

    Raises:
        ValueError: shapes do not fit, a value is not finite, or there are no nulls.

    Source: J. Linhart, A. Gramfort, P. L. C. Rodrigues, L-C2ST, NeurIPS 2023, arXiv 2306.03580.

    >>> theta, x, *drawn = np.random.default_rng(0).normal(size=(4, 1000, 1))
    >>> at = drawn[0][:99, None], np.zeros((1, 1))
    >>> local_c2st(np.array(drawn), theta, x, at=at, nulls=7).p_value.shape
    (1,)
    """
    if nulls < 1:
        raise ValueError(f"nulls is {nulls}; it must be positive, better 100")
    pairs = pair(posterior, truth)
    chosen = classifier or Classifier()
    drawn = None if callable(posterior) else posterior
    seen_all, _ = beside(observation, drawn, "the observations")
    seen_at, draws_at = beside(at[1], at[0], "the observations to judge")
    x, x_at = flat(seen_all), flat(measured_alike(seen_at, seen_all, "observations to judge"))
    draws_at = np.asarray(by_name(draws_at, pairs.names, "the posterior to judge"), np.float64)
    check_places(pairs.truth, x, x_at, draws_at)
    seen = principal(x, most=chosen.components)
    mean, sd = pairs.truth.mean(axis=0), pairs.truth.std(axis=0)
    first = np.concatenate([d[0] for _, d in pairs.chunks(label="draws")])
    both = np.stack([(first - mean) / sd, (pairs.truth - mean) / sd])
    key, swap_key = jax.random.split(jax.random.key(seed))
    swaps = jax.random.bernoulli(swap_key, 0.5, (nulls, len(x)))
    classifiers = jnp.concatenate([jnp.zeros((1, len(x)), bool), swaps])
    arrays = (both, seen.scores(x), (draws_at - mean) / sd, seen.scores(x_at))
    inputs = tuple(jnp.asarray(array, jnp.float32) for array in arrays)
    statistics, probability = [], None
    starts = range(0, nulls + 1, AT_ONCE)
    for start in tqdm(starts, "classifiers", unit="group", leave=False, disable=len(starts) < 2):
        group = np.resize(classifiers[start : start + AT_ONCE], (AT_ONCE, len(x)))
        found = np.asarray(classify(*inputs, jnp.asarray(group), key, chosen), np.float64)
        statistics.append(np.square(found - 0.5).mean(axis=1))
        probability = found[0] if probability is None else probability
    statistic = np.concatenate(statistics)[: nulls + 1]
    exceeding = (statistic[1:] >= statistic[0]).sum(axis=0)
    return xr.Dataset(
        {
            "statistic": ("sample", statistic[0]),
            "null": (("null", "sample"), statistic[1:]),
            "p_value": ("sample", (1 + exceeding) / (1 + nulls)),
            "probability": (("draw", "sample"), probability),
        },
        attrs={"simulations": len(x), "nulls": nulls, "seed": seed},
    )


def beside(observation: Labelled, posterior: Any, what: str) -> tuple[Any, Any]:
    """Return observations in the order of the samples of draws, if there are any, and the draws."""
    draws = None if posterior is None else variable(posterior, *POSTERIOR)
    return belonging(variable(observation, "observation", ("sample",)), draws, what), draws


@partial(jax.jit, static_argnames="chosen")
def classify(
    both: Float[Array, "side sample param"],
    x: Float[Array, "sample component"],
    draws_at: Float[Array, "draw place param"],
    x_at: Float[Array, "place component"],
    swaps: Bool[Array, "classifier sample"],
    key: Key[Array, ""],
    chosen: Classifier,
) -> Float[Array, "classifier draw place"]:
    """Return the probability of "drawn from q" at draws of some places, for each classifier."""
    there = jnp.broadcast_to(x_at, (*draws_at.shape[:2], x_at.shape[1]))
    wanted = jnp.concatenate([draws_at, there], axis=-1)

    def one(swapped: Bool[Array, " sample"]) -> Float[Array, "draw place"]:
        weights = trained(both, x, swapped, key, chosen)
        if wanted.shape[0] * wanted.shape[1] <= POINTS:
            return jax.nn.sigmoid(logit(weights, wanted))
        some = max(1, POINTS // wanted.shape[1])  # draws at once
        return jax.lax.map(lambda at: jax.nn.sigmoid(logit(weights, at)), wanted, batch_size=some)

    return jax.vmap(one)(swaps)


def trained(
    both: Float[Array, "side sample param"],
    x: Float[Array, "sample component"],
    swapped: Bool[Array, " sample"],
    key: Key[Array, ""],
    chosen: Classifier,
) -> Any:
    """Return the weights of a classifier after its last step, each on all points or `BATCH`."""
    optimiser = optax.adamw(chosen.rate, weight_decay=chosen.decay)
    weights = initial(key, both.shape[-1] + x.shape[-1], chosen.units)
    count = min(BATCH, len(x))
    labels = jnp.stack([jnp.ones(count), jnp.zeros(count)])

    def points(number: Array) -> Float[Array, "side sample entry"]:
        some = jax.random.randint(jax.random.fold_in(key, number), (count,), 0, len(x))
        return entries(both[:, some], x[some], swapped[some])

    whole = entries(both, x, swapped) if count == len(x) else None

    def step(carry: Any, number: Array) -> tuple[Any, None]:
        weights, state = carry
        inputs = points(number) if whole is None else whole

        def loss(weights: Any) -> Float[Array, ""]:
            return optax.sigmoid_binary_cross_entropy(logit(weights, inputs), labels).mean()

        updates, state = optimiser.update(jax.grad(loss)(weights), state, weights)
        return (optax.apply_updates(weights, updates), state), None

    start = weights, optimiser.init(weights)
    (weights, _), _ = jax.lax.scan(step, start, jnp.arange(chosen.steps))
    return weights


def entries(
    both: Float[Array, "side sample param"],
    x: Float[Array, "sample component"],
    swapped: Bool[Array, " sample"],
) -> Float[Array, "side sample entry"]:
    """Return parameters and observations beside each other, sides changed where `swapped`."""
    theta = jnp.where(swapped[:, None], both[::-1], both)
    return jnp.concatenate([theta, jnp.stack([x, x])], axis=-1)


def initial(key: Key[Array, ""], entries: int, units: int) -> list[tuple[Array, Array]]:
    """Return He's random weights of three layers, with zero biases."""
    sizes = [(entries, units), (units, units), (units, 1)]
    return [
        (jax.random.normal(k, size) * jnp.sqrt(2.0 / size[0]), jnp.zeros(size[1]))
        for k, size in zip(jax.random.split(key, 3), sizes, strict=True)
    ]


def logit(weights: Any, inputs: Float[Array, "*rows entry"]) -> Float[Array, "*rows"]:
    """Return the log-odds that the classifier gives to "drawn from q"."""
    *hidden, (last, bias) = weights
    for matrix, offset in hidden:
        inputs = jax.nn.relu(inputs @ matrix + offset)
    return (inputs @ last + bias)[..., 0]


def check_places(truth: np.ndarray, x: np.ndarray, x_at: np.ndarray, draws_at: np.ndarray) -> None:
    """Refuse simulations and places that do not fit each other."""
    if len(x) != len(truth):
        raise ValueError(
            f"there are {len(x)} observations and {len(truth)} truths; as many of each"
        )
    check_draws(draws_at, (*draws_at.shape[:1], len(x_at), truth.shape[1]))
    if x_at.shape[1] != x.shape[1]:
        raise ValueError(
            f"observations to judge have {x_at.shape[1]} entries and the simulated ones "
            f"{x.shape[1]}; they must be measured alike"
        )
