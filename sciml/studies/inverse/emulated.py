"""The nets of Table 4 on the emulated machine, and how long this computer takes for that."""

import math
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sciml.inverse import CollapseWarning, fit
from sciml.models import Dense
from sciml.provenance import provenance
from sciml.studies.description import Scale
from sciml.studies.inverse import net
from sciml.studies.store import kept
from wse import CS2

MODES = ("streaming", "pipelined")
SYSTEMS = (1, 2, 4)
# Updates after the first, which compiles: of the rate's order of magnitude, and of a steady rate.
UPDATES: dict[Scale, dict[int, int]] = {
    "fast": {32: 10, 128: 10, 512: 4, 2048: 1},
    "full": {32: 500, 128: 500, 512: 100, 2048: 20},
}


def row_name(mode: str, systems: int) -> str:
    """Return what the rows of Table 4 call an emulation."""
    plural = "s" if systems > 1 else ""
    return f"this CPU emulating {systems} CS-2{plural} ({mode}), emulated"


ROWS = {row_name(mode, n): (mode, n) for mode in MODES for n in SYSTEMS}


def emulated(
    width: int, mode: str, systems: int, *, scale: Scale, batch: int, out: Path
) -> dict[str, Any]:
    """Return `setup_s`, `samples_per_s`, `samples` and `loss` of some updates; kept in `out`.

    The rate is that of this computer doing what the machine would do, which says nothing of the
    machine's own: systems share the devices that this computer has.
    """
    model, updates = Dense(width), UPDATES[scale][width]
    recipe = model.recipe().replace(batch=batch, standardise=False)
    data = net.clean_set(net.SAMPLES, 0)
    samples = min(updates * batch, data.sizes["sample"] // batch * batch)
    identity = {
        "run": f"emulated-dense{width}-{mode}{systems}",
        "model": asdict(model),
        "recipe": asdict(recipe),
        "updates": updates,
        "samples": samples,
    }

    def make(_: Path) -> dict[str, Any]:
        with warnings.catch_warnings():
            # So few updates teach little; it is their pace that is asked for.
            warnings.simplefilter("ignore", CollapseWarning)
            history = fit(
                model,
                data.isel(sample=slice(0, samples)),
                epochs=math.ceil(updates * batch / samples),
                recipe=recipe,
                executor=CS2(systems, mode),
            ).history
        done = len(history.loss) * samples
        return {
            "setup_s": history.attrs["compile_s"],
            "samples_per_s": done / history.attrs["train_s"],
            "samples": done,
            "loss": float(history.loss[-1]),
            **provenance(),
        }

    return kept(out, identity, ".json", make)
