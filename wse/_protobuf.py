"""Protocol buffers as they lie in a file: fields with numbers, one after another.

Source: the encoding page of the format's documentation. Only what traces need is written.
"""

import struct
from collections.abc import Iterable

VARINT, DOUBLE, BYTES = 0, 1, 2  # kinds of fields on the wire


def varint(value: int) -> bytes:
    r"""A whole number in groups of seven bits, the lowest first; a negative one as 64 bits.

    >>> varint(300), len(varint(-1))
    (b'\xac\x02', 10)
    """
    rest = value & (2**64 - 1)
    groups = bytearray()
    while rest > 0x7F:
        groups.append(rest & 0x7F | 0x80)
        rest >>= 7
    groups.append(rest)
    return bytes(groups)


def field(number: int, value: int | float | str | bytes) -> bytes:
    r"""One field: a whole number, a double, a text, or bytes that are a message themselves.

    >>> field(1, 150), field(2, "hi")
    (b'\x08\x96\x01', b'\x12\x02hi')
    """
    if isinstance(value, int):
        return varint(number << 3 | VARINT) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | DOUBLE) + struct.pack("<d", value)
    inside = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | BYTES) + delimited(inside)


def packed(number: int, values: Iterable[int]) -> bytes:
    """A repeated field of whole numbers; nothing where there are none."""
    inside = b"".join(map(varint, values))
    return field(number, inside) if inside else b""


def delimited(message: bytes) -> bytes:
    """A message with its length before it, as several follow one another in a file."""
    return varint(len(message)) + message
