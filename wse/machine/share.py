"""The share of the dense peak that products reach, by wafer, release, width and kind of layer.

Where a model ran, its published rate gives one share (`wse.calibrate.shares`). Between the widths h
of these runs the share is a straight line in log share over log h, so continuous, and monotone as
the runs are; below the narrowest it falls as h (k = h / rows features on each row of cores, every
output k multiply-adds and a sum that is passed on), above the widest it stays.

What a curve through few runs does not know is its interval, a factor either way of

    exp(0.2 + 0.5 |ln(h / nearest width that ran)|)

set so that every run lies in it that is predicted from the other models alone (docs/validation.md).
"""

from dataclasses import dataclass
from math import exp, log
from typing import Final

from wse.machine.machine import Sourced, Status
from wse.machine.release import version

KNOWN_HALF: Final = 0.2  # assumed: ln of the factor at a width that ran
PER_WIDTH: Final = 0.5  # assumed: what ln(h / nearest) adds to it
RELEASE_HALF: Final = 0.12  # derived: half of ln 1.27, what a release brought GPT-J
UNSEEN_HALF: Final = 0.7  # assumed: what a kind of layer adds of which no run was published
OLDER_NARROW: Final = 3.0  # assumed: narrow models gained up to tenfold over releases
NEAR: Final = 1.5  # a width within this factor of one that ran is called calibrated
SMALL: Final = 0.05  # assumed: of all operations: kinds that are no more are not spoken of
MOST: Final = 0.95  # assumed: nothing reaches the peak


@dataclass(frozen=True)
class Anchor:
    """The share that one published run gives.

    Attributes:
        wafer: that it ran on.
        features: its width, a transformer's hidden size.
        value: the share of the wafer's dense half-precision peak.
        model: what ran.
    """

    wafer: str
    features: int
    value: float
    model: str


@dataclass(frozen=True)
class Shares:
    """All that is known of shares.

    Attributes:
        anchors: of each wafer, the narrowest first.
        releases: version and factor on the share of the last release here; the oldest first.
        narrow_since: the first release in which a narrow model ran.
        convolution: of convolutions of unknown loops, at any width.
        kernels: of what its layout leaves to a convolution.
    """

    anchors: tuple[Anchor, ...]
    releases: tuple[tuple[str, float], ...]
    narrow_since: str
    convolution: Sourced
    kernels: Sourced

    def of(
        self,
        wafer: str,
        release: str,
        features: int,
        kind: str = "dense",
        convolved: float | None = None,
    ) -> Sourced:
        """The share of layers of a kind and width.

        Args:
            wafer: that they run on.
            release: of the vendor's software.
            features: their width.
            kind: what they compute.
            convolved: share of convolutions among their operations, whose times add up; None: as
                the kind says.

        Raises:
            ValueError: a wafer without weight streaming, or a release that is no version.
        """
        part = float(kind == "convolution") if convolved is None else convolved
        products = self._products(wafer, release, features, kind)
        if not part:
            return products
        if part == 1:
            return self.convolution
        pairs = zip(products.ends, self.convolution.ends, strict=True)
        value, low, high = (1 / ((1 - part) / a + part / b) for a, b in pairs)
        source = f"{part:.0%} of it convolutions: {self.convolution.source}; {products.source}"
        status = products.status if part < SMALL else self.convolution.status
        return Sourced(value, "fraction", status, source, products.note, (low, high))

    def _products(self, wafer: str, release: str, features: int, kind: str) -> Sourced:
        number = version(release)
        known = [one for one in self.anchors if one.wafer == wafer]
        if not known:
            raise ValueError(
                f"wafer is {wafer}; weights are streamed to WSE-2 and WSE-3 only: "
                "pass machine=wse.CS2()"
            )
        near = min(known, key=lambda one: abs(log(features / one.features)))
        distance = abs(log(features / near.features))
        factor, half, said = self._release(number, release)
        half += KNOWN_HALF + PER_WIDTH * distance
        status: Status = "calibrated" if distance <= log(NEAR) and not said else "assumed"
        if kind == "unseen":
            status, half = "assumed", half + UNSEEN_HALF
            said = f"{said}, and no run of such a model was published"
        value = min(MOST, factor * _line(known, features))
        low, high = value * exp(-half), min(MOST, value * exp(half))
        widest = max(one.features for one in self.anchors)
        if features < widest and number < version(self.narrow_since):
            low /= OLDER_NARROW
        source = f"{near.model} at {near.features} features: wse.calibrate.shares{said}"
        note = f"a factor {exp(half):.2g} either way"
        shown = float(f"{value:.12g}")  # rounded to places, narrow layers took less with more work
        return Sourced(shown, "fraction", status, source, note, (low, high))

    def laid_out(self, left: float) -> Sourced:
        """The share of a convolution to which its layout leaves so much of the peak."""
        value, (low, high) = self.kernels.value, self.kernels.interval or (0.0, 1.0)
        source = f"its layout leaves {left:.3g}, kernels {value:g} of it: {self.kernels.source}"
        ends = low * left, min(MOST, high * left)
        return Sourced(value * left, "fraction", "assumed", source, self.kernels.note, ends)

    def _release(self, number: tuple[int, ...], release: str) -> tuple[float, float, str]:
        """A factor on the share, what the release adds to the half width, and words for both."""
        rows = [(version(name), name, factor) for name, factor in self.releases]
        before = [row for row in rows if row[0] <= number]
        _, name, factor = before[-1] if before else rows[0]
        # From the last of these releases on no run showed a gain, up to R2.5.
        if number == version(name) or before[-1:] == rows[-1:]:
            return factor, 0.0, ""
        return factor, RELEASE_HALF, f", as {name}; {release} was not calibrated"


def _line(known: list[Anchor], features: int) -> float:
    """The line through the anchors of one wafer; below them as h, above them flat."""
    first, last = known[0], known[-1]
    if features >= last.features:
        return last.value
    if features <= first.features:
        return first.value * features / first.features
    below = [one for one in known if one.features <= features][-1]
    above = next(one for one in known if one.features > features)
    part = log(features / below.features) / log(above.features / below.features)
    return exp((1 - part) * log(below.value) + part * log(above.value))
