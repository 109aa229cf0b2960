"""One page on a fit: how it was trained, how it does on unseen data, what made it."""

import base64
import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from sciml._html import STYLE, html_of, text_of
from sciml._labels import truths
from sciml.citations import cite
from sciml.diagnose import calibration, recovery
from sciml.figure import draw_calibration, draw_estimates, draw_history, panels, styled
from sciml.inverse.program import is_posterior
from wse._files import write_aside

TEMPLATE = Path(__file__).with_name("report.html.j2")
PANEL_INCHES, ACROSS = 3.2, 4  # panels, and as many in a row
DRAWS = 200  # assumed: of each posterior, enough for ranks to 0.5 %
UNJUDGED = {
    "title": "On unseen data",
    "about": "Not judged on unseen data: pass report(path, data) simulations that it never saw.",
}


def write_report(fit: Any, path: Path | str, data: xr.Dataset | None = None) -> Path:
    """Write one HTML file, figures included, that needs no other.

    The fit is judged on `data`, unseen observations with their `parameters`; without them the page
    says that it was not.
    """
    from jinja2 import Environment

    template = Environment(autoescape=True).from_string(TEMPLATE.read_text(encoding="utf-8"))
    with styled():
        sections = [of_training(fit), *([UNJUDGED] if data is None else judged(fit, data))]
    attrs = {key: text_of(value) for key, value in fit.attrs.items()}
    page = template.render(
        title=f"Fit of {', '.join(fit.grid.parameters)}",
        line=repr(fit),
        sections=sections,
        attrs=attrs,
        style=STYLE,
        bibtex=cite(fit),
    )
    with write_aside(path) as aside:
        aside.write_text(page, encoding="utf-8")
    return Path(path)


def of_training(fit: Any) -> dict[str, Any]:
    """Return how the training went, and what went wrong in it."""
    seconds = fit.history.attrs
    figure, ax = panels(1, 1, (6.0, 2.8))
    draw_history(fit.history, ax)
    about = f"Compiled in {seconds['compile_s']:.1f} s, trained in {seconds['train_s']:.1f} s."
    if fit.collapsed:
        about += (
            f" Of {', '.join(fit.collapsed)} it learned nothing: its estimates are the mean of the "
            "training set. Lower the recipe's learning rate, or train for longer."
        )
    return {"title": "Training", "about": about, "figure": png(figure)}


def judged(fit: Any, data: xr.Dataset) -> Iterator[dict[str, Any]]:
    """Yield scores and figures of the estimates, and the calibration of a posterior."""
    if not isinstance(data, xr.Dataset) or "parameters" not in data:
        has = (
            ", ".join(map(str, data))
            if isinstance(data, xr.Dataset)
            else f"type {type(data).__name__}"
        )
        raise ValueError(
            f"the data have {has}; a report needs `parameters (sample, parameter)` of a Dataset "
            "to compare with: pass simulations, or no data"
        )
    truth = truths(data)
    found = fit.predict(data)
    names = fit.grid.parameters
    scores = recovery(truth, found.estimate, names=names)
    table = scores.sel(regime="all", drop=True).drop_vars("samples").to_dataframe().reset_index()
    across = min(ACROSS, len(names))
    down = math.ceil(len(names) / across)
    figure, axes = panels(down, across, (PANEL_INCHES * across, PANEL_INCHES * down))
    used, rest = np.split(np.ravel(axes), [len(names)])
    for ax in rest:
        ax.remove()
    draw_estimates(found, truth, used)
    about = f"{len(truth)} samples."
    if "flagged" in found:
        about += (
            f" {100 * float(found.flagged.mean()):.1f} % are flagged as unlike the training "
            "observations; of proper ones 5 % are."
        )
    yield {"title": "Estimates", "about": about, "figure": png(figure), "table": html_of(table)}
    if is_posterior(fit.model):
        yield of_posterior(fit, data, truth)


def of_posterior(fit: Any, data: xr.Dataset, truth: xr.DataArray) -> dict[str, Any]:
    """Return whether the posteriors mean what they say."""

    def draws(rows: np.ndarray) -> Any:
        return fit.sample(data.isel(sample=rows), draws=DRAWS, seed=int(rows[0])).posterior

    tree = calibration(draws, truth)
    figure, axes = panels(2, 2, (8.4, 6.6))
    draw_calibration(tree, axes)
    checks = tree["checks"].to_dataset().to_dataframe().reset_index()
    least = float(tree["checks"].adjusted.min())
    about = (
        f"Least p-value of all checks, corrected for their number: {least:.2g}. "
        + ("Below 0.05: the posteriors are not calibrated. " if least < 0.05 else "")
        + "Curves belong inside their bands."
    )
    said = {"figure": png(figure), "table": html_of(checks)}
    return {"title": "Calibration", "about": about, **said}


def png(figure: Figure) -> str:
    """Return a figure as text."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return base64.b64encode(buffer.getvalue()).decode()
