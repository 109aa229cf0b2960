"""Samples as a model by name takes them: checked, and drawn where chance has a part."""

# Arrays of any type have none.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from typing import Any

import numpy as np

from wse.job import spans
from wse.job.anchors import matched
from wse.models.trainable.which import Named

Array = Any
MORE = ("segments", "sentence", "boxes")  # what a sample may have beside features and labels
MASKED, KEPT, OTHER = 0.15, 0.1, 0.1  # sourced: Devlin et al., BERT: shares of the tokens, of these


def fitted(
    named: Named, features: Array, labels: Array | None, more: dict[str, Array], wanted: bool
) -> tuple[Array, Array | None]:
    """Features and labels that a model takes; of a text alone, the next tokens are the labels.

    Args:
        named: the model.
        features: of all samples.
        labels: of all samples; None: there are none.
        more: what else there is.
        wanted: whether labels are needed.

    Raises:
        ValueError: sizes, words or classes that the model does not have.
    """
    if named.family == "retinanet":
        return _objects(named, features, labels, more, wanted)
    if named.family == "pair":
        return _answers(named, features, labels, wanted)
    if named.family != "transformer":
        return _pictures(named, features, labels, wanted)
    return _words(named, features, labels, more, wanted)


def _words(
    named: Named, features: Array, labels: Array | None, more: dict[str, Array], wanted: bool
) -> tuple[Array, Array | None]:
    shape: Any = named.shape
    long, masked = shape.max_sequence_length, not shape.is_causal
    if labels is None and features.ndim == 2 and features.shape[1] == long + (not masked):
        features, labels = features[:, :long], features[:, 1:] if not masked else None
    if features.ndim != 2 or features.shape[1] != long or features.dtype.kind not in "iu":
        extra = "" if labels is not None or masked else f", or {long + 1} with no labels beside"
        raise ValueError(
            f"features are {features.dtype} of {features.shape}; {named.name} takes whole numbers "
            f"of (samples, {long}){extra}: write them so, or change max_sequence_length"
        )
    _within("features", features, shape.vocab_size, "vocab_size")
    if shape.language_head and labels is not None and wanted:
        if labels.shape != features.shape:
            raise ValueError(
                f"labels are of {labels.shape}, features of {features.shape}; every token has one "
                "label, below 0 where it is not compared: write them again"
            )
        _within("labels", labels, shape.vocab_size, "vocab_size", lowest=None)
    if "segments" in more:
        _within("segments", more["segments"], shape.token_types, "token_types")
    if shape.pooled and wanted:
        name = "sentence" if shape.language_head else "labels"
        found = more.get(name) if shape.language_head else labels
        if found is None or found.shape != (len(features),):
            raise ValueError(
                f"{named.name} has an output for each sequence, and its samples have {name} "
                f"{None if found is None else found.shape}; one number for each is needed: write "
                f"{name}, or set disable_nsp: true"
            )
        _within(name, found, shape.pooled_outputs, "its outputs")
    kept = features.astype(np.int32)
    return kept, None if labels is None else labels.astype(np.int32)


def _answers(
    named: Named, features: Array, labels: Array | None, wanted: bool
) -> tuple[Array, Array | None]:
    source, target, _ = named.net
    long, short = source.max_sequence_length, target.max_sequence_length
    whole, words = text_length(named), min(source.vocab_size, target.vocab_size)
    # Texts of one length with their own hidden parts are what a prediction is asked of.
    alone = labels is None and features.shape[1:] == (whole,) and (wanted or whole != long)
    if (not alone and features.shape[1:] != (long,)) or features.dtype.kind not in "iu":
        extra = f", or {whole} with no labels beside" if whole else ""
        raise ValueError(
            f"features are {features.dtype} of {features.shape}; {named.name} takes whole numbers "
            f"of (samples, {long}){extra}: write them so, or change src_max_sequence_length"
        )
    if alone:
        count = spans.parts(whole)[1]
        what = f"the vocabulary, less its last {count}, which mark hidden parts,"
        _within("features", features, words - count, what)
        if not wanted:  # nothing is compared: what is hidden is the same in every run
            draw = np.random.default_rng(0)
            features = spans.hidden(features, long, short, words, draw)["features"]
        return features.astype(np.int32), None
    _within("features", features, source.vocab_size, "the vocabulary of the text")
    if wanted:
        if labels is None or labels.shape != (len(features), short):
            raise ValueError(
                f"labels are of {None if labels is None else labels.shape}; {named.name} compares "
                f"its answers with whole numbers of {(len(features), short)}, below 0 behind their "
                "end: write them so, or change tgt_max_sequence_length"
            )
        _within("labels", labels, target.vocab_size, "the vocabulary of answers", lowest=None)
    return features.astype(np.int32), None if labels is None else labels.astype(np.int32)


def text_length(named: Named) -> int:
    """Tokens of a text alone that a T5 takes, its parts hidden by chance; 0: it takes none."""
    source, target, _ = named.net
    return spans.longest(source.max_sequence_length, target.max_sequence_length)


