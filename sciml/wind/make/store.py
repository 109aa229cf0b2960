"""Generated wind, kept as Zarr so that it is made once, with what made it."""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np
import xarray as xr

from sciml._session import as_usual
from sciml.provenance import provenance
from sciml.wind.make.surface_qg import SurfaceQG
from sciml.wind.make.synthetic import default_config, generate
from sciml.wind.make.terrain import with_hills
from wse._files import cache_folder, ensure_folder, write_aside

PARTS = {"train": 24, "validation": 8, "test": 8}


@as_usual
def generate_parts(
    seed: int,
    counts: Mapping[str, int] = PARTS,
    n: int = 128,
    *,
    config: SurfaceQG | None = None,
    terrain_gain: float = 0.0,
    folder: Path | str | None = None,
) -> dict[str, xr.Dataset]:
    """Return a training, a validation and a test part, each from a run of its own.

    Snapshots of one run are related; those of different parts are not: every part has a seed of its
    own, drawn from `seed` and the part's name. What was made before is read.

    Args:
        seed: of all parts.
        counts: part → snapshots.
        n: points along each side.
        config: the equation's constants, in place of the defaults for `n`.
        terrain_gain: other than 0, hills speed the wind up by this (`with_hills`), the same hills
            in all parts; `orography` comes with the winds.
        folder: where to keep them; the cache of data sets without it.

    Raises:
        ValueError: there are no snapshots, or a size that `SurfaceQG` refuses.
        FloatingPointError: the run became unstable.

    >>> import tempfile
    >>> from sciml import wind
    >>> parts = wind.generate_parts(0, {"test": 1}, n=16, folder=tempfile.mkdtemp())
    >>> dict(parts["test"].sizes)
    {'time': 1, 'y': 16, 'x': 16}
    """
    kept = cache_folder("sciml", "datasets", "generated") if folder is None else folder
    root = ensure_folder(kept)
    config = default_config(n) if config is None else config
    result = {}
    for name, count in counts.items():
        own = part_seed(seed, name)
        made_of = {"seed": own, "snapshots": count, "gain": terrain_gain, **asdict(config)}
        key = hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:16]
        path = root / f"{name}-{key}.zarr"
        if not path.exists():
            winds = generate(own, count, config=config)
            if terrain_gain:
                winds = with_hills(winds, part_seed(seed, "hills"), terrain_gain)
            winds = winds.assign_attrs(made_of=json.dumps(made_of), **provenance())
            # Another process may have been faster; its part has the same bytes.
            with suppress(FileExistsError), write_aside(path) as aside:
                winds.chunk(time=1).to_zarr(aside, zarr_format=3, consolidated=False)
        result[name] = xr.load_dataset(path, engine="zarr", consolidated=False)
    return result


def part_seed(seed: int, name: str) -> int:
    """Return a seed for one part, unrelated to those of other parts and of other seeds."""
    words = np.random.SeedSequence([seed, *name.encode()]).generate_state(1)
    return int(words[0] >> 1)  # fits a signed 32-bit integer
