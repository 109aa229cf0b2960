# %% [markdown]
# # What wind blows inside a coarse grid cell?
#
# A climate model knows the wind only as a mean over cells of ten kilometres and more. Valleys,
# coasts and gusts live inside them. A *super-resolution* net takes the coarse field and puts back
# what it has learned of the fine one.
#
# **What you will see.** Coarse wind speed, the net's output, the truth and the error, for two hours
# of a month that training never saw; and how much better than interpolation the net is. This is
# Figure 4 of the OSTI brief *Deep Neural Networks for Parameter Estimation with Inverse Maps and
# for Subgrid-Scale Models*, with fields that everybody can get.

# %%
import matplotlib.pyplot as plt
import numpy as np

import sciml
from sciml.studies.figure4 import net_wins, split_fields

# %% [markdown]
# ## Settings
#
# Fast scale trains about half a minute on two cores, full scale a wider net some minutes. Results
# are kept in `results/`, so a second run only draws.

# %%
SCALE = sciml.notebook.scale(full="full", fast="fast")

# %% [markdown]
# ## The fields
#
# Hourly 10 m wind of the AROME-MetCoOp forecast model over Norway: February 2016 trains, January
# 2016 chooses the epoch, November 2015 judges. No hours are split at random: wind is correlated to
# 0.85 and more from one hour to the next, so a random split would test on the training set.
#
# Where the files can neither be found nor fetched, turbulence of `sciml.wind.generate` stands in,
# and everything says SYNTHETIC.

# %%
fields, source = split_fields(seed=0)
{split: dict(field.sizes) for split, field in fields.items()} | {"source": source["source"]}

# %% [markdown]
# ## Look
#
# The mean over blocks of 4 × 4 points is the input; how much of the field is then missing?

# %%
fine = sciml.wind.crop(fields["test"].values, 4)
coarse = sciml.wind.block_mean(fine, 4)
missing = np.asarray(fine - sciml.wind.block(coarse, 4))
spreads = {"standard deviation in m/s, all": fine, "inside cells": missing}
{name: round(float(field.std()), 2) for name, field in spreads.items()}

# %% [markdown]
# ## Train, refine, compare: the figure
#
# The net works at coarse resolution, upsamples once, and adds its output to bicubic interpolation.
# Its last layer makes it *conservative*: block means of the output equal the input.

# %%
fig, axes = plt.subplots(2, 7, figsize=(14.6, 8.4), layout="constrained")
result = sciml.studies.figure4(SCALE, ax=axes)

# %% [markdown]
# ## The numbers
#
# Over the whole held-out set. The baseline is *conservative* bicubic interpolation, which is better
# than plain bicubic for free; `skill` is the part of its mean squared error that a scheme removes.

# %%
result[["rmse", "mae", "bias", "skill"]].to_dataframe().round(4)

# %% [markdown]
# ## Does the net win, and does it conserve?
#
# Yes, by a few per cent of the mean squared error on real fields: without terrain as an input, most
# of what is inside a cell cannot be known. On turbulence, whose scales are tied by an equation, it
# removes about 30 %.

# %% tags=["assert"]
assert net_wins(result)
output = result.estimate.sel(scheme="CNN").values
assert np.allclose(sciml.wind.block_mean(output, 4), result.coarse, atol=1e-4)
assert (result.predicted_setup_s > 600).all()
assert (result.predicted_setup_s > 100 * result.predicted_train_s).all()
assert (result.predicted_train_s < 60).all()

# %% [markdown]
# ## Would it port to a CS-2?
#
# Of the study's net and of the one inside it, without the scaling by the local wind: operations
# that the machine is known to have, those of which no public source speaks, and the seconds
# predicted. Efficiencies were calibrated on a transformer, so those of training are rough; set-up,
# more than ten minutes and known to a factor of five, is nearly all. On the emulated machine it
# trains to the same weights: `fit_downscaling(model, fields, validation, wse.CS2(), ...)`.

# %%
machine = sciml.studies.STUDIES["figure4"].tables(result)["figure4_machine"]
machine.set_index("net").round(1).T

# %% [markdown]
# ## What would make this fail
#
# - **Training longer.** 49 hours of weather are few: after some hundred visits to each field the
#   net learns them by heart and November gets worse.
# - **A wrong baseline.** Against plain bicubic the net looks twice as good as it is.
# - **Reading the picture as a forecast of gusts.** A net trained on squared error is smoother than
#   the truth; where it cannot know, it returns the mean.
#
# ## References
#
# - Getter, Bessac, Rudi, Feng, *Statistical treatment of convolutional neural network
#   super-resolution of inland surface wind for subgrid-scale variability quantification*,
#   arXiv 2211.16708.
# - Lim et al., *Enhanced Deep Residual Networks for Single Image Super-Resolution*,
#   arXiv 1707.02921.
# - Tulloch and Smith, *A theory for the atmospheric energy spectrum*, PNAS 103, 14690.
