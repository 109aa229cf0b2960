"""Coarse field, estimate, truth, error and spectrum of one sample, at a click."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float
from matplotlib.figure import Figure

from sciml import diagnose
from sciml._html import captioned
from sciml.diagnose.wind.alike import warn_of_uneven
from sciml.figure.style import CPU, MUTED, WAFER, styled
from sciml.figure.wind.fields import ERROR_COLOURS, ROOM, SPEED_COLOURS, draw_values, moment
from sciml.wind.prepare.coarsen import block_mean
from wse.show import controls

Fields = Float[np.ndarray, "sample y x"]

SIZE_INCHES = (9.6, 5.4)
# Fixed places (left, bottom, width, height): a layout that is computed takes longer than all else.
TOP, BOTTOM, HEIGHT, WIDTH, STEP = 0.55, 0.09, 0.35, 0.24, 0.28
BARS = {"speed": (0.90, TOP, 0.014, HEIGHT), "error": (0.32, BOTTOM, 0.014, HEIGHT)}
SPECTRUM = (0.48, BOTTOM, 0.49, HEIGHT)
SHOWN = 1e-6  # of the largest energy; what is below is rounding


@dataclass(frozen=True)
class FieldViewer:
    """True fields, estimates of them, and what both were made from.

    Attributes:
        truth: (sample, y, x).
        estimates: of the same shape, by name.
        coarse: block means of the truth.
        names: of the samples, as their times.
        spacing_m: between points.
        units: of the fields.
        largest: error at which the colours of an estimate's error end, by name.

    >>> from sciml import figure, wind
    >>> truth = wind.gaussian(seed=0, snapshots=2, n=16).x_wind
    >>> shown = figure.view(truth, {"flat": 0 * truth}, 4)
    >>> shown.coarse.shape, shown.names
    ((2, 4, 4), ('sample 0', 'sample 1'))
    """

    truth: Fields
    estimates: dict[str, Fields]
    coarse: Float[np.ndarray, "sample y_lo x_lo"]
    names: tuple[str, ...]
    spacing_m: float
    units: str
    largest: dict[str, float]

    def figure(self, sample: int = 0, scheme: str | None = None) -> Any:
        """Draw one sample and one estimate: fields on one colour scale, error, spectra.

        Raises:
            ValueError: there is no such sample or estimate.
        """
        scheme = self.chosen(sample, scheme)
        truth, estimate = self.truth[sample], self.estimates[scheme][sample]
        with styled():
            figure = Figure(figsize=SIZE_INCHES)
            speeds = {"cmap": SPEED_COLOURS, "vmin": 0.0, "vmax": np.ceil(truth.max())}
            shown = {"coarse": self.coarse[sample], scheme: estimate, "truth": truth}
            images = [
                self.draw(
                    figure.add_axes((0.06 + STEP * i, TOP, WIDTH, HEIGHT)), title, field, speeds
                )
                for i, (title, field) in enumerate(shown.items())
            ]
            bar = figure.colorbar(images[-1], cax=figure.add_axes(BARS["speed"]), label=self.units)
            bar.set_ticks([0.0, speeds["vmax"] / 2, speeds["vmax"]])
            end = self.largest[scheme]
            errors = {"cmap": ERROR_COLOURS, "vmin": -end, "vmax": end}
            ax = figure.add_axes((0.06, BOTTOM, WIDTH, HEIGHT))
            image = self.draw(ax, "estimate − truth", estimate - truth, errors)
            # Ticks are most of what a redraw takes: one panel has them, for the same ground in all.
            height, width = self.size_km
            ax.set(xlabel="x (km)", ylabel="y (km)", xticks=[0, width], yticks=[0, height])
            bar = figure.colorbar(image, cax=figure.add_axes(BARS["error"]), extend="both")
            bar.set_ticks([-end, 0.0, end], labels=[f"{x:.2g}" for x in (-end, 0.0, end)])
            self.spectra(figure.add_axes(SPECTRUM), estimate, truth)
            figure.text(0.98, 0.955, self.names[sample], ha="right")
        return figure

    def draw(self, ax: Any, title: str, field: np.ndarray, look: dict[str, Any]) -> Any:
        """Draw one field on kilometre axes; the coarse and the fine ones cover the same ground."""
        ax.set_title(title, loc="left")
        ax.set(xticks=[], yticks=[])
        return draw_values(field, ax, self.size_km, look)

    @property
    def size_km(self) -> tuple[float, float]:
        """How far the fields reach along y and x."""
        height, width = (n * self.spacing_m / 1000 for n in self.truth.shape[1:])
        return height, width

    def spectra(self, ax: Any, estimate: np.ndarray, truth: np.ndarray) -> None:
        """Draw the energy of both by wavelength, from long waves to short ones."""
        for field, colour, label in ((truth, MUTED, "truth"), (estimate, WAFER, "estimate")):
            found = diagnose.cosine_spectrum(field, spacing_m=self.spacing_m)
            ax.loglog(found.wavelength_m / 1000, found.energy, color=colour, label=label)
        most = float(found.energy.max())
        cell_km = self.truth.shape[1] / self.coarse.shape[1] * self.spacing_m / 1000
        ax.axvline(2 * cell_km, color=CPU, lw=0.8, ls=":", label="two coarse cells")
        ax.set(xlabel="wavelength (km)", ylim=(SHOWN * most, 3 * most))
        ax.minorticks_off()
        ax.invert_xaxis()
        ax.set_title(f"energy by wavelength, ({self.units})²", loc="left")
        ax.legend(loc="lower left")

    def table(self, sample: int = 0, scheme: str | None = None) -> str:
        """The scores of every estimate on one sample, as HTML."""
        self.chosen(sample, scheme)
        truth = self.truth[sample]
        scores = pd.DataFrame(
            {
                "estimate": name,
                f"RMSE ({self.units})": diagnose.rmse(estimate[sample], truth),
                f"bias ({self.units})": diagnose.bias(estimate[sample], truth),
                "variance, of the truth's": float(np.var(estimate[sample]) / np.var(truth)),
            }
            for name, estimate in self.estimates.items()
        )
        return captioned(self.names[sample], scores)

    def png(self, sample: int = 0, scheme: str | None = None) -> bytes:
        """The figure as a picture."""
        return controls.png(self.figure(sample, scheme))

    def widget(self) -> Any:
        """A slider over samples and a button for each estimate, above the figure and the table.

        Raises:
            ImportError: ipywidgets is not installed.
        """
        import ipywidgets as widgets

        parts = {
            "sample": widgets.SelectionSlider(
                options=[(name, i) for i, name in enumerate(self.names)],
                description="sample",
                layout=widgets.Layout(width="32em"),
            ),
            "scheme": widgets.ToggleButtons(options=list(self.estimates), value=self.chosen()),
        }
        return controls.panel(
            parts, lambda sample, scheme: (self.png(sample, scheme), self.table(sample, scheme))
        )

    def chosen(self, sample: int = 0, scheme: str | None = None) -> str:
        """Return the estimate that is meant, the last one where none is named.

        Raises:
            ValueError: there is no such sample or estimate.
        """
        if not 0 <= sample < len(self.names):
            raise ValueError(f"sample is {sample}; it must be from 0 to {len(self.names) - 1}")
        scheme = list(self.estimates)[-1] if scheme is None else scheme
        if scheme not in self.estimates:
            raise ValueError(f"scheme is {scheme!r}; it must be one of {', '.join(self.estimates)}")
        return scheme

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Give widgets to a live notebook, and the figure to whatever cannot show them."""
        del include, exclude
        count = f"{len(self.names)} samples, {', '.join(self.estimates)}"
        return controls.bundle(self.widget, self.png(), f"FieldViewer({count})")


