# %% [markdown]
# # Would my model port, and what would it take?
#
# Before you apply for time on a wafer-scale cluster: does every operation port, how long is set-up,
# how long is training, on one system or on sixty-four, and what binds?
#
# **What you will see.** The operator check of a net of your own, its estimate, one page with all of
# it by which a net is made to port, how a model scales, and sliders to ask what if.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
from flax import nnx

import wse

# %% [markdown]
# ## Your model
#
# Any training function will do; this is a small net of convolutions. Only shapes are needed, so
# that a model of any size costs nothing to ask about.

# %%
image = jax.ShapeDtypeStruct((64, 128, 128, 1), jnp.float32)
widths = ((1, 32), (32, 32), (32, 1))
net = nnx.eval_shape(lambda: nnx.Sequential(*(nnx.Conv(n, m, (3, 3), rngs=nnx.Rngs(0))
                                              for n, m in widths)))  # fmt: skip
graph, params = nnx.split(net)


# %%
def loss(params, batch):
    coarse, fine = batch
    return jnp.mean((nnx.merge(graph, params)(coarse) - fine) ** 2)


# %% [markdown]
# ## Does every operation port?
#
# Each operation of the forward and the backward pass is *native*, *decomposed* into native ones,
# *unsupported*, or *unknown* where no public source says. Every verdict has its source.

# %%
report = wse.check(loss, params, (image, image), machine=wse.CS2())
report

# %% [markdown]
# ## What would training take?
#
# A million samples, by weight streaming on four systems. Every part says what is busy in it and
# where its constants come from; the interval comes from theirs.

# %%
cluster = wse.CS2(systems=4, mode="streaming")
estimate = wse.estimate(loss, params, (image, image), machine=cluster)
estimate

# %% [markdown]
# ## How would it lie on the wafer?
#
# Each convolution is cut into parts for the grid of cores: samples, channels, places. The estimate
# above takes its cycles from the cheapest such layouts. Here is the second layer: the parts of the
# batch below each other, and magnified the first cores, with the channels that each holds.

# %%
layers = wse.kernels.of_graph(wse.trace(loss, params, (image, image)))
plan = wse.layout.plan(layers)
ax = wse.layout.draw(plan.layers[1])
plan

# %% [markdown]
# ## One page, and a verdict that turns
#
# A net that halves its image by mean pooling is not known to run. The page names the line and the
# remedy, a convolution with stride; with that the same net ports.

# %%
halvings = {
    "mean pooling": lambda x: nnx.avg_pool(x, (2, 2), (2, 2)),
    "a convolution with stride": nnx.Conv(32, 32, (2, 2), strides=2, rngs=nnx.Rngs(0)),
}
first, last = (nnx.Conv(n, m, (3, 3), rngs=nnx.Rngs(0)) for n, m in ((1, 32), (32, 1)))
half = jax.ShapeDtypeStruct((64, 64, 64, 1), jnp.float32)
pages = {}
for name, halve in halvings.items():
    graph, params = nnx.split(nnx.Sequential(first, halve, last))
    pages[name] = wse.port(loss, params, (image, half), beside=["8 x h100", "cpu node"])
    print(pages[name], "\n")

# %% [markdown]
# The whole page of the net that ports. Every number links to its source; `save("port.html")` writes
# it to a file, `wse port model.py:Net --example 64x128x128x1` does the same for a module in a file.

# %%
pages["a convolution with stride"]

# %% [markdown]
# ## A published model, and how it scales
#
# GPT-J with six billion parameters: the calibration's own case. Sixty-four systems take a batch
# that grows with them.

# %%
gpt = wse.workloads.get("GPT-J-6B")
found = wse.sweep(gpt, [60 * n for n in (1, 4, 16, 64)], systems=[1, 4, 16, 64])
fig, ax = plt.subplots(figsize=(5, 3.4), layout="constrained")
axes = wse.charts.scaling(found, ax)

# %% [markdown]
# ## What if?
#
# Move the sliders. Without a live kernel the figure stands still.

# %%
wse.explore(gpt, batch=128)

# %% [markdown]
# ## What holds
#
# The estimate repeats the published rate of GPT-J on two systems, on which it is calibrated, and
# lies between the busiest resource alone and no overlap at all.

# %% tags=["assert"]
published = wse.estimate(gpt, batch=120, machine=wse.CS2(2))
assert abs(published.samples_per_s / 43.67 - 1) < 0.01
assert published.lower_s <= published.total_s <= published.upper_s
assert report.verdict in ("native", "decomposed", "unsupported", "unknown")
assert estimate.samples_per_s > 0
assert pages["mean pooling"].verdict == "unknown"
assert pages["a convolution with stride"].verdict == "native"
assert plan.fits

# %% [markdown]
# ## What would make this fail
#
# - **A kind of net that nothing was calibrated on.** What kernels reach comes from transformers;
#   no run of convolutions was published, and `cautions` says so.
# - **Taking "unknown" for "yes".** No complete public list of operations was found.
# - **Another release.** The same model ran 1.6 times faster two releases later.
#
# ## References
#
# - *Deep Neural Networks for Parameter Estimation with Inverse Maps and for Subgrid-Scale Models on
#   the Cerebras CS-2 AI-Cluster*, OSTI brief.
# - Zhang, Cerebras, 12 November 2023.
