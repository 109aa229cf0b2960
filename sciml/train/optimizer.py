"""A recipe as an optax transformation."""

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, PyTree

from sciml.train.recipe import Recipe

LARGE = 2**20  # numbers in a gradient from which copies of the weights cost more than waiting


def step_size(recipe: Recipe, updates: int) -> optax.Schedule:
    """Return the step size as a function of the update's number, over `updates` in all."""
    if recipe.schedule == "constant":
        return optax.constant_schedule(recipe.learning_rate)
    warmup = round(recipe.warmup * updates)
    return optax.warmup_cosine_decay_schedule(
        init_value=recipe.learning_rate / (warmup + 1),
        peak_value=recipe.learning_rate,
        warmup_steps=warmup,
        decay_steps=max(updates, warmup + 1),
        end_value=recipe.final * recipe.learning_rate,
    )


def optimizer(recipe: Recipe, updates: int) -> optax.GradientTransformation:
    """Return clipping (if any) followed by Adam (0.9, 0.999, 1e-8) with the recipe's steps.

    With weight decay it is AdamW; matrices shrink, vectors (biases, scales) do not.
    """
    first = whole_gradient() if recipe.clip is None else clip_by_norm(recipe.clip)
    steps = step_size(recipe, updates)
    if not recipe.weight_decay:
        return optax.chain(first, optax.adam(steps))
    return optax.chain(first, optax.adamw(steps, weight_decay=recipe.weight_decay, mask=matrices))


def matrices(params: PyTree[Array]) -> PyTree[bool]:
    """Tell the leaves that shrink: products, not biases, which an ensemble stacks to matrices."""

    def shrinks(path, leaf) -> bool:
        return leaf.ndim > 1 and "bias" not in jax.tree_util.keystr(path)

    return jax.tree_util.tree_map_with_path(shrinks, params)


def whole_gradient() -> optax.GradientTransformation:
    """Return the identity, which in large nets waits for every part of the gradient.

    Otherwise XLA may update a matrix while the backward pass still reads it, and copies all
    weights at every step to be safe. A clipped gradient waits anyway; small nets gain nothing.
    """

    def waiting(gradient: PyTree[Array], _) -> PyTree[Array]:
        leaves = jax.tree.leaves(gradient)
        if sum(leaf.size for leaf in leaves) < LARGE:
            return gradient
        nothing = 0 * sum(leaf.ravel()[0] for leaf in leaves if leaf.size)
        return jax.tree.map(lambda leaf: leaf + nothing, gradient)

    return optax.stateless(waiting)


def clip_by_norm(bound: float) -> optax.GradientTransformation:
    """Return g ↦ g min(1, bound / ‖g‖), with the Euclidean norm of the whole gradient.

    The values are those of `optax.clip_by_global_norm`; the sums are arranged so that XLA on a
    processor runs them as vector additions, in parallel: docs/lab/training-speed.md has the gain.
    """

    def clipped(gradient: PyTree[Array], _) -> PyTree[Array]:
        scale = jnp.minimum(1.0, bound * lax.rsqrt(squared_norm(gradient)))
        return jax.tree.map(lambda leaf: leaf * scale, gradient)

    return optax.stateless(clipped)


def squared_norm(tree: PyTree[Array]) -> Float[Array, ""]:
    """Return the sum of squares of all leaves: of columns first, then of one short vector."""
    squares = (jnp.square(leaf) for leaf in jax.tree.leaves(tree))
    columns = [s.sum(axis=0).ravel() if s.ndim > 1 else s.ravel() for s in squares]
    return jnp.concatenate(columns).sum()