def view(
    truth: xr.DataArray | Fields,
    estimates: Mapping[str, Any],
    factor: int,
    *,
    spacing_m: float | None = None,
) -> FieldViewer:
    """Look at fields and their estimates one after the other, with errors and spectra.

    In a notebook the result shows itself: a slider over samples, a button for each estimate.
    Where there are no widgets the figure of the first sample stands still.

    Args:
        truth: fine fields (sample, y, x), as `wind.open(file).wind_speed`.
        estimates: of the same shape, by name, as they go into `diagnose.field_scores`.
        factor: fine points to the side of a coarse cell.
        spacing_m: between points; left out, it is read off the coordinate x of `truth` in metres.

    Raises:
        ValueError: shapes differ, there is no estimate, or the spacing is not known.

    >>> from sciml import figure, wind
    >>> truth = wind.gaussian(seed=0, snapshots=2, n=16).x_wind
    >>> shown = figure.view(truth, {"flat": 0 * truth}, 4)
    >>> shown.spacing_m
    3000.0
    """
    labels = truth if isinstance(truth, xr.DataArray) else xr.DataArray(truth)
    fields = np.asarray(truth, np.float32)
    if not estimates:
        raise ValueError("there is no estimate; pass estimates={'bicubic': fields}")
    made = {str(name): np.asarray(field, np.float32) for name, field in estimates.items()}
    for name, field in made.items():
        if field.shape != fields.shape:
            raise ValueError(
                f"estimate {name!r} has shape {field.shape}; the truth has {fields.shape}: "
                "both must be (sample, y, x)"
            )
    whens = labels["time"].values if "time" in labels.coords else ()
    names = [moment(when) for when in whens] or [f"sample {i}" for i in range(len(fields))]
    return FieldViewer(
        fields,
        made,
        np.asarray(block_mean(fields, factor)),
        tuple(names),
        spacing_of(labels) if spacing_m is None else float(spacing_m),
        str(labels.attrs.get("units", "m s-1")),
        # few points lie beyond, and it is not zero
        {n: float(np.quantile(abs(f - fields), ROOM)) or 1.0 for n, f in made.items()},
    )


def spacing_of(truth: xr.DataArray) -> float:
    """Return the distance of points along x, in metres."""
    if "x" not in truth.coords or truth["x"].attrs.get("units", "m") != "m":
        raise ValueError(
            f"spacing_m is not given and truth, with {', '.join(map(str, truth.coords))}, has no "
            "coordinate x in metres; "
            "pass spacing_m=fields.attrs['spacing_m']"
        )
    warn_of_uneven(truth)
    return float(np.abs(np.median(np.diff(truth["x"]))))
