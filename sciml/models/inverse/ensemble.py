"""Several nets of one kind in one program."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Key

from sciml.models.inverse.context import Draws, Targets
from sciml.models.inverse.dense import Dense
from sciml.models.shared.presence import Inputs, Observed, flat
from sciml.models.shared.sizes import check_sizes
from sciml.train.recipe import Recipe

LAST_WITH_FIRST = (((1,), (0,)), ((), ()))


@dataclass(frozen=True)
class Ensemble:
    """`size` nets of the configuration `member`, each from weights of its own.

    Their weights are stacked along a leading axis, and one program trains all of them on the
    same batches; the loss is the mean of the members' losses. Of point nets the outputs are
    (member, batch, output), whose spread shows what the data leave open to the net. Posteriors
    are mixed with equal weights: p(y | x) = Σ_m p_m(y | x) / size.

    Source: Lakshminarayanan, Pritzel, Blundell, arXiv 1612.01474.

    Args:
        member: configuration of one net.
        size: number of nets; 4 to 8 give most of the gain.

    Raises:
        ValueError: size is not a positive whole number.
        TypeError: the member is no configuration of a single net.

    >>> Ensemble(Dense(width=32, depth=2), size=4).size
    4
    """

    member: Any
    size: int = 4

    def __post_init__(self):
        check_sizes(self, size=1)
        if isinstance(self.member, Ensemble) or getattr(self.member, "build", None) is None:
            raise TypeError(
                f"member is {self.member!r}; it must be the configuration of a single net: "
                "pass Ensemble(Dense(width=128), size=4)"
            )

    @property
    def targets(self) -> str:
        """The space of the targets: that of a member."""
        return self.member.targets

    @property
    def missing(self) -> bool:
        """Whether NaN is accepted as missing."""
        return self.member.missing

    def build(self, inputs: Inputs, outputs: int, *, rngs, dot_general=None):
        """Make the module."""
        keys = jax.random.split(rngs.params(), self.size)

        def one(key):
            return self.member.build(
                inputs, outputs, rngs=nnx.Rngs(params=key), dot_general=dot_general
            )

        graph = nnx.graphdef(nnx.eval_shape(lambda: one(keys[0])))
        members = nnx.merge(graph, jax.vmap(lambda key: nnx.state(one(key)))(keys))
        if isinstance(self.member, Dense):
            return DenseEnsembleNet(members, self.size, dot_general)
        kind = PointEnsemble if self.targets == "unit" else PosteriorEnsemble
        return kind(members, self.size)

    def recipe(self) -> Recipe:
        """Return the recipe of a member."""
        return self.member.recipe()


class StackedEnsemble(nnx.Module):
    """Members whose weights are stacked."""

    def __init__(self, members: nnx.Module, size: int):
        self.members, self.size = members, size

    def over(self, call, *arguments):
        """Return `call(member, *arguments)` of every member, stacked; so are the arguments."""
        graph, state = nnx.split(self.members)
        return jax.vmap(lambda state, *rest: call(nnx.merge(graph, state), *rest))(
            state, *arguments
        )


class PointEnsemble(StackedEnsemble):
    """See `Ensemble`."""

    def __call__(self, x: Observed) -> Float[Array, "member batch output"]:
        """Return the outputs of every member."""
        return self.over(lambda net: net(x))


class PosteriorEnsemble(StackedEnsemble):
    """See `Ensemble`."""

    def log_prob(self, targets: Targets, observed: Observed) -> Float[Array, " batch"]:
        """Return the log density of the mixture."""
        logs = self.over(lambda net: net.log_prob(targets, observed))
        return jax.nn.logsumexp(logs, axis=0) - jnp.log(self.size)

    def loss(
        self, targets: Targets, observed: Observed, key: Key[Array, ""] | None = None
    ) -> Float[Array, " batch"]:
        """Return the mean of the members' losses; all of them see the same noise."""
        return self.over(lambda net: net.loss(targets, observed, key)).mean(axis=0)

    def sample(self, key: Key[Array, ""], observed: Observed, draws: int) -> Draws:
        """Draw from the mixture: every member in turn gives a draw."""
        each = -(-draws // self.size)
        keys = jax.random.split(key, self.size)
        found = self.over(lambda net, key: net.sample(key, observed, each), keys)
        mixed = jnp.swapaxes(found, 0, 1)
        return mixed.reshape(-1, *mixed.shape[2:])[:draws]

    def estimate(self, observed: Observed) -> Targets:
        """Return the mean of the members' estimates."""
        return self.over(lambda net: net.estimate(observed)).mean(axis=0)


class DenseEnsembleNet(nnx.Module):
    """`size` nets of `Dense`; the first weights are kept as (input, member, unit).

    All members see the same inputs, so their first products are one: x [W¹ | W² | …]. With a
    thousand inputs that layer is most of the net.
    """

    def __init__(self, members: nnx.Module, size: int, dot_general=None):
        layers: Any = members.layers  # type: ignore[attr-defined]
        self.size, self.missing = size, bool(members.missing)  # type: ignore[attr-defined]
        self.dot = dot_general or jax.lax.dot_general
        self.first = nnx.Param(jnp.moveaxis(layers[0].kernel[...], 0, 1))
        self.kernels = nnx.List(nnx.Param(layer.kernel[...]) for layer in list(layers)[1:])
        self.biases = nnx.List(nnx.Param(layer.bias[...]) for layer in layers)

    def __call__(self, x: Observed) -> Float[Array, "member batch output"]:
        """Return the outputs of every member, in (0, 1)."""
        x = flat(x, self.missing)
        first, *biases = (b[...][:, None] for b in self.biases)
        joint = self.dot(x, self.first[...].reshape(x.shape[1], -1), LAST_WITH_FIRST)
        h = jnp.swapaxes(joint.reshape(len(x), self.size, -1), 0, 1) + first
        product = jax.vmap(lambda h, w: self.dot(h, w, LAST_WITH_FIRST))
        for kernel, bias in zip(self.kernels, biases, strict=True):
            h = product(nnx.swish(h), kernel[...]) + bias
        return nnx.sigmoid(h)
