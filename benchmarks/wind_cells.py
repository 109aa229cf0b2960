"""How much steeper wind is across coarse edges than within coarse cells, by scheme.

Run: SCIML_MIRROR=… python benchmarks/wind_cells.py
"""

import numpy as np

from sciml import wind
from sciml.diagnose import skill
from sciml.estimator import load_downscaling

FACTOR, AROUND = 4, 3  # coarse points to each side that the linear estimate sees
NAMES = ("x_wind", "y_wind")


def steepness(fields):
    """Return the mean |difference| of neighbours across coarse edges over that within cells."""
    found = []
    for axis in (-1, -2):
        steps = np.abs(np.diff(fields, axis=axis))
        across = np.arange(steps.shape[axis]) % FACTOR == FACTOR - 1
        parts = (np.compress(here, steps, axis).mean() for here in (across, ~across))
        found.append(np.divide(*parts))
    return np.mean(found)


def smooth(fine, coarse, passes):
    """Return a field with the coarse block means, what it lacks spread by bicubic interpolation."""
    for _ in range(passes):
        fine = fine + wind.bicubic(coarse - wind.block_mean(fine, FACTOR), FACTOR)
    return np.asarray(wind.restore_means(fine, coarse))


def linear(train, coarse):
    """Return the best linear estimate from the coarse points around, inside of the domain."""
    side = 2 * AROUND + 1

    def seen(fields):
        view = np.lib.stride_tricks.sliding_window_view(fields, (side, side), axis=(-2, -1))
        return view.reshape(*view.shape[:-2], side**2)

    fine = np.asarray(wind.crop(train, FACTOR))
    *lead, y, x = fine.shape
    cells = fine.reshape(*lead, y // FACTOR, FACTOR, x // FACTOR, FACTOR).swapaxes(-3, -2)
    cells = cells[..., AROUND:-AROUND, AROUND:-AROUND, :, :].reshape(-1, FACTOR**2)
    known = seen(np.asarray(wind.block_mean(fine, FACTOR))).reshape(-1, side**2)
    weights = np.linalg.lstsq(known, cells, rcond=None)[0]
    made = seen(coarse) @ weights
    *lead, y, x, _ = made.shape
    made = made.reshape(*lead, y, x, FACTOR, FACTOR).swapaxes(-3, -2)
    return made.reshape(*lead, y * FACTOR, x * FACTOR)


def main():
    """Print the ratio of each scheme, and its skill over conservative bicubic."""
    paths = wind.fetch("metcoop")
    train, test = (wind.channels(wind.open(paths[n]), NAMES).values for n in ("train", "test"))
    truth = np.asarray(wind.crop(test[::6], FACTOR))
    coarse = np.asarray(wind.block_mean(truth, FACTOR))
    base, net = wind.conservative_bicubic(coarse, FACTOR), load_downscaling("wind4")
    schemes = {
        "truth": truth,
        "bicubic": wind.bicubic(coarse, FACTOR),
        "conservative bicubic": base,
        "smooth": smooth(wind.bicubic(coarse, FACTOR), coarse, 3),
        "wind4, folded": net.folded().refine(coarse),
        "draws of wind4": net.draw(coarse[:3], 4)[:, 0],
    }
    edge = FACTOR * AROUND
    inside = (..., slice(edge, -edge), slice(edge, -edge))
    best = linear(train[::4], coarse)
    print(f"linear: {steepness(best):.2f}, skill "
          f"{skill(best, truth[inside], np.asarray(base)[inside]):.3f}")  # fmt: skip
    for name, fields in schemes.items():
        fields = np.asarray(fields)
        score = skill(fields, truth, np.asarray(base)) if fields.shape == truth.shape else np.nan
        print(f"{name}: {steepness(fields):.2f}, skill {score:.3f}")


if __name__ == "__main__":
    main()
