# %% [markdown]
# # What changes when there is more than one?
#
# More systems, more devices, more processes, more workers. Each should change how long a run
# takes, and nothing else: the same numbers, the same program.
#
# **What you will see.** A net trained on one, two and four emulated systems, with the same weights
# at the end; the same in two processes; simulations written by a pool of workers; and what the
# model of the machine says of 192 real systems, where more helps and where it does not.

# %%
import os

os.environ |= {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "PJRT_NPROC": "8"}

# %% [markdown]
# Above: four devices of one CPU, so that there is something to share work between, and threads
# enough that no sum waits for ever.

# %%
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import optax

import sciml
import wse

# %% [markdown]
# ## Settings

# %%
STEPS = sciml.notebook.scale(full=200, fast=20)
SAMPLES = sciml.notebook.scale(full=100_000, fast=20_000)
SYSTEMS = [1, 2, 4, 8, 16, 32, 64, 128, 192]
folder = Path(tempfile.mkdtemp())

# %% [markdown]
# ## A model in a file
#
# Several processes run one program, so the model lies in a file that each can import.

# %%
_ = (folder / "mine.py").write_text("""
import jax.numpy as jnp, numpy as np

def loss(params, batch):
    x, y = batch
    for w, b in params:
        x = jnp.tanh(x @ w + b)
    return jnp.mean((x - y) ** 2)

draw = np.random.default_rng(0)
params = [(draw.normal(size=(64, 64)) / 8, np.zeros(64)) for _ in range(4)]
batch = draw.normal(size=(64, 64)), draw.uniform(-1, 1, size=(64, 64))
""")

# %% [markdown]
# ## One system, two, four
#
# `systems=` is the only word that changes. The batch is dealt out, the systems are folded onto the
# devices that there are, and gradients are summed between them.

# %%
sys.path.insert(0, str(folder))
from mine import batch, loss, params

losses, trained = {}, {}
for systems in (1, 2, 4):
    executor = wse.CS2(systems=systems).executor(loss, params, batch, optax.adam(3e-3))
    state = executor.init(params)
    for _ in range(STEPS):
        state, value = executor.train_step(state, batch)
    losses[systems] = float(value)
    trained[systems] = np.concatenate([np.ravel(w) for w, _ in state.params])

# %% [markdown]
# How far are the weights apart? Sums in another order round differently, and that is all.

# %%
{systems: float(np.abs(w - trained[1]).max()) for systems, w in trained.items()}

# %% [markdown]
# ## Two processes
#
# On two computers this program would be started once on each; here both run on this one. It is the
# loop above, with one line before anything else.

# %%
_ = (folder / "train.py").write_text("""
import sys, jax
where, steps, rank = sys.argv[1], *map(int, sys.argv[2:])
jax.distributed.initialize(where, 2, rank, coordinator_bind_address=where)
import optax, wse
from mine import batch, loss, params
executor = wse.CS2(systems=4).executor(loss, params, batch, optax.adam(3e-3))
state = executor.init(params)
for _ in range(steps):
    state, value = executor.train_step(state, batch)
print(float(value))
""")

# %% [markdown]
# A port, two processes, and what each says its last loss was:

# %%
where = f"127.0.0.1:{20_000 + os.getpid() % 20_000}"
command = [sys.executable, "train.py", where, str(STEPS)]
pipes = {"cwd": folder, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
several = [subprocess.Popen([*command, str(rank)], **pipes) for rank in range(2)]
said = [float(process.communicate(timeout=120)[0].split()[-1]) for process in several]
{"process 0": said[0], "process 1": said[1], "one process": losses[1]}

# %% [markdown]
# ## A pool of workers
#
# Simulations are cut into chunks, each with a random key of its own, so it does not matter who
# makes which. Threads here; on a cluster, make a `dask.distributed.Client` first.

# %%
prey = sciml.ode.lotka_volterra()
task = sciml.ode.distribute(prey, folder / "pool.zarr", samples=SAMPLES)
chunks = task.compute(scheduler="threads")
alone = sciml.ode.accumulate(prey, folder / "alone.zarr", samples=SAMPLES // 10)
pool = sciml.ode.open_simulations(folder / "pool.zarr")
{"chunks": chunks, "samples": pool.sizes["sample"]}

# %% [markdown]
# ## 192 real systems
#
# What does the model of the machine say? GPT-J with six billion parameters on up to 192 CS-2. If
# every system keeps 60 samples, so that the batch grows, the rate is nearly linear. If a batch of
# 64 is dealt out to ever more systems, weights come no faster, and the rate stops growing.

# %%
CASES = {"60 samples for each": [60 * n for n in SYSTEMS], "64 samples for all": [64] * 7}
net, rates = wse.workloads.get("GPT-J-6B"), {}
for case, batches in CASES.items():
    pairs = zip(batches, SYSTEMS, strict=False)
    found = [wse.estimate(net, batch=b, machine=wse.CS2(n)).samples_per_s for b, n in pairs]
    rates[case] = np.array(found)

# %% [markdown]
# On the grey line a speed-up is perfect.

# %%
fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.loglog(SYSTEMS, found[0] * np.array(SYSTEMS), color="grey", linewidth=0.8)
for (case, rate), look in zip(rates.items(), ["o-", "s--"], strict=True):
    ax.loglog(SYSTEMS[: len(rate)], rate, look, markersize=4, label=case)
ax.set(xlabel="systems", ylabel="samples per second", xticks=SYSTEMS, xticklabels=SYSTEMS)
_ = ax.legend()

# %% [markdown]
# ## What holds
#
# Systems and processes change no number beyond rounding; the pool's simulations are those of one
# worker, bit by bit; and by the model, the machine scales as its makers say, where the batch grows.

# %% tags=["assert"]
assert all(np.allclose(w, trained[1], atol=1e-5) for w in trained.values())
assert said[0] == said[1]
assert np.isclose(said[0], losses[1], rtol=1e-4)
assert losses[1] < float(loss(params, batch))
assert (pool.observation[: SAMPLES // 10] == alone.observation).all()
grown, fixed = ([*rate / rate[0] / SYSTEMS[: len(rate)]] for rate in rates.values())
assert grown[-1] > 0.995 > 0.2 > fixed[-1]

# %% [markdown]
# ## What would make this fail
#
# - **A batch that the systems do not divide.** It is refused.
# - **Statistics of each system's own part.** Batch norm here is that of the whole batch; for a
#   system's own, write it with `wse.pmap`.
# - **Reading the dashed line as the machine's limit.** It is the model's: no measured scaling of
#   a small batch was found. *Near-linear* is what is published of the whole one.
#
# ## References
#
# - Zhang, Cerebras, 12 November 2023: near-linear scaling to 16 systems.
# - Freund, Cambrian-AI, 2021: near-linear scaling to 192.
