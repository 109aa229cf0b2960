# %% [markdown]
# # How many weights does an inverse map need?
#
# The wafer-scale machine takes weights one by one and skips those that are zero. A net with few
# weights would stream and multiply less: but does it still read the parameters off the series?
#
# **What you will see.** The FitzHugh–Nagumo inverse map with all its weights, with a quarter and
# with a twentieth of them, at places drawn once (static) or sought during training (RigL); and what
# each would send.

# %%
import matplotlib.pyplot as plt
import numpy as np

import sciml
import wse

# %% [markdown]
# ## Settings
#
# Fast scale trains nets of 32 units for 60 epochs, with one seed; full scale 128 units for 300,
# with three, at four sparsities. Runs are kept: a second time they are read.

# %%
SCALE = sciml.notebook.scale(full="full", fast="fast")
SEEDS = sciml.notebook.scale(full=3, fast=1)

# %% [markdown]
# ## What a mask is
#
# Biases and the last matrix stay dense. Of the first matrix, 1000 inputs wide, one weight in twenty
# is left, and the others are exactly zero, at every step.

# %%
method = wse.sparsity.Static(0.95)
first, last = np.ones((1000, 32)), np.ones((32, 2))
params = {"layers.0": {"kernel": first}, "layers.1": {"kernel": last}}
kept = wse.sparsity.sparsified(params, method)
{name: int((np.asarray(layer["kernel"]) != 0).sum()) for name, layer in kept.items()}

# %% [markdown]
# ## Fit
#
# Each run is judged on 2000 parameters that no training has seen. At full scale bars are Student's
# 95 % intervals over the seeds; the dashed line is the dense net.

# %%
fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
result = sciml.studies.sparsity(SCALE, ax=axes, seeds=SEEDS)

# %% [markdown]
# ## The errors beside the traffic
#
# In half precision a sparse weight is sent as value and index, 4 bytes; a dense one takes 2. So
# half of the weights at zero gain nothing, and 95 % divide what is streamed by ten.

# %%
table = sciml.studies.STUDIES["sparsity"].tables(result)["sparsity"]
table["streamed"] = np.minimum(1, 2 * (1 - table.sparsity))
table[["method", "sparsity", "streamed", "r2", "r2_half", "median_se"]].round(6)

# %% [markdown]
# ## What holds
#
# Most weights can go before R² suffers much; the median error, which the dense net makes very
# small, suffers first. At every sparsity here the net still tells the parameters.

# %% tags=["assert"]
dense = table[table.method == "dense"].iloc[0]
few = table[table.sparsity >= 0.9]
assert (np.asarray(kept["layers.0"]["kernel"]) != 0).sum() == 1600
assert (np.asarray(kept["layers.1"]["kernel"]) != 0).all()
assert (table.r2 > 0.7).all()
assert (few.median_se > dense.median_se).all()
assert (table[table.sparsity == 0.75].r2 > dense.r2 - 0.1).all()

# %% [markdown]
# ## What would make this fail
#
# - **First weights that are not rescaled.** Sums over a twentieth of the inputs are small; through
#   eight layers the signal fades, and the net estimates the mean. `Static(0.95, rescales=False)`
#   shows it.
# - **A narrow net.** 95 % of 32 units leave two inputs to a unit; a wider net bears more.
# - **A processor.** Products are computed on dense arrays here: what is saved is saved on the
#   machine alone.
#
# ## References
#
# - Evci, Gale, Menick, Castro, Elsen, *Rigging the Lottery: Making All Tickets Winners*, arXiv
#   1911.11134.
# - Evci, Ioannou, Keskin, Dauphin, *Gradient Flow in Sparse Neural Networks and How Lottery Tickets
#   Win*, arXiv 2010.03533.
