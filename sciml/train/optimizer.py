"""A recipe as an optax transformation."""

import optax

from sciml.train.recipe import Recipe


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
    """Return clipping (if any) followed by Adam (0.9, 0.999, 1e-8) with the recipe's steps."""
    adam = optax.adam(step_size(recipe, updates))
    if recipe.clip is None:
        return adam
    return optax.chain(optax.clip_by_global_norm(recipe.clip), adam)
