"""A trained net that refines wind, with what its numbers mean."""

import math
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr
from flax import nnx
from jaxtyping import Array, Float

from sciml._arguments import check_whole, whole_seed
from sciml._html import captioned
from sciml._session import as_usual, each
from sciml.downscale import storage
from sciml.downscale.apply import predict
from sciml.downscale.arrays import fields_of, ground_of, with_gaps, without_gaps
from sciml.downscale.cards import card_name, net_file
from sciml.downscale.objective import skeleton, traceable
from sciml.models.archive import reading
from sciml.models.wind.cascade import Cascade
from sciml.models.wind.locally_scaled import LocallyScaled
from sciml.models.wind.refinement import Refinement
from sciml.train.loop import Trained
from sciml.wind.prepare.channels import COMPONENT, Normaliser, warn_of_unlike
from sciml.wind.prepare.correction import Correction
from sciml.wind.prepare.symmetry import COUNT, inverse, symmetry
from wse._processor import usable_cores

# assumed: with fewer coarse values in a call, starting it would cost more than a tenth of it
POINTS = 8192
CALLS = 32  # of a processor's at once on an accelerator
SEEN: set[tuple[Any, ...]] = set()  # nets and shapes whose programs are compiled
Fields = Float[Any, "sample *seen y_lo x_lo"]
Fine = Float[np.ndarray, "sample *wind y x"]
Ground = Float[Any, "statics y x"]


