"""Trained things in one file each: arrays and a JSON description in a plain npz."""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import nnx

from sciml.models import INVERSE_MAPS
from wse._files import as_path, write_aside
from wse._npz import DamagedFile, read_npz

LATER = {"beside": 0}  # fields that came later: told where they are not this, as before they came


class NotAFitError(ValueError):
    """A file that `load` cannot use."""


def write(
    path: Path | str, described: dict[str, Any], params: Any, arrays: dict[str, np.ndarray]
) -> Path:
    """Write a description, weights and further arrays to `path`, aside and then renamed."""
    weights = {f"params/{name}": np.asarray(leaf) for name, leaf in named(params)}
    text = np.array(json.dumps(described))
    with write_aside(path) as aside, aside.open("wb") as file:
        np.savez(file, allow_pickle=False, description=text, **arrays, **weights)
    return Path(path)


def reading(path: Path | str, read: Callable[[Any], Any], writer: str) -> Any:
    """Return what `read` makes of an open npz file that `writer` wrote, or say what is wrong."""
    path = as_path("path", path, f"pass what {writer} returned")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file; pass the path that {writer} returned")
    try:
        return read(read_npz(path))
    except NotAFitError as error:
        raise NotAFitError(f"{path}: {error}") from error
    except DamagedFile as error:
        raise NotAFitError(f"{error}; it must be a file that {writer} wrote, whole") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotAFitError(
            f"{path} cannot be read ({type(error).__name__}: {error}); "
            f"it must be a file that {writer} wrote, whole"
        ) from error


def description(stored: Any, kind: str, schema: int) -> dict[str, Any]:
    """Return the JSON description, if it is one of ours, of this kind and schema."""
    if "description" not in stored:
        raise NotAFitError(f"it holds no description; it must be a {kind} that this package wrote")
    described = json.loads(str(stored["description"]))
    if not isinstance(described, dict) or described.get("format") != kind:
        raise NotAFitError(f"its description is not that of a {kind}")
    if described["schema"] != schema:
        raise NotAFitError(
            f"its schema is {described['schema']}; this version reads {schema}: "
            "use the version of sciml-wse that wrote it, or fit again"
        )
    return described


def described_config(model: Any) -> dict[str, Any]:
    """Return a configuration as JSON takes it: its kind and its fields, nested ones alike."""
    own = {field.name: getattr(model, field.name) for field in fields(model)}
    own = {k: v for k, v in own.items() if k not in LATER or LATER[k] != v}
    return {
        "kind": type(model).__name__,
        **{k: described_value(v) for k, v in own.items()},
    }


def described_value(value: Any) -> Any:
    """Return a value as JSON takes it; a function by its name."""
    if is_dataclass(value):
        return described_config(value)
    return getattr(value, "__qualname__", str(value)) if callable(value) else value


def config(described: dict[str, Any], known: Mapping[str, Any] = INVERSE_MAPS) -> Any:
    """Return the configuration that was described, of one of the `known` kinds."""
    own = tuples(described)
    kind = own.pop("kind")
    if kind not in known:
        raise NotAFitError(f"its model is {kind!r}; known are {sorted(known)}")
    return known[kind](
        **{k: config(v, known) if isinstance(v, dict) else v for k, v in own.items()}
    )


def tuples(values: dict[str, Any]) -> dict[str, Any]:
    """Return values with JSON's lists as tuples, those within them too."""
    return {k: as_tuple(v) for k, v in values.items()}


def as_tuple(value: Any) -> Any:
    """Return a list as a tuple, and what it holds."""
    return tuple(map(as_tuple, value)) if isinstance(value, list) else value


def matching(stored: Any, abstract: nnx.State, model: Any) -> Any:
    """Return stored weights in the structure, the shapes and the types of `abstract`."""
    leaves = []
    for name, expected in named(abstract):
        found = stored[f"params/{name}"]
        if found.shape != expected.shape or found.dtype != expected.dtype:
            raise NotAFitError(
                f"{name} is {found.dtype}{list(found.shape)}; {model} needs "
                f"{expected.dtype}{list(expected.shape)}"
            )
        leaves.append(jax.device_put(found))  # to call asarray compiles a copy for each shape
    return jax.tree.unflatten(jax.tree.structure(abstract), leaves)


def named(params: nnx.State) -> list[tuple[str, Any]]:
    """Return the leaves of a state with their paths, as in 'layers.0.kernel'."""
    pairs, _ = jax.tree_util.tree_flatten_with_path(params)
    return [(jax.tree_util.keystr(path, simple=True, separator="."), leaf) for path, leaf in pairs]
