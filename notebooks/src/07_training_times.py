# %% [markdown]
# # How long does training take here, and on a wafer?
#
# Dense nets of eight layers and 32 to 2048 units, a million samples each: on this computer
# (measured now), on a 4-core CPU and a CS-2 (published), and on a CS-2 by `wse`'s model.
#
# **What you will see.** Table 4 of the OSTI brief with our rows beside the published ones, the
# rates as lines, and Figure 2: from how many samples on the wafer wins over the CPU you have.

# %%
import matplotlib.pyplot as plt
import numpy as np

import sciml
import wse

# %% [markdown]
# ## Settings
#
# At fast scale each net trains for some epochs and the time for 1000 is extrapolated from the rate;
# at full scale it trains for all 1000. The batch matters for a CPU, so it is an argument; the
# published one is not known.

# %%
SCALE = sciml.notebook.scale(full="full", fast="fast")
BATCH = 100

# %% [markdown]
# ## Measure
#
# `setup_s` is compilation here, and placing the net on the wafer there. The rows *published* and
# *measured* are facts; the row *predicted* is calibrated on the published one, so it agrees with it
# by construction.

# %%
fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
table = sciml.studies.table4(SCALE, batch=BATCH, ax=ax)

# %% [markdown]
# ## The table
#
# Seconds for a million samples. NaN where nothing was published.

# %%
facts = [row for row in table.row.values if not row.endswith("emulated")]
seconds = table[["setup_s", "train_s", "total_s"]].sel(row=facts).reset_coords(drop=True)
seconds.to_dataframe().unstack("row").T.round(1)

# %% [markdown]
# Samples per second, also of this computer while it emulates the machine: that checks numbers, and
# is no measure of the machine.

# %%
table.samples_per_s.to_pandas().round().astype(int)

# %% [markdown]
# ## What the model says of one net
#
# The parts add up: a floor of set-up, placing, the input of the samples, and a cost for every unit.
# Each part says whether its constants were sourced, derived, calibrated or assumed.

# %%
estimate = wse.estimate(wse.workload.dense(width=2048), machine=wse.CS2(), samples=1_000_000)
estimate

# %% [markdown]
# ## From how many samples on does the wafer win?
#
# A CS-2 trains these nets in seconds but takes minutes to set up; a CPU starts at once and takes
# its time. Total times are thick; set-up and training thin. The CS-2 wins from
# n = (S − s) / (1/r − 1/R) samples on, with its set-up S and rate R, and this CPU's s and r; never
# if r is the higher rate.

# %%
fig, ax = plt.subplots(figsize=(9, 5), layout="constrained")
figure2 = sciml.studies.figure2(SCALE, ax=ax)

# %% [markdown]
# In epochs of 1000 samples, of which the published study trained 1000. *Infinite* means never.

# %%
epochs = figure2.crossover_samples / figure2.attrs["samples"]
epochs.rename("epochs of 1000 samples").to_dataframe().round()

# %% [markdown]
# ## What holds
#
# The model's totals lie within one percent of the published ones, on which it was calibrated. On
# the wafer the widest net trains at half the rate of the narrowest; on a CPU at a
# hundredth or less. The wider the net, the sooner the wafer pays; and at the crossover both take
# the same time.

# %% tags=["assert"]
ours, theirs = table.sel(row="CS-2, predicted"), table.sel(row="CS-2, published")
assert (abs(ours.total_s / theirs.total_s - 1) < 0.01).all()
rate = table.samples_per_s
slowdown = rate.sel(units=32) / rate.sel(units=2048)
assert 1.5 < slowdown.sel(row="CS-2, published") < 2
assert slowdown.sel(row="CPU, measured") > 100

# %% tags=["assert"]
crossover = figure2.crossover_samples.values
assert (np.diff(crossover[np.isfinite(crossover)]) < 0).all()
cpu, cs2 = figure2.sel(row="CPU, measured"), figure2.sel(row="CS-2, predicted")
there = np.isfinite(crossover)
both = [(m.setup_s + crossover / m.samples_per_s).values[there] for m in (cpu, cs2)]
np.testing.assert_allclose(*both)

# %% [markdown]
# ## What would make this fail
#
# - **A busy computer.** Rates are wall-clock. Close what else runs, or go to full scale.
# - **Another kind of net.** The model knows four dense nets; for others `wse.estimate` lists its
#   `cautions`.
# - **Set-up that is paid once.** If a compiled net is used for many trainings, divide its set-up
#   by their number. Waiting for a machine is in no row.
# - **A small batch.** Below a hundred rows the products of matrices no longer fill a CPU.
#
# ## References
#
# - *Deep Neural Networks for Parameter Estimation with Inverse Maps and for Subgrid-Scale Models on
#   the Cerebras CS-2 AI-Cluster*, OSTI brief, Table 4 and Figure 2.
