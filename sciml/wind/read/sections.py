"""The sections of a GRIB file: each field is cut out as a message of its own.

ecCodes reads messages of several fields, as of NCEP, by a switch for all threads, and frees memory
twice where their sections are damaged. So sections are walked here (WMO Manual on Codes, FM 92,
edition 2), and ecCodes is given whole messages of one field only.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

MAGIC, END = b"GRIB", b"7777"
START = 16  # bytes of section 0 in edition 2
LOCAL, GRID, PRODUCT, PACKING, BITMAP, VALUES = range(2, 8)
# What may follow a section; several fields are in one message where a section repeats.
NEXT = {
    1: (LOCAL, GRID),
    LOCAL: (GRID,),
    GRID: (PRODUCT,),
    PRODUCT: (PACKING,),
    PACKING: (BITMAP,),
    BITMAP: (VALUES,),
    VALUES: (LOCAL, GRID, PRODUCT),
}
LARGE = 0x800000  # in a length of edition 1
PRODUCT_1, GRID_1, BITMAP_1, VALUES_1 = range(1, 5)
LEAST_1 = {PRODUCT_1: 28, GRID_1: 6, BITMAP_1: 6, VALUES_1: 11}
NO_BITMAP, SAME_BITMAP = 255, 254


@dataclass(frozen=True)
class Field:
    """Where one field lies: its message, which field of that, and its sections."""

    offset: int
    length: int
    part: int = 0
    sections: dict[int, tuple[int, int]] = field(default_factory=dict)  # begin and length
    edition: int = 2


def fields(path: Path, stream: BinaryIO, begin: int = 0) -> Iterator[Field]:
    """Yield the fields of an open file from a byte on.

    Raises:
        ValueError: if a message is cut short or its sections contradict one another.
    """
    size, offset = path.stat().st_size, found(stream, begin)
    while offset is not None:
        head = read(stream, offset, START)
        edition = head[7] if len(head) == START else None
        if edition == 1:
            one = of_edition_1(path, stream, offset, int.from_bytes(head[4:7]))
            length = one.length
            within(path, offset, length, size)
            yield one
        elif edition == 2:
            length = int.from_bytes(head[8:])
            within(path, offset, length, size)
            yield from of_edition_2(path, stream, offset, length)
        else:
            raise ValueError(
                f"{path} ends inside the message at byte {offset} of {size}; fetch it again"
                if edition is None
                else f"{path} cannot be read: the message at byte {offset} is of edition {edition} "
                "of GRIB; 1 and 2 are read"
            )
        offset = found(stream, offset + length)


def within(path: Path, offset: int, length: int, size: int) -> None:
    """Refuse a message that ends behind its file."""
    if offset + length > size:
        raise ValueError(
            f"{path} ends inside the message at byte {offset}: it says to end at "
            f"{offset + length}, the file has {size} bytes; fetch it again"
        )


def found(stream: BinaryIO, begin: int) -> int | None:
    """Return where the next message begins, from a byte on; others' lines may lie between."""
    stream.seek(begin)
    kept = b""
    while block := stream.read(2**16):
        at = (kept + block).find(MAGIC)
        if at >= 0:
            return begin - len(kept) + at
        begin += len(block)
        kept = (kept + block)[-len(MAGIC) + 1 :]
    return None


def read(stream: BinaryIO, begin: int, length: int) -> bytes:
    """Return bytes of an open file."""
    stream.seek(begin)
    return stream.read(length)


