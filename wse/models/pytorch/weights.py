"""Weights from a safetensors file: a header in JSON, then plain numbers. Nothing is executed.

The file begins with the length of the header, 8 bytes, least first; the header names of each tensor
its kind of number, its shape and the first and last of its bytes. Source: the format's own page,
huggingface/safetensors, README.
"""

# torch is an extra, and what a header holds has no static type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import json
from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wse._document import nearest, short
from wse.graph.outline import paths

KINDS: dict[str, Any] = {
    **{"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": jnp.bfloat16},
    **{"I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8},
    **{"U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_},
}
MOST_HEADER_BYTES = 100_000_000  # sourced: the format's own limit
PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")
OF_PYTORCH = (".weight", ".running_mean", ".running_var", ".in_proj_weight")
SAVE = "safetensors.torch.save_file(module.state_dict(), 'weights.safetensors')"


def read_weights(path: Path | str) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file by name, mapped into memory as they are needed.

    Args:
        path: the file.

    Raises:
        ValueError: a pickle, no safetensors file, one that is cut, or one whose header contradicts
            its size.
        FileNotFoundError: there is no such file.
    """
    path = Path(path)
    if path.suffix.lower() in PICKLES:
        raise ValueError(
            f"weights is {str(path)!r}; a {path.suffix} is a pickle, which may run anything, and "
            f"is not opened: write it anew where it is trusted, with {SAVE}"
        )
    if not path.is_file():
        raise FileNotFoundError(f"{path} is no file; it must be of safetensors: check the path")
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or not 0 < length <= min(MOST_HEADER_BYTES, size - 8):
            raise _damaged(path, f"its header would be {length:,} bytes of {size:,}")
        header = _header(path, file.read(length))
    data = (
        np.memmap(path, np.uint8, "r", offset=8 + length)
        if size > 8 + length
        else np.empty(0, np.uint8)
    )
    found: dict[str, np.ndarray] = {}
    end = 0
    for name, entry in sorted(header.items(), key=lambda item: _offsets(path, *item)):
        first, last = _offsets(path, name, entry)
        kind, shape = _kind(path, name, entry), tuple(entry["shape"])
        if first != end or last - first != prod(shape) * np.dtype(kind).itemsize:
            raise _damaged(path, f"{short(name)} of {list(shape)} lies at {first:,} to {last:,}")
        if last > len(data):
            raise _damaged(
                path, f"{short(name)} ends at {last:,} of {len(data):,} bytes: it is cut"
            )
        found[name] = data[first:last].view(kind).reshape(shape)
        end = last
    if end != len(data):
        raise _damaged(path, f"{len(data) - end:,} bytes belong to no tensor")
    return found


def load(module: Any, weights: Mapping[str, Any], name: str) -> None:
    """Put arrays into a module of PyTorch, by the names of its state.

    Raises:
        ValueError: a name that the module has not, one that is lacking, another shape, or a module
            without numbers.
    """
    import torch  # pyright: ignore[reportMissingImports]

    state: Any = module.state_dict()
    if empty := [key for key, x in state.items() if x.is_meta]:
        raise ValueError(
            f"{empty[0]} is on the device meta, which holds no numbers; {name} is loaded into "
            "memory: build the module on the processor"
        )
    held = {state[key].data_ptr() for key in weights if key in state}
    # A tensor that two names share lies in the file once.
    twins = {key for key, x in state.items() if key not in weights and x.data_ptr() in held}
    _check({key: tuple(x.shape) for key, x in state.items() if key not in twins}, weights, name)
    with torch.no_grad():
        for key, array in weights.items():
            plain = np.array(array, np.float32) if array.dtype == jnp.bfloat16 else np.array(array)
            state[key].copy_(torch.from_numpy(plain))


def into(params: Any, weights: Mapping[str, Any], name: str) -> Any:
    """Arrays in place of the leaves of a tree of parameters, by their paths with dots between.

    Raises:
        ValueError: a name that the tree has not, one that is lacking, another shape, or numbers
            that are not of floating point or not finite.
    """
    leaves, structure = jax.tree.flatten(params)
    known = dict(zip(paths(params), leaves, strict=True))
    _refuse_foreign_names(known, weights, name)
    _check({key: tuple(x.shape) for key, x in known.items()}, weights, name)
    for key, array in weights.items():
        if not jnp.issubdtype(array.dtype, jnp.floating) or not jnp.isfinite(array).all():
            raise ValueError(
                f"{name} has {short(key)} of {array.dtype}, with numbers that are no weights; all "
                "must be finite and of floating point: write the weights that were trained"
            )
    return jax.tree.unflatten(
        structure, [jnp.asarray(weights[key], leaf.dtype) for key, leaf in known.items()]
    )


def _refuse_foreign_names(known: Iterable[str], weights: Iterable[str], name: str) -> None:
    """Say of PyTorch's names that they are such, since what looks like one means another array."""
    mine, theirs = sorted(known), [key for key in weights if key.endswith(OF_PYTORCH)]
    if theirs and not any(key.endswith(OF_PYTORCH) for key in mine):
        raise ValueError(
            f"{name} has {short(theirs[0])}, a name of PyTorch's; the model's are paths of its "
            f"parameters, as {short(mine[0])}, and its matrices are (inputs, outputs): rename "
            "each, and write the transpose of each matrix"
        )


def _check(known: Mapping[str, tuple[int, ...]], weights: Mapping[str, Any], name: str) -> None:
    for key, array in weights.items():
        if key not in known:
            raise ValueError(
                f"{name} has {short(key)}, which the model has not; they must be of the same "
                f"model: {nearest(key, known)}"
            )
        shape = tuple(array.shape)
        if known[key] != shape:
            turned = "write its transpose" if known[key] == shape[::-1] else "build the model so"
            raise ValueError(
                f"{name} has {short(key)} of {shape}; the model has {known[key]}, and both must be "
                f"the same: {turned}"
            )
    if lacking := [key for key in known if key not in weights]:
        raise ValueError(
            f"{name} lacks {short(lacking[0])} and {len(lacking) - 1} more of {len(known)}; every "
            "weight must be there: write the whole state of the model"
        )


def _header(path: Path, text: bytes) -> dict[str, Any]:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"its header is no JSON: {str(error)[:100]}") from error
    if not isinstance(found, dict):
        raise _damaged(path, f"its header is a {type(found).__name__}")
    entries: dict[str, Any] = found
    return {name: entry for name, entry in entries.items() if name != "__metadata__"}


def _offsets(path: Path, name: str, entry: Any) -> tuple[int, int]:
    pair: Any = entry.get("data_offsets") if isinstance(entry, dict) else None
    if not (isinstance(pair, list) and len(pair) == 2 and all(_count(x) for x in pair)):
        raise _damaged(path, f"{short(name)} has data_offsets {short(pair)}")
    return pair[0], pair[1]


def _kind(path: Path, name: str, entry: Any) -> Any:
    kind, shape = entry.get("dtype"), entry.get("shape")
    if kind not in KINDS:
        raise ValueError(
            f"{short(name)} of {path} is of {short(kind)}; known are {', '.join(KINDS)}: write it "
            "in one of these"
        )
    if not (isinstance(shape, list) and all(_count(x) for x in shape)):
        raise _damaged(path, f"{short(name)} has the shape {short(shape)}")
    return KINDS[kind]


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62


def _damaged(path: Path, why: str) -> ValueError:
    return ValueError(
        f"{path} is no safetensors file, or is damaged: {why}; write it again, with {SAVE}"
    )
