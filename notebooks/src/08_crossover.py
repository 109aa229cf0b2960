# %% [markdown]
# # From how many samples on does the wafer win?
#
# A CS-2 trains these nets in seconds but takes minutes to set up; a CPU starts at once and takes
# its time. Where do the two lines cross, for the CPU you have?
#
# **What you will see.** Figure 2 of the OSTI brief with this computer in it, and the crossover
# above each net.

# %%
import matplotlib.pyplot as plt
import numpy as np

import sciml

# %% [markdown]
# ## Settings

# %%
SCALE = sciml.notebook.scale(full="full", fast="fast")

# %% [markdown]
# ## The figure
#
# Total times are thick; set-up and training thin. The CS-2 wins from n = (S − s) / (1/r − 1/R)
# samples on, with its set-up S and rate R, and this CPU's s and r; never if r is the higher rate.

# %%
fig, ax = plt.subplots(figsize=(9, 5), layout="constrained")
result = sciml.studies.figure2(SCALE, ax=ax)

# %% [markdown]
# ## The crossover in epochs
#
# The published study trained 1000 epochs of 1000 samples. *Infinite* means never.

# %%
epochs = result.crossover_samples / result.attrs["samples"]
epochs.rename("epochs of 1000 samples").to_dataframe()

# %% [markdown]
# ## What holds
#
# The wider the net, the sooner the wafer pays; and at the crossover both take the same time.

# %% tags=["assert"]
crossover = result.crossover_samples.values
assert (np.diff(crossover[np.isfinite(crossover)]) < 0).all()
cpu, cs2 = result.sel(row="CPU, measured"), result.sel(row="CS-2, predicted")
there = np.isfinite(crossover)
both = [(m.setup_s + crossover / m.samples_per_s).values[there] for m in (cpu, cs2)]
np.testing.assert_allclose(*both)

# %% [markdown]
# ## What would make this fail
#
# - **Set-up that is paid once.** If a compiled net is used for many trainings, divide S by their
#   number.
# - **Waiting for a machine.** Queue times are in no row.
# - **The model's reach.** The CS-2 rows hold for dense nets of 32 to 2048 units, on one system.
#
# ## References
#
# - *Deep Neural Networks for Parameter Estimation with Inverse Maps and for Subgrid-Scale Models on
#   the Cerebras CS-2 AI-Cluster*, OSTI brief, Figure 2 and Table 4.
