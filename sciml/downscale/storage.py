"""A trained net for wind in one file: arrays and a JSON description in a plain npz."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax

from sciml.downscale.objective import skeleton
from sciml.models import REFINEMENTS
from sciml.models.archive import (
    NotAFitError,
    config,
    described_config,
    description,
    matching,
    tuples,
    write,
)
from sciml.train.loop import Trained
from sciml.wind.prepare.channels import Normaliser
from sciml.wind.prepare.correction import Correction

FORMAT = "sciml.downscaling"
SCHEMA = 1
HISTORY = ("loss", "validated", "validation")


def save(net: Any, path: Path | str) -> Path:
    """Write a `Downscaling` to `path`, aside and then renamed."""
    if net.others:
        raise ValueError(
            f"{path} would hold one of {len(net.members)} averaged nets; save each of them, and "
            "average what load_downscaling reads"
        )
    more = {} if net.correction is None else {"correction": asdict(net.correction)}
    return write_net(net, path, FORMAT, {"folds": net.folds}, more)


def write_net(
    net: Any, path: Path | str, kind: str, own: dict[str, Any], more: dict[str, Any] | None = None
) -> Path:
    """Write a net of fields, its normaliser and training to one file, with what is its own."""
    described = {
        "format": kind,
        "schema": SCHEMA,
        "model": described_config(net.model),
        "normaliser": asdict(net.normaliser),
        "seconds": net.trained.seconds,
        **own,
        "attrs": net.attrs,
        **(more or {}),
    }
    arrays = {f"history/{name}": getattr(net.trained, name) for name in HISTORY}
    return write(path, described, net.trained.params, arrays)


def read(own: Any, stored: Any) -> tuple[Any, ...]:
    """Return the attributes of the `Downscaling` in an open npz file, in their order.

    `own` is the configuration of a net that is none of ours, which a file cannot make; else None.
    """
    described, model, normaliser, trained = read_net(stored, FORMAT, REFINEMENTS, own)
    jax.block_until_ready(trained.params)
    correction = described.get("correction")
    correction = None if correction is None else Correction(**tuples(correction))
    return model, normaliser, trained, described["attrs"], described["folds"], (), correction


def read_net(
    stored: Any, kind: str, known: Mapping[str, Any], own: Any = None
) -> tuple[dict[str, Any], Any, Normaliser, Trained]:
    """Return the description in an open npz file of `write_net`, and what it holds."""
    described = description(stored, kind, SCHEMA)
    model = configured(described["model"], known, own)
    trained = Trained(
        params=matching(stored, skeleton(model)[1], model),
        **{name: stored[f"history/{name}"] for name in HISTORY},
        **described["seconds"],
    )
    return described, model, Normaliser(**tuples(described["normaliser"])), trained


def configured(described: dict[str, Any], known: Mapping[str, Any], own: Any) -> Any:
    """Return the configuration that a file describes; `own` is that of a net that is none of ours.

    Raises:
        NotAFitError: it is another one, or none is given and it is none of the `known`.
    """
    if own is None:
        try:
            return config(described, known)
        except NotAFitError as error:
            raise NotAFitError(f"{error}; pass a configuration of your own as model=") from error
    if json.loads(json.dumps(described_config(own))) != described:
        raise NotAFitError(f"it holds a net of {described}, and model is {own}: pass that one")
    return own
