"""A stranger's model file, whatever its kind."""

from pathlib import Path

from wse import _document
from wse._files import as_path
from wse._numbers import positive
from wse.models.doors import huggingface, modelzoo
from wse.models.doors.given import ReadModel
from wse.models.shapes.foreign import check_kind


def read_model(path: Path | str, sequence: int | None = None) -> ReadModel:
    """A model from a params file of the vendor's Model Zoo, or from a Hugging Face config.json.

    Nothing in the file is executed, and nothing is fetched. Every key is understood, listed in
    `harmless`, or refused by name; a model of which a part is not counted is refused too.

    Args:
        path: the file, YAML in either form of the Model Zoo, or JSON; or a folder that holds a
            config.json.
        sequence: tokens per sample; None: what the file says.

    Returns:
        The workload, with batch, micro-batch, systems, steps, precision, sparsity, optimizer.

    Raises:
        ValueError: no such file, one that is no YAML or JSON (ONNX and others are refused by their
            name) or too large, an unknown model or key
            (with the nearest that is known), or values that contradict each other.

    >>> import tempfile
    >>> words = "name: gpt2, num_hidden_layers: 12, hidden_size: 768, num_heads: 12"
    >>> words = "model: {" + words + ", filter_size: 3072}, train_input: {batch_size: 96}"
    >>> path = Path(tempfile.mkdtemp()) / "small.yaml"
    >>> _ = path.write_text("{" + words + "}")
    >>> found = read_model(path)
    >>> found.batch, found.workload.parameters
    (96, 124439808)
    """
    if sequence is not None:
        positive("sequence", sequence, "correct it")
    path = as_path("path", path, "pass params.yaml, or config.json")
    check_kind(path)
    if path.is_dir() or path.suffix == ".json":
        name = path.name if path.is_dir() or path.stem != "config" else path.resolve().parent.name
        made = huggingface.from_config(huggingface.read_json(path), name, sequence)
    else:
        found = _document.read(path)
        if not modelzoo.is_modelzoo(found):
            raise ValueError(
                f"{path} is no params file of a known model; it must have trainer:, or model: with "
                "a name such as gpt3 or with the words of a known family: add model.name"
            )
        made = modelzoo.from_document(found, path.stem, sequence)
    if sequence is not None and not made.workload.looks_up and made.family != "seen":
        raise ValueError(
            f"sequence is {sequence}; {made.workload.name} takes more than words, or none, so that "
            "its own sizes say how many tokens there are: leave it out"
        )
    return made