@dataclass(frozen=True)
class Downscaling:
    """A trained net, the mean and the standard deviation of what it was trained on, its history.

    `folds` averages the estimate over the eight symmetries of the square (and over both signs of
    a component), which the net has learned only nearly: a little better and 8 or 16 times slower.
    `others` are nets trained from other seeds, whose estimates are averaged with this one's.
    `correction`, of a net that learned from pairs of two sources, is applied to all coarse wind
    that it is given.

    >>> import numpy as np
    >>> from sciml.estimator import load_downscaling
    >>> net = load_downscaling("wind4")
    >>> net.refine(np.ones((1, 2, 8, 8), "f4")).shape  # (sample, component, y, x)
    (1, 2, 32, 32)
    """

    model: Refinement
    normaliser: Normaliser
    trained: Trained = field(repr=False)
    attrs: dict[str, Any] = field(default_factory=dict, repr=False)
    folds: bool = False
    others: tuple["Downscaling", ...] = field(default=(), repr=False)
    correction: Correction | None = field(default=None, repr=False)

    @property
    def weights(self) -> int:
        """The number of trained weights."""
        return sum(leaf.size for leaf in jax.tree.leaves(self.trained.params))

    def __repr__(self) -> str:
        """Return one line: configuration, size, what is refined, how far it was trained."""
        losses = self.trained.loss
        last = f", loss {losses[-1]:.2e}" if len(losses) else ""
        averaged = f", mean of {len(self.members)} nets" if self.others else ""
        return (
            f"Downscaling({self.model}, {self.weights:,} weights, {', '.join(self.winds)} times "
            f"{self.model.factor}; {len(losses)} epochs{last}{averaged})"
        )

    @property
    def winds(self) -> tuple[str, ...]:
        """The channels that are refined."""
        return self.normaliser.names[: self.model.wind]

    @property
    def statics(self) -> tuple[str, ...]:
        """The channels that are known on the fine grid."""
        return self.normaliser.names[self.model.wind :][: self.model.statics]

    @property
    def beside(self) -> tuple[str, ...]:
        """The channels that are known on the coarse grid beside the wind."""
        return self.normaliser.names[self.model.wind + self.model.statics :]

    @property
    def members(self) -> tuple["Downscaling", ...]:
        """This net and those that its estimates are averaged with."""
        return (self, *self.others)

    @cached_property
    def told(self) -> set[str]:
        """The channels of which was told that they are unlike those of the training."""
        return set()

    def folded(self) -> "Downscaling":
        """Return this net with estimates averaged over all symmetries."""
        return replace(self, folds=True)

    def averaged(self, *others: "Downscaling") -> "Downscaling":
        """Return this net with estimates averaged with those of nets from other seeds.

        Raises:
            ValueError: one of them is of another model, or was trained on other fields.
        """
        if strangers := [type(net).__name__ for net in others if not isinstance(net, Downscaling)]:
            raise TypeError(f"others has a {strangers[0]}; pass nets, as load_downscaling(path)")
        more = [replace(net, others=()) for other in others for net in other.members]
        for net in more:
            if shared(net) != shared(self):
                raise ValueError(
                    f"{net.model} and {self.model} differ, or the fields that they were trained "
                    "on do; average nets of one training with several seeds"
                )
        return replace(self, others=(*self.others, *more))

    def at(self, factor: int) -> "Downscaling":
        """Return this net refining by another factor; a `Cascade` has learned several.

        Raises:
            ValueError: it has not learned that one.
        """
        model = self.model
        if factor == model.factor:
            return self
        inner = model.net if isinstance(model, LocallyScaled) else model
        if not isinstance(inner, Cascade):
            raise ValueError(
                f"factor is {factor}, but this {type(inner).__name__} refines by {model.factor} "
                "alone; train a Cascade to have several"
            )
        config: Any = inner.at(factor)
        if isinstance(model, LocallyScaled):
            config = replace(model, net=config)
        others = tuple(each.at(factor) for each in self.others)
        return replace(self, model=config, others=others)

    @as_usual
    def refine(self, coarse: Fields, statics: Ground | None = None) -> Fine:
        """Return the fine field of each coarse one, of any size, in the unit of the training data.

        With a conservative model the block means of the result are the coarse values. Where a
        coarse value is missing, its block is; beside such, a net sees what is known continued.

        Args:
            coarse: (sample, y_lo, x_lo), or (sample, wind, y_lo, x_lo), behind the wind what is
                `beside`, in its own units; where that is missing it is taken for its mean.
            statics: the fields `statics` on the fine grid, in their own units.
        """
        elements = range(COUNT) if self.folds else (0,)
        signs = (1, -1) if self.folds and self.winds == (COMPONENT,) else (1,)
        programs = [net.turned(e, s) for net in self.members for e in elements for s in signs]

        def mean(_: int, normal: Array, ground: Array | None) -> Array:
            return jnp.mean(jnp.stack([run(normal, ground) for run in programs]), axis=0)

        size = together(*np.shape(coarse)) if statics is None else 1
        return self.applied(mean, coarse, statics, size)

    @as_usual
    def draw(
        self,
        coarse: Fields,
        draws: int,
        statics: Ground | None = None,
        *,
        seed: int = 0,
        corner: tuple[int, int] = (0, 0),
    ) -> Float[np.ndarray, "sample draw *wind y x"]:
        """Return fine fields drawn for each coarse one, by a net that is probabilistic.

        Args:
            coarse: as for `refine`.
            draws: how many for each.
            statics: as for `refine`.
            seed: of the draws; the same seed draws the same noise at the same place and sample.
            corner: row and column of the first cell in the domain whose part this is.

        Raises:
            ValueError: the net draws nothing, or is an average of several.
        """
        if self.others:
            raise ValueError(
                f"an average of {len(self.members)} nets draws nothing: it would be too smooth; "
                "draw from each, and join the draws"
            )
        if not self.model.probabilistic:
            raise ValueError(
                f"{type(self.model).__name__} gives one estimate and draws nothing; train one of "
                "Density, Generative, FlowRefinement"
            )
        check_whole(1, draws=draws)
        program, key = sampling(self.model, draws), jax.random.key(whole_seed(seed))

        def drawn(sample: int, normal: Array, ground: Array | None) -> Array:
            own = jax.random.fold_in(key, sample)
            return program(self.trained.params, normal, own, ground, jnp.array(corner))

        return self.applied(drawn, coarse, statics)

    def turned(self, element: int, sign: int) -> Any:
        """Return the net as it sees the fields turned."""
        run, winds, back = refining(self.model), self.winds, inverse(element)
        seen_names = winds + self.beside

        def refined(normal: Array, ground: Array | None) -> Array:
            turned = None if ground is None else symmetry(ground, self.statics, element)
            seen = sign * symmetry(normal, seen_names, element)
            return sign * symmetry(run(self.trained.params, seen, turned), winds, back)

        return refined

    def applied(
        self, program: Any, coarse: Fields, statics: Ground | None, size: int = 1
    ) -> Float[np.ndarray, "sample *shape y x"]:
        """Return what (first sample, normal numbers, statics) ↦ normal numbers makes of fields.

        `size` of them go together, and such groups side by side on all cores.
        """
        mean, std = self.normaliser.columns()
        winds, ground_at = slice(self.model.wind), slice(self.model.wind, behind(self.model))
        fields, bare = fields_of(coarse, self.winds, self.beside)
        shown = [*range(self.model.wind), *range(behind(self.model), len(mean))]
        warn_of_unlike(fields, self.winds + self.beside, self.normaliser, self.told)
        ground = None
        if self.statics or statics is not None:
            expected = tuple(self.model.factor * n for n in fields.shape[-2:])
            given = ground_of(statics, self.statics, expected)[None]
            warn_of_unlike(given, self.statics, self.normaliser, self.told)
            ground = jnp.asarray((given - mean[ground_at]) / std[ground_at])

        def group(first: int) -> Float[np.ndarray, "sample *shape y x"]:
            some = fields[first : first + size]
            if self.correction is not None:
                some = np.concatenate(
                    [self.correction.of(some[:, winds]), some[:, self.model.wind :]], axis=1
                )
            known = np.isfinite(some[:, winds])
            some = without_gaps(some, self.model)
            normal = np.where(np.isfinite(some), (some - mean[shown]) / std[shown], 0.0)
            normal = np.pad(normal, [(0, size - len(some)), *[(0, 0)] * (normal.ndim - 1)], "edge")
            made = np.moveaxis(np.asarray(program(first, jnp.asarray(normal), ground)), -4, 0)
            made = made[: len(some)]
            fine = made * std[winds] + mean[winds]
            fine = with_gaps(fine, known, self.model.factor)
            return fine[..., 0, :, :] if bare else fine

        one = (self.model, fields.shape[1:], size, program.__name__, self.folds)
        made = list(each(group, range(0, len(fields), size), compiled=one in SEEN))
        SEEN.add(one)
        return np.concatenate(made)

    @as_usual
    def predict(
        self,
        coarse: xr.Dataset,
        statics: xr.Dataset | None = None,
        *,
        draws: int = 0,
        seed: int = 0,
    ) -> xr.Dataset:
        """Return fine wind on a finer grid, as `sciml.downscale.apply.predict`."""
        return predict(self, coarse, statics, draws=draws, seed=seed)

    def traceable(self, batch: int = 28, size: int = 64) -> tuple[Any, Any, Any]:
        """Return the training function, the shapes of the weights, and of a batch of patches.

        They are what `wse` asks of any model: `wse.check(*net.traceable())` says whether its
        operations would port, `wse.estimate(*net.traceable())` how long training would take.

        Args:
            batch: patches of a step.
            size: points along a side of one.

        Raises:
            ValueError: the net draws in its loss, or sizes that do not fit.
        """
        return traceable(self.model, batch, size)

    def _repr_html_(self) -> str:
        """Return a table for a notebook: what was trained, how far, and in which time."""
        losses, seconds = self.trained.loss, self.trained.seconds
        rows = {
            "model": f"{self.model}",
            "weights": self.weights,
            "refines": f"{', '.join(self.winds)} by {self.model.factor}",
            "known on the fine grid": ", ".join(self.statics) or "nothing",
            "beside the coarse wind": ", ".join(self.beside) or "nothing",
            "epochs": len(losses),
            "loss": float(losses[-1]) if len(losses) else "not trained",
            "set-up, training (s)": f"{seconds['compile_s']:.1f}, {seconds['train_s']:.1f}",
            "mean of nets": len(self.members),
        }
        return captioned("Downscaling", pd.DataFrame(rows.items(), columns=["what", "is"]))

    def save(self, path: Path | str) -> Path:
        """Write everything to one file, aside and then renamed; `load_downscaling` reads it.

        Then the checkpoint of the training is removed.

        Raises:
            ValueError: it is an average of several nets, each of which has a file of its own.
        """
        written = storage.save(self, path)
        self.trained.checkpoint.remove()
        return written


