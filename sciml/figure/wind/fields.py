"""Coarse field, refined field, truth and error, side by side: Figure 4."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from sciml.diagnose.wind.spectra import cosine_spectrum
from sciml.figure.style import MUTED, NARROW, WIDE, checked
from sciml.figure.wind.coast import draw_coast

SPEED_COLOURS = "viridis"
ERROR_COLOURS = "RdBu_r"
BESIDE = ("conservative bicubic",)  # what an estimate is shown beside
COLUMNS = 5 + len(BESIDE)  # and one more for a draw
SPECTRA = ("black", MUTED, WIDE, NARROW)  # truth, baseline, estimate, draw
ROOM = 0.995  # the quantile of |error| at which its colour scale ends


def draw_fields(dataset: xr.Dataset, axes: np.ndarray, scheme: str = "CNN") -> np.ndarray:
    """Draw a row for each sample: coarse, interpolated, refined, a draw, truth, error, spectra.

    All speeds share one colour scale; the error has its own, symmetric about zero. Every estimate
    carries its root mean square error over the panel. Coast lines are drawn where the data set has
    `land`, or `latitude` and `longitude` and the extra `coast` is installed. Spectra are of the
    row's own fields: what is below the truth's at short waves is too smooth.

    Args:
        dataset: as `sciml.studies.figure4` returns it.
        axes: shape (samples, 7), or (samples, 6) where the data set has no `draw`, all of one
            figure, which gets a title, two colour bars, and the height that the fields need.
        scheme: which estimate to judge.

    Raises:
        ValueError: the axes do not fit, or the scheme is not in the dataset.

    >>> from matplotlib.figure import Figure
    >>> from sciml import figure, studies
    >>> axes = Figure(figsize=(14, 5)).subplots(2, 7)  # doctest: +SKIP
    >>> found = studies.figure4(out="results")  # doctest: +SKIP
    >>> axes = figure.draw_fields(found, axes)  # doctest: +SKIP
    """
    drawn = [("one draw", dataset.draw)] if "draw" in dataset else []
    axes = checked(axes, (dataset.sizes["sample"], COLUMNS + len(drawn)))
    if scheme not in (known := list(dataset.scheme.values)):
        raise ValueError(f"scheme is {scheme!r}; it must be one of {', '.join(known)}")
    shown = dataset.estimate.sel(scheme=[*BESIDE, scheme])
    error = shown.sel(scheme=scheme) - dataset.truth
    fastest = float(max(dataset.truth.max(), shown.max()))
    largest = float(np.abs(error).quantile(ROOM))
    speeds: Any = {"cmap": SPEED_COLOURS, "vmin": 0.0, "vmax": np.ceil(fastest)}
    errors: Any = {"cmap": ERROR_COLOURS, "vmin": -largest, "vmax": largest}
    columns = [
        (f"coarse input, {spacing_km(dataset, 'x_lo'):g} km", dataset.coarse, speeds),
        *((name, shown.sel(scheme=name), speeds) for name in shown.scheme.values),
        *((name, field, speeds) for name, field in drawn),
        (f"truth, {spacing_km(dataset, 'x'):g} km", dataset.truth, speeds),
        (f"{scheme} − truth", error, errors),
    ]
    images: list[Any] = []
    for row, line in enumerate(axes):
        images = [
            draw_field(field.isel(sample=row), ax, look)
            for ax, (_, field, look) in zip(line[:-1], columns, strict=True)
        ]
        draw_spectra(dataset.isel(sample=row), line[-1], scheme)
        off = np.sqrt(np.square(shown - dataset.truth).isel(sample=row).mean(("y", "x")))
        for ax, rmse in zip(line[1:], off.values, strict=False):
            note(ax, f"RMSE {rmse:.2f} m/s")
    draw_coast(dataset.truth.isel(sample=0), axes[:, 1:-1].flat, dataset.get("land"))
    decorate(dataset, axes, [*(title for title, _, _ in columns), "spectra"])
    add_bars(axes[:, :-1], images[0], images[-1])
    figure = axes.flat[0].figure
    figure.suptitle(headline(dataset))
    panel_inches = 0.92 * (figure.get_figwidth() - 1) / axes.shape[1]
    height, width = dataset.truth.shape[1:]
    figure.set_figheight(len(axes) * panel_inches * height / width + 2)
    return axes


def add_bars(axes: np.ndarray, speed: Any, error: Any) -> None:
    """Add one colour bar below the speeds and one below the errors."""
    figure = axes.flat[0].figure
    bar: Any = {"orientation": "horizontal", "aspect": 40, "shrink": 0.8, "pad": 0.01}
    figure.colorbar(speed, ax=list(axes[:, :-1].flat), label="wind speed (m/s)", **bar)
    bar["aspect"] = 10
    figure.colorbar(error, ax=list(axes[:, -1]), label="error (m/s)", extend="both", **bar)


def draw_field(field: xr.DataArray, ax: Axes, look: dict[str, Any]) -> Any:
    """Draw one field on kilometre axes that begin at its own south-west corner."""
    height, width = (spacing_km(field, str(dim)) * n for dim, n in field.sizes.items())
    return draw_values(field.values, ax, (height, width), look)


def draw_spectra(dataset: xr.Dataset, ax: Axes, scheme: str) -> None:
    """Draw the variance by wavelength of one sample: truth, the baseline and an estimate."""
    spacing_m = 1000 * spacing_km(dataset.truth, "x")
    schemes = {name: dataset.estimate.sel(scheme=name) for name in (BESIDE[-1], scheme)}
    shown = {"truth": dataset.truth, **schemes}
    if "draw" in dataset:
        shown["one draw"] = dataset.draw
    for (name, field), colour in zip(shown.items(), SPECTRA, strict=False):
        found = cosine_spectrum(field.values, spacing_m=spacing_m)
        ax.loglog(found.wavelength_m / 1000, found.energy, label=name, color=colour, linewidth=1.1)
    ax.set_ylim(bottom=cosine_spectrum(dataset.truth.values, spacing_m=spacing_m).energy.min() / 10)
    ax.invert_xaxis()
    ax.yaxis.tick_right()
    ax.legend(loc="lower left", fontsize=7)
    ax.set_box_aspect(dataset.sizes["y"] / dataset.sizes["x"])
    ax.text(0.97, 0.97, "m²/s²", transform=ax.transAxes, ha="right", va="top", fontsize=8.5)


def draw_values(
    values: np.ndarray, ax: Axes, size_km: tuple[float, float], look: dict[str, Any]
) -> Any:
    """Draw a field that reaches so far along y and x."""
    height, width = size_km
    ax.grid(visible=False)
    extent = (0.0, width, 0.0, height)
    return ax.imshow(values, origin="lower", extent=extent, interpolation="nearest", **look)


def note(ax: Axes, text: str) -> None:
    """Write a short text into the lower left corner, legible on any colour."""
    box: Any = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 2}
    ax.text(0.03, 0.02, text, transform=ax.transAxes, fontsize=8.5, bbox=box)


def decorate(dataset: xr.Dataset, axes: np.ndarray, titles: list[str]) -> None:
    """Label columns, rows and the outer axes."""
    for ax, title in zip(axes[0], titles, strict=True):
        ax.set_title(title)
    for ax in axes[-1, :-1]:
        ax.set_xlabel("x (km)")
    axes[-1, -1].set_xlabel("wavelength (km)")
    for row, when in zip(axes, dataset.time.values, strict=True):
        row[0].set_ylabel(f"{moment(when)}\ny (km)")
    for ax in axes[:, 1:-1].flat:
        ax.tick_params(labelleft=False)
    for ax in axes[:-1].flat:
        ax.tick_params(labelbottom=False)


def headline(dataset: xr.Dataset) -> str:
    """Return the title: what the data are, which net, and the errors over all that is held out."""
    attrs = dataset.attrs
    source = attrs["source"]
    if attrs["synthetic"] == "true":
        source = f"SYNTHETIC DATA: {source}"
    scores = ", ".join(
        f"{name} {float(dataset['rmse'].sel(scheme=name)):.3f}"
        for name in ("CNN", "conservative bicubic", "bicubic")
    )
    net = f"\nCNN: {attrs['model']}, {attrs['weights']:,} weights" if "model" in attrs else ""
    return f"{source}{net}\nRMSE over all {attrs['test_fields']} held-out fields in m/s: {scores}"


def moment(when: Any) -> str:
    """Return a date with its hour, or the hours of a run without a date."""
    if np.issubdtype(np.asarray(when).dtype, np.datetime64):
        return f"{np.datetime_as_string(when, unit='m').replace('T', ' ')} UTC"
    return f"hour {float(when):.1f} of the run"


def spacing_km(field: Any, dim: str) -> float:
    """Return the distance of neighbouring points along an axis in metres, in kilometres."""
    coordinate = field[dim].values
    return float(coordinate[1] - coordinate[0]) / 1000
