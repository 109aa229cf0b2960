# %% [markdown]
# # Can a net sharpen *my* wind fields?
#
# You bring files of any model, in whatever units and order it writes them. They are opened into
# one form, and doubted; cut into past and future; made coarse; and a net learns to undo that.
#
# **What you will see.** A file with odd habits, read; what was changed, in words; a small net,
# beside the interpolations that it has to beat; scores, spectra, and a viewer to click through.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

from sciml import diagnose, notebook, wind
from sciml.estimator import fit_downscaling
from sciml.figure import view
from sciml.models import SuperResolution
from sciml.train import Recipe

# %% [markdown]
# ## Settings
#
# Fast scale: 80 fields of 64 × 64 points. Coarse cells are four points wide.

# %%
FACTOR = 4
TIMES = notebook.scale(full=400, fast=80)
EPOCHS = notebook.scale(full=40, fast=8)

# %% [markdown]
# ## A file as you might have it
#
# It stands in for yours, so its wind is turbulence made here, and everything that it says of a
# place is invented. Speeds in knots, north first, other names.

# %%
made = wind.generate(seed=0, snapshots=TIMES, n=64)
path = Path(tempfile.mkdtemp()) / "mine.nc"
speeds = {name: made[c][:, ::-1] / 0.514444 for name, c in (("u10", "x_wind"), ("v10", "y_wind"))}
xr.Dataset(
    {n: (("time", "lat", "lon"), s.values, {"units": "knots"}) for n, s in speeds.items()},
    coords={
        "time": np.datetime64("2020-01-01", "ns") + np.arange(TIMES) * np.timedelta64(6, "h"),
        "lat": ("lat", np.linspace(51.7, 50.0, 64), {"units": "degrees_north"}),
        "lon": ("lon", np.linspace(5.0, 7.7, 64), {"units": "degrees_east"}),
    },
).to_netcdf(path, engine="h5netcdf")

# %% [markdown]
# ## Open
#
# What comes out is always the same: m/s, (time, y, x), south first; and `changes` says what had
# to be done for it. What cannot be understood is refused, never guessed.

# %%
fields = wind.open(path)
fields.attrs["changes"].split("; ")

# %% [markdown]
# `check` looks for what is legal and yet strange: gaps in time, calm that is too calm, a grid that
# the factor does not divide.

# %%
wind.check(fields, factor=FACTOR)

# %% [markdown]
# ## Past and future
#
# Hours that follow each other hold the same weather. `split` measures how long it lasts, and
# leaves that much out between the parts.

# %%
split = wind.split(fields.wind_speed)
train, held, test = (fields.wind_speed.isel(time=times) for times in split.parts.values())
{"lasts / h": split.decorrelation_h, "times": [len(part) for part in (train, held, test)]}

# %% [markdown]
# ## Fit
#
# The net sees block means and gives back the fine field. Its last layer is *conservative*: the
# means of what it draws into a cell are the cell's value. The middle part chooses the epoch.

# %%
net = fit_downscaling(
    SuperResolution(FACTOR, 16, 2),
    train.values,
    held.values,
    recipe=Recipe(batch=16),
    epochs=EPOCHS,
)
net

# %% [markdown]
# ## Score
#
# On weather that no part of the training saw. *Conservative* bicubic interpolation is the one to
# beat: `skill` is the share of its mean squared error that a method removes.

# %%
truth = test.values
coarse = wind.block_mean(truth, FACTOR)
guesses = {name: np.asarray(way(coarse, FACTOR)) for name, way in wind.upsample.METHODS.items()}
guesses["net"] = np.asarray(net.refine(coarse))
scores = diagnose.field_scores(guesses, truth, baseline="conservative bicubic")
scores[["rmse", "bias", "skill"]].to_dataframe().round(3)

# %% [markdown]
# ## Which scales come back?
#
# A field that scores best is still too smooth: what cannot be known is averaged away. The spectrum
# shows where.

# %%
spacing_m = fields.attrs["spacing_m"]
fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for name, look in {"truth": "k-", "bicubic": ":", "conservative bicubic": "--", "net": "-"}.items():
    seen = truth if name == "truth" else guesses[name]
    found = diagnose.cosine_spectrum(seen, spacing_m=spacing_m)
    ax.loglog(found.wavelength_m / 1e3, found.energy, look, label=name)
ax.axvline(2 * FACTOR * spacing_m / 1e3, color="grey", linewidth=0.8)
ax.invert_xaxis()
ax.set(xlabel="wavelength / km", ylabel="energy / (m² s⁻²)", ylim=(1e-5, None))
_ = ax.legend()

# %% [markdown]
# ## Look at all of them
#
# Choose a time and a method. Without a live kernel the first picture stands still.

# %%
best = {name: guesses[name] for name in ("bicubic", "conservative bicubic", "net")}
view(test, best, FACTOR, spacing_m=spacing_m)

# %% [markdown]
# ## What holds
#
# The net beats every interpolation on later weather, and keeps the mean of every cell. Here
# scales are tied by an equation; on real wind without terrain the gain is a few per cent
# (notebook 04).

# %% tags=["assert"]
assert "u10 converted from knots to m s-1" in fields.attrs["changes"]
assert np.allclose(fields.x_wind, made.x_wind, atol=1e-3)
assert wind.check(fields, factor=FACTOR).good
assert float(scores.skill.sel(scheme="net")) > 0.05
assert np.allclose(wind.block_mean(guesses["net"], FACTOR), coarse, atol=1e-3)

# %% [markdown]
# ## What would make this fail
#
# - **A random split.** It tests on what it trained on; `wind.random_split` refuses it.
# - **Averages without blocks.** Hours are not independent, so an error bar that treats them so is
#   too narrow: `diagnose.skill_interval` resamples days.
# - **Another model's wind.** A net trained on one model's fields has learned that model's habits.
#
# ## References
#
# - `docs/own-fields.md` lists what `open` understands, and what it refuses.
# - Denis, Côté and Laprise, Mon. Wea. Rev. 130, 1812 (spectra of limited areas).
