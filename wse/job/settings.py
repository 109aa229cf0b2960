"""With what a run was trained: another net under its weights is refused, other changes are told."""

# JAX annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from wse._document import short
from wse._files import write_json
from wse.graph.outline import shape

NAME = "settings.json"
TOLD = ("train_input", "optimizer", "sparsity", "precision")  # may change on the way
log = logging.getLogger("wse.run")
Job = Any  # a `wse.job.Job`, which imports this


def write(job: Job) -> Path:
    """Write settings.json into the folder of a run."""
    return write_json(job.folder / NAME, _said(job))


def check(job: Job, tell: bool = False) -> None:
    """Compare with what the weights in a folder were trained with, where that is written.

    Args:
        job: what goes on, or is evaluated.
        tell: whether changes that leave the net as it was are logged.

    Raises:
        ValueError: a net that computes something else from the same weights, or a damaged file.
    """
    path = job.folder / NAME
    if not path.is_file():
        return
    before, now = _read(path), _said(job)
    net = _changes({key: before[key] for key in ("model", "module")}, now)
    if net and not _same(job, before):
        key, (then, here) = next(iter(net.items()))
        raise ValueError(
            f"{job.folder} was trained with {key} {short(then)}; now it is {short(here)}, which is "
            "another net under the same weights: write it back, or name another model_dir"
        )
    for key, (then, here) in _changes(before, now).items() if tell else ():
        log.info("%s is %s; until here it was %s", key, short(here), short(then))


def _said(job: Job) -> dict[str, Any]:
    params = job.params
    found = {key: getattr(params, key) for key in TOLD}
    said = {key: None if x is None else asdict(x) for key, x in found.items()}
    said |= {"model": dict(params.model), "module": job.module, "seed": params.runconfig.seed}
    return json.loads(json.dumps(said, default=str))


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {**found, "model": dict(found["model"]), "module": found["module"]}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} is damaged ({str(error)[:100]}); it says what the weights beside it were "
            "trained with: delete it if the params file is still the same"
        ) from error


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Paths of what differs, with both values."""
    old, new = _flat(before), _flat({key: now.get(key) for key in before})
    keys = sorted({*old, *new})
    return {k: (old.get(k), new.get(k)) for k in keys if old.get(k) != new.get(k)}


def _flat(found: Mapping[str, Any], lead: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in found.items():
        inner = _flat(value, f"{lead}{key}.") if isinstance(value, dict) else {}
        flat |= inner or {f"{lead}{key}": value}
    return flat


def _same(job: Job, before: Mapping[str, Any]) -> bool:
    """Whether both nets compute the same, whatever words say it."""
    params = replace(job.params, model=before["model"])
    earlier = replace(job, params=params, module=before["module"], weights=None)
    try:
        old, new = _program(earlier), _program(job)
    except ValueError:
        return False
    return old[0] == new[0] and all(map(np.array_equal, old[1], new[1]))


def _program(job: Job) -> tuple[str, list[Any]]:
    """What a net computes from weights and samples: its operations, and its constants."""
    built, batch = job.built, job.batch(0)
    params = jax.tree.map(shape, built.params)
    more = [jax.eval_shape(built.statistics, params, batch)] if built.statistics else []
    made = jax.make_jaxpr(built.predict)(params, batch["features"], *more)
    return re.sub(r"0x[0-9a-f]+", "", str(made)), [np.asarray(x) for x in made.consts]