def _pictures(
    named: Named, features: Array, labels: Array | None, wanted: bool
) -> tuple[Array, Array | None]:
    sides, classes, places = _sizes(named)
    _check_sides(named, features, sides)
    if labels is not None and places and labels.shape == (len(features), *places, 1):
        labels = labels[..., 0]
    if wanted and (labels is None or labels.shape != (len(features), *places)):
        raise ValueError(
            f"labels are of {None if labels is None else labels.shape}; each of the "
            f"{len(features)} images has {'a class at every place' if places else 'one class'}: "
            f"write whole numbers of {(len(features), *places)}"
        )
    if wanted:
        _within("labels", labels, classes, "the number of classes")
    return features.astype(np.float32), labels if labels is None else labels.astype(np.int32)


def _objects(
    named: Named, features: Array, labels: Array | None, more: dict[str, Array], wanted: bool
) -> tuple[Array, Array | None]:
    size, boxes = named.net["size"], more.get("boxes")
    _check_sides(named, features, (size, size, 3))
    if not wanted:
        return features.astype(np.float32), labels
    if labels is None or labels.ndim != 2 or boxes is None or boxes.shape != (*labels.shape, 4):
        shapes = [None if x is None else x.shape for x in (labels, boxes)]
        raise ValueError(
            f"labels are of {shapes[0]}, boxes of {shapes[1]}; {named.name} takes a class, or -1, "
            "for each object, (samples, objects), and top, left, bottom, right of each, (samples, "
            "objects, 4): write both"
        )
    _within("labels", labels, named.net["classes"], "the number of classes", lowest=None)
    there = boxes[labels >= 0]
    bad = ~((there[:, :2] < there[:, 2:]).all(1) & ((there >= 0) & (there <= size)).all(1))
    if not bad.any() and there.size and there.max() <= 1:
        raise ValueError(
            f"boxes are within 0 and {there.max():g}, as parts of an image are; they must be in "
            f"pixels: multiply them by {size}"
        )
    if bad.any():
        raise ValueError(
            f"a box is {there[bad][0].tolist()}; top, left, bottom and right must lie within 0 and "
            f"{size} pixels, top above bottom and left before right: correct {int(bad.sum())} of "
            f"{len(there)} boxes"
        )
    return features.astype(np.float32), labels.astype(np.int32)


def _check_sides(named: Named, features: Array, sides: tuple[int, ...]) -> None:
    if features.shape[1:] != sides:
        raise ValueError(
            f"features are of {features.shape}; {named.name} takes images of (samples, "
            f"{', '.join(map(str, sides))}), channels last: write them so, or change the model's "
            "size and channels"
        )


def _sizes(named: Named) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
    """Sides and channels of an image, classes, and the sides of its labels."""
    if named.family == "unet":
        net = named.net
        return (*net.size, net.input_channels), max(2, net.outputs), tuple(net.size)
    if named.family == "resnet50":
        return (named.net["size"],) * 2 + (3,), named.net["classes"], ()
    options = named.net[1]
    return (*options["image_size"], options["channels"]), options["classes"], ()


def _within(name: str, found: Array, count: int, what: str, lowest: int | None = 0) -> None:
    low, high = int(found.min()), int(found.max())
    if high >= count or (lowest is not None and low < lowest) or found.dtype.kind not in "iu":
        raise ValueError(
            f"{name} are {found.dtype} from {low} to {high}; {what} is {count}, so they must be "
            f"whole numbers from 0 to {count - 1}: change one of the two"
        )


def drawn(batch: dict[str, Array], named: Named, draw: np.random.Generator) -> dict[str, Array]:
    """A batch as it is compared: with hidden words, keys of dropout, labels of anchors.

    Args:
        batch: of samples.
        named: the model.
        draw: chance, of the step's number alone.
    """
    shape = named.shape
    if named.family == "retinanet":
        return matched(batch, named.net["size"])
    if shape is None:
        return batch
    if named.family == "pair" and "labels" not in batch:
        source, target, _ = named.net
        words = min(source.vocab_size, target.vocab_size)
        sizes = source.max_sequence_length, target.max_sequence_length
        batch = {**batch, **spans.hidden(batch["features"], *sizes, words, draw)}
    masked = named.family == "transformer" and not shape.is_causal and shape.language_head
    if masked and "labels" not in batch:
        batch = {**batch, **_masked(batch["features"], shape.vocab_size, draw)}
    if shape.manner.drops:
        count = len(batch["features"])
        batch = {**batch, "keys": draw.integers(2**32, size=(count, 2), dtype=np.uint32)}
    return batch


def _masked(tokens: Array, words: int, draw: np.random.Generator) -> dict[str, Array]:
    """Words to be found again: most are hidden behind the last word of all, the mask.

    Of each sample as many, so that no loss is of nothing.
    """
    count, long = tokens.shape
    many = max(1, round(MASKED * long))
    places = np.argsort(draw.random(tokens.shape), axis=1)[:, :many]
    rows = np.arange(count)[:, None]
    labels = np.full(tokens.shape, -1, np.int32)
    labels[rows, places] = tokens[rows, places]
    chance, other = draw.random(places.shape), draw.integers(words - 1, size=places.shape)
    hidden = np.where(chance < OTHER, other, words - 1)
    hidden = np.where(chance >= 1 - KEPT, tokens[rows, places], hidden)
    features = tokens.copy()
    features[rows, places] = hidden
    return {"features": features, "labels": labels}
