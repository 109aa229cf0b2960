"""Files of other kinds in place of a model: refused by their name, before they are opened."""

from pathlib import Path

_MODULE = "pass the module that it was made from, as model.py:Net with --example 8x3x224x224"
_PICKLE = f"a pickle, which may run anything; {_MODULE}, and weights as .safetensors"
KINDS: dict[str, str] = {
    ".onnx": f"ONNX, which has no lines of yours and is not read; {_MODULE}",
    **dict.fromkeys(
        (".mlir", ".stablehlo", ".bc"),
        "StableHLO, of which layers and lines are gone and which is not read; pass the function "
        "that it was lowered from, as package.module:function",
    ),
    **dict.fromkeys((".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle"), _PICKLE),
    ".pt2": f"an exported program, which holds pickles and is not read; {_MODULE}",
    ".safetensors": "weights without a model; pass the config.json beside it, or the module with "
    "wse.from_torch(module, example, weights=...)",
    ".gguf": "weights without the operations of a model; pass the config.json that it came from",
    **dict.fromkeys(
        (".h5", ".keras", ".pb", ".tflite"),
        "a model of TensorFlow, which is not read; pass a module of PyTorch or Flax",
    ),
    ".py": "a program without a name in it; say which, as model.py:Net",
}


def check_kind(path: Path | str) -> None:
    """Refuse a file that is no model that can be read.

    Raises:
        ValueError: an ending of another kind, with the remedy.

    >>> check_kind("net.yaml")
    """
    if what := _kind(path):
        raise ValueError(f"model is {str(path)!r}, which is {what}")


def check_params(path: Path | str) -> None:
    """Refuse a file that is no params file of a run, by its ending.

    Raises:
        ValueError: a file of another kind, with the remedy.

    >>> check_params("params.yaml")
    """
    if what := _kind(path).partition(";")[0]:
        raise ValueError(
            f"params is {str(path)!r}, which is {what}; a run is told by a file in YAML: write "
            "one, and if the model is your own pass --model package.module:Class, a module of Flax"
        )


def _kind(path: Path | str) -> str:
    return KINDS.get(Path(path).suffix.lower(), "")
