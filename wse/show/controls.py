"""Controls above a picture and a table, for a notebook whose kernel lives; a still picture else."""

# ipywidgets annotates only part of what it gives.
# pyright: reportUnknownMemberType=false, reportMissingTypeStubs=false

import base64
import gc
import importlib.util
import io
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

DPI = 90


def png(figure: Any) -> bytes:
    """A Matplotlib figure as a picture."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI)
    return buffer.getvalue()


def panel(controls: Mapping[str, Any], draw: Callable[..., tuple[bytes, str]]) -> Any:
    """Widgets in a row that wraps, above what is drawn for their values, anew at every change.

    Args:
        controls: widgets with a value, by the name of the argument that the value is for.
        draw: gives a PNG and HTML.

    Raises:
        ImportError: ipywidgets is not installed.
    """
    import ipywidgets as widgets

    picture = widgets.Image(format="png", layout=widgets.Layout(max_width="100%"))
    picture.layout.object_fit = "contain"
    table = widgets.HTML()

    def redraw(_: Any = None) -> None:
        with uncollected():
            chosen = {name: part.value for name, part in controls.items()}
            picture.value, table.value = draw(**chosen)

    for part in controls.values():
        part.observe(redraw, "value")
    redraw()
    row = widgets.Box(list(controls.values()), layout=widgets.Layout(flex_flow="row wrap"))
    return widgets.VBox([row, picture, table])


@contextmanager
def uncollected() -> Generator[None]:
    """Put off Python's collection of garbage, which takes longer than a redraw, until after it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def bundle(widget: Callable[[], Any], still: bytes, text: str) -> dict[str, Any]:
    """What an object shows: widgets where there are any, a picture where not, else its text."""
    shown = {"image/png": base64.b64encode(still).decode(), "text/plain": text}
    if importlib.util.find_spec("ipywidgets") is None:
        return shown
    return {**widget()._repr_mimebundle_(), **shown}
