# %% [markdown]
# # What does the wafer do during one training step?
#
# On the real machine weights do not live on the wafer. They wait in a store, come in layer by
# layer, meet the activations that stay, and leave; gradients go out at once, and the store updates
# the weights. Here a small net is trained in just this way, on this computer.
#
# **What you will see.** The net as layers, a step as a timeline, what was resident when, and that
# the numbers are those of plain JAX.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

import wse

# %% [markdown]
# ## A training function, as you would write it
#
# Nothing is rewritten for the machine: a loss of parameters and a batch.


# %%
def loss(params, batch):
    x, y = batch
    for w, b in params:
        x = jnp.tanh(x @ w + b)
    return jnp.mean((x - y) ** 2)


draw = np.random.default_rng(0)
params = [(draw.normal(size=(256, 256)) / 16, np.zeros(256)) for _ in range(6)]
batch = (draw.normal(size=(64, 256)), draw.uniform(-1, 1, size=(64, 256)))

# %% [markdown]
# ## Cut into layers
#
# `wse.trace` follows the function on shapes alone and cuts it where parameters enter. Layers that
# compute the same share one compiled program.

# %%
wse.trace(loss, params, batch)

# %% [markdown]
# ## One step, and what moved
#
# The weights of the next layer come in while one computes; on the way back every layer is visited
# again, and its gradient leaves. The first step compiles; the timeline is of a later one.

# %%
executor = wse.CS2(systems=2).executor(loss, params, batch, optax.adam(1e-2))
state = executor.init(params)
losses = []
for _ in range(10):
    state, value = executor.train_step(state, batch)
    losses.append(float(value))
run = executor.run

# %% [markdown]
# Each row is one kind of work. Bars of *broadcast* lie beside those of *forward* and *backward*:
# the next weights come while a layer computes.

# %%
fig, ax = plt.subplots(figsize=(9, 3), layout="constrained")
axes = run.figure(ax)

# %% [markdown]
# ## Bytes
#
# Weights in: twice each, forward and backward. Gradients out: once. Never more than two layers'
# weights are on the device.

# %%
events = run.dataset
moved = events.where(events.system == 0, drop=True).to_dataframe()
moved.groupby("kind")[["bytes", "duration_s"]].sum()

# %%
weights = sum(w.nbytes + b.nbytes for w, b in jax.tree.map(np.float32, params))
layer = weights // len(params)
peak = max(moment.weights for moment in run.resident)
print(f"{weights:,} bytes of weights; at most {peak:,} resident, {peak / layer:.0f} layers")

# %% [markdown]
# ## The same numbers as plain JAX

# %%
plain, adam = jax.tree.map(jnp.float32, params), optax.adam(1e-2)
moments = adam.init(plain)
for _ in range(10):
    gradient = jax.grad(loss)(plain, batch)
    change, moments = adam.update(gradient, moments, plain)
    plain = optax.apply_updates(plain, change)

# %% [markdown]
# ## What holds
#
# Ten steps on two systems give the weights of ten steps of plain JAX, to rounding; every byte that
# moved is accounted for.

# %% tags=["assert"]
pairs = zip(jax.tree.leaves(plain), jax.tree.leaves(state.params), strict=True)
assert max(float(abs(a - b).max()) for a, b in pairs) < 1e-3
assert losses[-1] < losses[0]
total = moved.groupby("kind").bytes.sum()
assert total["broadcast"] == 2 * weights
assert total["gradient"] == weights
assert peak <= 2 * layer

# %% [markdown]
# ## What would make this fail
#
# - **A batch that the systems do not divide.** It is refused: every system takes the same share.
# - **Reading seconds as the machine's.** They are those of this computer; `wse.estimate` speaks of
#   the machine.
# - **Keys of dropout, statistics of batch norm.** They work: `docs/graph.md` says how.
#
# ## References
#
# - Hock, ATPESC 2020, and Zhang, Cerebras, 12 November 2023: weight streaming, MemoryX and SwarmX.