def of_edition_1(path: Path, stream: BinaryIO, offset: int, length: int) -> Field:
    """Return the field of a message of edition 1; a large one counts its length in 120 bytes."""
    large, length = length & LARGE, length & ~LARGE
    head = read(stream, offset + 8, 8)
    at = offset + 8 + int.from_bytes(head[:3])
    places = {PRODUCT_1: (offset + 8, at - offset - 8)}
    for number, flag in ((GRID_1, 0x80), (BITMAP_1, 0x40)):
        if len(head) == 8 and head[7] & flag:
            size = int.from_bytes(read(stream, at, 3))
            places[number], at = (at, size), at + size
    packed = int.from_bytes(read(stream, at, 3))
    if large and packed < 120:
        length = 120 * length - packed + len(END)
    elif large:
        length |= LARGE
    places[VALUES_1] = (at, offset + length - len(END) - at)
    small = [number for number, (_, size) in places.items() if size < LEAST_1[number]]
    if small or read(stream, offset + length - len(END), len(END)) not in (END, b""):
        said = f"section {small[0]} is too short" if small else "it does not end in 7777"
        raise damaged(path, offset, said)
    return Field(offset, length, 0, places, 1)


def damaged(path: Path, offset: int, said: str) -> ValueError:
    """Return what refuses a message."""
    return ValueError(f"{path} is damaged in the message at byte {offset}: {said}; fetch it again")


def of_edition_2(path: Path, stream: BinaryIO, offset: int, length: int) -> Iterator[Field]:
    """Yield the fields of a message of edition 2."""
    sections: dict[int, tuple[int, int]] = {}
    at, end, last, part = offset + START, offset + length - len(END), 0, 0
    bitmap: tuple[int, int] | None = None
    if length < START + len(END) or read(stream, end, len(END)) != END:
        raise damaged(path, offset, f"its {length} bytes do not end in 7777")
    while at < end:
        head = read(stream, at, 6)
        size, number = int.from_bytes(head[:4]), head[4]
        if number not in NEXT.get(last, (1,)):
            raise damaged(path, offset, f"section {number} at byte {at} follows section {last}")
        if size < 5 or at + size > end:
            raise damaged(
                path, offset, f"section {number} at byte {at} says to be {size} bytes long"
            )
        sections[number] = (at, size)
        if number == BITMAP and size > 5 and head[5] == SAME_BITMAP:
            if bitmap is None:
                raise damaged(
                    path,
                    offset,
                    f"section 6 at byte {at} names an earlier bitmap, and there is none",
                )
            sections[number] = bitmap
        elif number == BITMAP:
            bitmap = (at, size)
        elif number == VALUES:
            yield Field(offset, length, part, dict(sections))
            part += 1
        at, last = at + size, number
    if last != VALUES:
        raise damaged(path, offset, f"it ends after section {last}, without values")


def handle_of(stream: BinaryIO, one: Field, *, headers_only: bool) -> Any:
    """Return ecCodes' handle of one field; headers alone have neither bitmap nor values."""
    import eccodes

    make = message_1 if one.edition == 1 else message_2
    return eccodes.codes_new_from_message(make(stream, one, headers_only=headers_only))


def message_1(stream: BinaryIO, one: Field, *, headers_only: bool) -> bytes:
    """Return the message of a field of edition 1, or one with the first values only."""
    if not headers_only:
        return read(stream, one.offset, one.length)
    parts = {number: read(stream, *place) for number, place in one.sections.items() if number < 3}
    product = bytearray(parts.pop(PRODUCT_1))
    product[7] &= ~0x40  # no bitmap
    at, size = one.sections[VALUES_1]
    some = min(size, 64)
    packed = some.to_bytes(3) + read(stream, at + 3, some - 3)
    body = b"".join([product, *parts.values(), packed, END])
    return MAGIC + (8 + len(body)).to_bytes(3) + b"\x01" + body


def message_2(stream: BinaryIO, one: Field, *, headers_only: bool) -> bytes:
    """Return a message of one field of edition 2."""
    short = {BITMAP: bytes([0, 0, 0, 6, BITMAP, NO_BITMAP]), VALUES: bytes([0, 0, 0, 5, VALUES])}
    parts = [
        short[number] if headers_only and number in short else read(stream, *place)
        for number, place in sorted(one.sections.items())
    ]
    body = b"".join([*parts, END])
    return read(stream, one.offset, 8) + (START + len(body)).to_bytes(8) + body
