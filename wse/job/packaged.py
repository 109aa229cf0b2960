"""Samples that installed packages bring: `data_dir: package:NAME`. Nothing is fetched.

| name | of | what |
|---|---|---|
| python-topics | Python, `pydoc_data.topics` | the language reference, byte by byte |
| digits-32 | the same | enlarged four times, thrice beside one another as colours: 32 x 32 x 3 |
| ink | the same | enlarged twice, and which places of the 16 x 16 are written on |
| scenes | the same | three in each of 256 images of 128 x 128 x 3, 32 or 64 high, and where |
| digits | scikit-learn, `load_digits` | 1797 written digits of 8 x 8, and which they are |
| genes | pyhmmer (MIT), `tests/data/seqs` | 100 genes of GenBank's CP040672.1, in codons |
| made-genes | nobody | letters drawn evenly by chance, in codons: no genome |
"""

# scikit-learn annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false

from collections.abc import Callable
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import numpy as np

from wse._document import nearest, short

Arrays = dict[str, Any]
PREFIX = "package:"
FASTA = (".fasta", ".fa", ".fna")
GENES = "tests/data/seqs/CP040672.1.genes_100.fna"  # of pyhmmer: a prokaryote's first 100 genes
MADE = 90_000  # letters of made-genes; assumed: as many as the genes have
SCENES = 256  # assumed: 50 MB
INK = 0.5  # of the darkest: a place is written on


def packaged(name: str, tokens: int = 128, ahead: int = 1) -> Arrays:
    """The arrays of a packaged set: `features`, and `labels` but of a text.

    Args:
        name: of it, without what stands before.
        tokens: of a sample of text.
        ahead: tokens behind these, which are its labels.

    Raises:
        ValueError: another name, or a package that is not installed.

    >>> packaged("digits")["features"].shape
    (1797, 8, 8, 1)
    >>> packaged("python-topics", 64)["features"].shape[1]
    65
    """
    if name not in SETS:
        raise ValueError(f"data_dir is {short(PREFIX + name)}; {nearest(name, SETS)}")
    return SETS[name](tokens, ahead)


def _topics(tokens: int, ahead: int) -> Arrays:
    from pydoc_data.topics import topics

    text = "\n\n".join(topics[key] for key in sorted(topics))
    read = np.frombuffer(text.encode(), np.uint8).astype(np.int32)
    return windows(read, tokens, ahead)


def windows(read: Any, tokens: int, ahead: int = 1) -> Arrays:
    """Parts of a text, one after another, each with so many tokens of the next."""
    count = (len(read) - ahead) // tokens
    return {"features": read[np.arange(count)[:, None] * tokens + np.arange(tokens + ahead)]}


def _genes(tokens: int, ahead: int) -> Arrays:
    try:
        brought = resources.files("pyhmmer")
    except ModuleNotFoundError:
        raise ValueError(
            f"data_dir is '{PREFIX}genes', which the package pyhmmer brings, and that is not "
            f"installed: pip install pyhmmer, write {PREFIX}made-genes for letters by chance, or "
            "name a .fasta file"
        ) from None
    return codons(brought / GENES, tokens, ahead)


def _made(tokens: int, ahead: int) -> Arrays:
    letters = np.random.default_rng(0).choice([*"ACGT"], MADE)
    return windows(_codons("".join(letters)), tokens, ahead)


def codons(path: Traversable, tokens: int, ahead: int = 1) -> Arrays:
    """Parts of the sequences of a FASTA file in codons, as GenSLM reads genomes.

    A codon is 5 + 16 a + 4 b + c by its letters, A, C, G, T as 0 to 3; one with other letters is 0;
    1 to 4 are left for a user's own marks. No part crosses from one record to the next, and what
    is left of a record behind its last whole part stays out.

    Args:
        path: the file.
        tokens: of a sample.
        ahead: tokens behind these, which are its labels.

    Raises:
        ValueError: no record that is long enough, or text before the first.
    """
    # A name may have a > of its own: of a gene that goes on beyond its contig.
    head, *records = ("\n" + path.read_text(encoding="ascii")).split("\n>")
    if head.strip() or not records:
        raise ValueError(
            f"it begins with {short(head.strip()[:20])}; a FASTA file begins with > and a name"
        )
    parts = [
        windows(_codons("".join(record.splitlines()[1:])), tokens, ahead)["features"]
        for record in records
    ]
    if not any(len(part) for part in parts):
        raise ValueError(
            f"none of its {len(records)} records has {tokens + ahead} codons; one sample needs as "
            "many: shorten max_sequence_length"
        )
    return {"features": np.concatenate(parts)}


def _codons(letters: str) -> Any:
    table = np.full(256, -100)
    table[[ord(x) for x in "ACGT"]] = range(4)
    table[[ord(x) for x in "acgt"]] = range(4)
    table[[ord("U"), ord("u")]] = 3
    whole = len(letters) // 3 * 3
    read = table[np.frombuffer(letters[:whole].encode("ascii"), np.uint8)].reshape(-1, 3)
    return np.maximum(0, 5 + read @ [16, 4, 1]).astype(np.int32)


def _digits(*_: int) -> Arrays:
    from sklearn.datasets import load_digits

    found: Any = load_digits()
    images = (found.images / 16).astype(np.float32)[..., None]
    return {"features": images, "labels": found.target.astype(np.int32)}


def _large(*_: int) -> Arrays:
    found = _digits()
    wide = found["features"].repeat(4, axis=1).repeat(4, axis=2)
    return {"features": wide.repeat(3, axis=3), "labels": found["labels"]}


def _ink(*_: int) -> Arrays:
    wide = _digits()["features"].repeat(2, axis=1).repeat(2, axis=2)
    return {"features": wide, "labels": (wide[..., 0] > INK).astype(np.int32)}


def _scenes(*_: int) -> Arrays:
    """Digits in three of the quarters of an image; `boxes` are top, left, bottom, right."""
    known, draw = _digits(), np.random.default_rng(0)
    images = np.zeros((SCENES, 128, 128, 1), np.float32)
    which = np.arange(3 * SCENES).reshape(SCENES, 3)
    boxes = np.zeros((SCENES, 3, 4), np.float32)
    for i, row in enumerate(which):
        for j, (digit, quarter) in enumerate(zip(row, draw.permutation(4), strict=False)):
            times = draw.choice([4, 8])
            high = 8 * times
            top, left = 64 * np.array(divmod(quarter, 2)) + draw.integers(65 - high, size=2)
            found = known["features"][digit].repeat(times, axis=0).repeat(times, axis=1)
            images[i, top : top + high, left : left + high] = found
            boxes[i, j] = top, left, top + high, left + high
    return {"features": images.repeat(3, axis=3), "labels": known["labels"][which], "boxes": boxes}


SETS: dict[str, Callable[..., Arrays]] = {
    "python-topics": _topics,
    "digits": _digits,
    "digits-32": _large,
    "ink": _ink,
    "scenes": _scenes,
    "genes": _genes,
    "made-genes": _made,
}