def behind(model: Refinement) -> int:
    """Return where the channels begin that lie beside the wind."""
    return model.wind + model.statics


def shared(net: Downscaling) -> tuple[Any, ...]:
    """Return what nets must have in common to be averaged."""
    return net.model, net.normaliser, net.correction


def together(samples: int, *shape: int) -> int:
    """Return how many samples one call refines: all calls as many, each core some.

    An accelerator takes more, where small calls take as long as large ones.
    """
    if jax.default_backend() != "cpu":
        calls = math.ceil(samples * math.prod(shape) / (CALLS * POINTS))
        return math.ceil(samples / max(1, calls))
    most = max(1, min(POINTS // max(1, math.prod(shape)), samples // usable_cores()))
    return max(size for size in range(1, most + 1) if samples % size == 0)


@cache
def refining(model: Refinement) -> Any:
    """Return the compiled (params, coarse, statics) ↦ fine, compiled once for each shape."""
    structure, _ = skeleton(model)
    return jax.jit(lambda params, coarse, ground: nnx.merge(structure, params)(coarse, ground))


@cache
def sampling(model: Any, draws: int) -> Any:
    """Return the compiled (params, coarse, key, statics, corner) ↦ draws."""
    structure, _ = skeleton(model)

    def run(params: Any, coarse: Array, key: Array, ground: Array | None, corner: Array) -> Array:
        net = nnx.merge(structure, params)
        return net.sample(coarse, key, draws, ground, corner=(corner[0], corner[1]))

    return jax.jit(run)


def load_downscaling(path: Path | str, model: Refinement | None = None) -> Downscaling:
    """Read a net that `Downscaling.save` wrote, or one that comes with the package, by its name.

    `sciml wind nets` lists their names and says what they learned from and reach. A file makes
    nothing of one's own: of such a net pass the configuration as `model`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: there is no such name, or its weights are not those that its card tells of.
        NotAFitError: the file is damaged, foreign, of another schema, or its weights do not fit
            its configuration.

    >>> from sciml.estimator import load_downscaling
    >>> load_downscaling("wind4").model.factor
    4
    """
    read = partial(storage.read, model)
    net = Downscaling(*reading(net_file(path), read, "Downscaling.save"))
    name = card_name(path)
    return net if name is None else replace(net, attrs={**net.attrs, "card": name})
