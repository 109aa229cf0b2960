"""Attention whose queries, keys and values come from few numbers per token (DeepSeek's MLA).

Of a token the model makes r numbers, and of these the keys and values of all heads; t more are
turned by its position, and are part of every head's key. Source: DeepSeek-AI, arXiv 2405.04434.
"""

from dataclasses import dataclass

from wse._numbers import is_whole, positive


@dataclass(frozen=True)
class Compressed:
    """How few numbers, and the widths of one head.

    Attributes:
        keys: r, numbers per token of which keys and values are made.
        queries: as many of the queries; 0: these are made of the features themselves.
        plain: features of a key that no position turns.
        turned: those that are turned, which all heads share.
        value: features of a value.

    Raises:
        ValueError: a number that is not positive, a rank of queries below 0, or an odd number of
            features to turn.

    >>> Compressed(512, 1536).width
    192
    """

    keys: int
    queries: int = 0
    plain: int = 128
    turned: int = 64
    value: int = 128

    def __post_init__(self) -> None:
        for name, number in vars(self).items():
            if name != "queries":
                positive(f"{name} of compressed attention", number, "correct the shape")
        if self.turned % 2:
            raise ValueError(
                f"turned of compressed attention is {self.turned}; positions turn features in "
                "pairs: take an even number"
            )
        if not is_whole(self.queries, 0):
            raise ValueError(
                f"queries of compressed attention is {self.queries!r}; it must be an integer >= 0"
            )

    @property
    def width(self) -> int:
        """Features of a query, and of a key."""
        return self.plain + self.turned

    @property
    def made(self) -> int:
        """Numbers per token that are kept of keys and values: those and the turned ones."""
        return self.keys + self.turned
