"""From the words of a params file to an optax optimizer and a sparsity."""

# optax annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from typing import Any

import optax

from wse import sparsity
from wse._document import nearest, short
from wse.job.params import Optimizer, Sparsity
from wse.sparsity import selection

DECAYED = ("AdamW", "Lamb", "Lion")
WITH_MOMENTUM = ("SGD", "RMSprop")
MAKERS: dict[str, Any] = {
    "SGD": optax.sgd,
    "Adam": optax.adam,
    "AdamW": optax.adamw,
    "Adagrad": optax.adagrad,
    "Adafactor": optax.adafactor,
    "Lamb": optax.lamb,
    "Lion": optax.lion,
    "NAdam": optax.nadam,
    "RAdam": optax.radam,
    "RMSprop": optax.rmsprop,
}


def optimizer(said: Optimizer) -> optax.GradientTransformation:
    """The optimizer that a params file names.

    Raises:
        ValueError: an unknown type, or a value that this type does not take.
    """
    name = said.optimizer_type
    if name not in MAKERS:
        raise ValueError(f"optimizer.optimizer_type is {short(name)}; {nearest(name, MAKERS)}")
    for key, takers in (("momentum", WITH_MOMENTUM), ("weight_decay", DECAYED)):
        if getattr(said, key) and name not in takers:
            raise ValueError(
                f"optimizer.{key} is {getattr(said, key)} but {name} takes none: leave it out, or "
                f"write optimizer_type: {takers[0]}"
            )
    extra: dict[str, float] = {}
    if name in DECAYED:
        extra["weight_decay"] = said.weight_decay
    if name in WITH_MOMENTUM and said.momentum:
        extra["momentum"] = said.momentum
    made = MAKERS[name](said.learning_rate, **extra)
    if said.max_gradient_norm is None:
        return made
    return optax.chain(optax.clip_by_global_norm(said.max_gradient_norm), made)


def masks(said: Sparsity | None, steps: int) -> sparsity.Method | None:
    """The sparsity that a params file names, over so many steps.

    Raises:
        ValueError: an unknown type, or a share that is none.
    """
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
    if said.type in ("set", "rigl"):
        kind = sparsity.SET if said.type == "set" else sparsity.RigL
        return kind(said.sparsity, steps, said.drop_fraction, said.update_freq, rule=rule)
    raise ValueError(
        f"sparsity.type is {short(said.type)}; it must be static, magnitude, gmp, set or rigl: "
        "write one of these"
    )


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
