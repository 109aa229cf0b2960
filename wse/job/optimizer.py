"""From the words of a params file to an optax optimizer and a sparsity."""

# optax annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
# pyright: reportUnknownLambdaType=false

from itertools import accumulate
from typing import Any

import jax
import optax

from wse import precision, sparsity
from wse._document import short
from wse.job.params import Optimizer, Precision, Schedule, Sparsity
from wse.sparsity import selection

DECOUPLED = ("AdamW", "Lamb", "Lion")  # they decay weights beside the gradient, not by it


def optimizer(said: Optimizer, rates: Any = None) -> optax.GradientTransformation:
    """The optimizer that a params file names.

    Args:
        said: what it says.
        rates: factors of the learning rate, a tree as of the parameters, 0 where a weight is no
            product of a block; None: of a model that is not known by name.

    Raises:
        ValueError: an adjusted learning rate of a model that is not known by name.
    """
    if said.adjust_learning_rate and rates is None:
        raise ValueError(
            f"optimizer.adjust_learning_rate is {said.adjust_learning_rate.decoder_kernel} for "
            "decoder_kernel; only the blocks of a transformer by name are known: leave it out"
        )
    name = said.optimizer_type
    extra: dict[str, float] = {}
    if name in DECOUPLED:
        extra["weight_decay"] = said.weight_decay
    if said.betas:
        extra["b1"], extra["b2"] = said.betas
    extra |= {key: value for key in ("eps", "momentum") if (value := getattr(said, key))}
    make: Any = getattr(optax, name.lower())
    steps = [make(learning_rate(said), **extra)]
    if said.weight_decay and name not in DECOUPLED:
        steps.insert(0, optax.add_decayed_weights(said.weight_decay))
    if said.max_gradient_norm is not None:
        steps.insert(0, optax.clip_by_global_norm(said.max_gradient_norm))
    if rates is not None:
        more = said.adjust_learning_rate.decoder_kernel if said.adjust_learning_rate else 1.0
        steps += _adjusted(rates, more)
    return optax.chain(*steps) if len(steps) > 1 else steps[0]


def _adjusted(rates: Any, more: float) -> list[optax.GradientTransformation]:
    """One step for each factor that is not 1: of the weights that have it."""
    factors = jax.tree.map(lambda rate: rate * more if rate else 1.0, rates)
    return [
        optax.masked(optax.scale(one), jax.tree.map(one.__eq__, factors))
        for one in sorted(set(jax.tree.leaves(factors)) - {1.0})
    ]


def learning_rate(said: Optimizer) -> float | optax.Schedule:
    """A number, or a function of the step; schedules of a list follow one another."""
    given = said.learning_rate
    if not isinstance(given, tuple):
        return _curve(given) if isinstance(given, Schedule) else given
    ends = accumulate(part.span or 0 for part in given[:-1])
    return optax.join_schedules(list(map(_curve, given)), [*ends])


def _curve(said: Schedule) -> optax.Schedule:
    if said.learning_rate is not None:
        return optax.constant_schedule(said.learning_rate)
    if said.milestones:
        rates = map(optax.constant_schedule, said.learning_rates)
        return optax.join_schedules([*rates], [*said.milestones])
    first, last = said.initial_learning_rate or 0.0, said.end_learning_rate or 0.0
    if said.scheduler == "Linear":
        return optax.linear_schedule(first, last, said.span or 0)
    wave = optax.cosine_decay_schedule(1.0, said.span or 0)
    return lambda step: last + (first - last) * wave(step)


def arithmetic(said: Precision | None) -> precision.Precision | None:
    """The arithmetic that a params file names; None: single precision."""
    if said is None or not said.mixed_precision:
        return None
    scale = said.loss_scaling_factor
    if scale is None:
        return precision.as_precision(said.fp16_type)
    return precision.Precision(said.fp16_type, precision.Dynamic() if scale == "dynamic" else scale)


def masks(said: Sparsity | None, steps: int) -> sparsity.Method | None:
    """The sparsity that a params file names, over so many steps."""
    if said is None:
        return None
    rule = sparsity.Rule(only=said.param_name_patterns)
    if said.type == "static":
        return sparsity.Static(said.sparsity, rule=rule)
    if said.type == "magnitude":
        return sparsity.Magnitude(said.sparsity, rule=rule)
    if said.type == "gmp":
        end = max(2, steps // 2)
        return sparsity.Gradual(said.sparsity, 1, end, said.update_freq, rule=rule)
    kind = sparsity.SET if said.type == "set" else sparsity.RigL
    return kind(said.sparsity, steps, said.drop_fraction, said.update_freq, rule=rule)


def check_patterns(said: Sparsity | None, params: Any) -> None:
    """Refuse a sparsity that none of these parameters would have.

    Raises:
        ValueError: no pattern matches a matrix that may be sparse.
    """
    if said is None:
        return
    try:
        sparsity.Rule(only=said.param_name_patterns).chosen(params)
    except ValueError as error:
        names = ", ".join(map(repr, selection.paths(params)))
        raise ValueError(
            f"sparsity.param_name_patterns is {short([*said.param_name_patterns])}; it must match "
            "a weight matrix that is no norm, no embedding and not the last: the parameters are "
            f"{names[:300]}"
        ) from error
