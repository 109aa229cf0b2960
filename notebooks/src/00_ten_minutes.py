# %% [markdown]
# # Ten minutes to an answer
#
# You have an equation, a noisy measurement, and two numbers that you want to know. This notebook
# goes the whole way once, in a minute of computing; the others take each step slowly.
#
# **What you will see.** An enzyme's equation in three lines; simulations; a net that reads the two
# numbers off any measurement, and how sure it can be; and whether such a net would be worth taking
# to a wafer-scale machine.

# %%
import matplotlib.pyplot as plt
import numpy as np
from numpyro.distributions import Uniform

import sciml
import wse
from sciml.ode import Gaussian, Observation, System

# %% [markdown]
# ## Settings

# %%
SAMPLES = sciml.notebook.scale(full=20_000, fast=3000)
EPOCHS = sciml.notebook.scale(full=100, fast=40)

# %% [markdown]
# ## Your equation
#
# An enzyme uses up its substrate s at the rate V s / (K + s): Michaelis and Menten. V is the
# fastest that it can go, K the concentration at which it goes half as fast. A photometer reads s
# once a minute, with an error of 0.02. That, and what you hold possible beforehand, is all.


# %%
def enzyme(_time, state, parameters):
    """Return ds/dt of one experiment."""
    (s,), (fastest, half) = state, parameters
    return (-fastest * s / (half + s),)


system = System(
    name="enzyme",
    vector_field=enzyme,
    initial_state=(1.0,),
    prior={"V": Uniform(0.05, 0.5), "K": Uniform(0.05, 2.0)},
    observation=Observation.regular(interval=1.0, length=20),
    time_unit="min",
)

# %% [markdown]
# ## Your measurement
#
# Twenty numbers. Here they are made from values that we know, so that the answer can be judged;
# from a file they are a DataArray with the same times.

# %%
noise = Gaussian(sd=0.02)
truth = np.array([[0.2, 0.8]])
mine = sciml.simulate(system, parameters=truth, noise=noise, seed=7)
print(*mine.observation[0].values.round(2))

# %% [markdown]
# ## Simulate, and learn
#
# Three thousand experiments from the prior; then two nets that see fresh noise at every epoch. The
# first gives a point, the second a *posterior*: all values that the measurement leaves possible.

# %%
data = sciml.simulate(system, samples=SAMPLES, seed=0)
point = sciml.fit(sciml.models.Dense(64, 3), data, 0.1, epochs=EPOCHS, noise=noise)
posterior = sciml.fit(sciml.models.SplineFlow(), data, 0.1, epochs=EPOCHS, noise=noise)
posterior

# %% [markdown]
# ## The answer
#
# `flagged` would say that the measurement is like none of the simulations, so that no answer can
# be trusted.

# %%
answer = point.predict(mine)
draws = posterior.sample(mine, draws=2000).posterior[:, 0]
sure = draws.quantile([0.05, 0.5, 0.95], "draw").to_pandas()
sure.round(3)

# %% [markdown]
# A curved valley: a fast enzyme that binds badly looks like a slow one that binds well. The point
# alone would not have told. On the right, what experiments with these values would look like.

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot(draws.sel(parameter="V"), draws.sel(parameter="K"), ".", markersize=2, label="posterior")
left.plot(*answer.estimate[0], "s", color="C1", label="point estimate")
left.plot(*truth[0], "k*", markersize=12, label="truth")
left.set(xlabel="V / (1/min)", ylabel="K / substrate at the start")
left.legend()
again = sciml.simulate(system, parameters=draws[:60].values)
right.plot(again.time, again.observation.T, color="C0", alpha=0.15)
right.plot(mine.time, mine.observation[0], "ko", markersize=4)
_ = right.set(xlabel="time / min", ylabel="substrate / its start", xticks=[0, 5, 10, 15])

# %% [markdown]
# ## Would it be worth porting?
#
# Before anyone rewrites anything for a wafer-scale machine: does every operation run there? Weights
# streamed through the wafer, all are known to.

# %%
wse.check(*point.traceable(), mode="streaming")

# %% [markdown]
# And how long would the same training take? Every part says where its numbers come from. A net this
# small would stay on the wafer; in that mode `wse.check` finds one operation of which nobody wrote.

# %%
there = wse.estimate(*point.traceable(), samples=SAMPLES * EPOCHS)
there

# %% [markdown]
# What it took here, by the clock:

# %%
here_s = point.history.attrs["compile_s"] + point.history.attrs["train_s"]
{"here / s": round(here_s, 1), "on the wafer / s": round(there.total_s, 1)}

# %% [markdown]
# It would run, and it would not pay: the machine takes minutes to set up, and this net is done by
# then. From which size on it pays is the question of notebook 07; for a model of your own, 08.

# %% tags=["assert"]
assert not answer.flagged.any()
low, high = draws.quantile([0.005, 0.995], "draw").values
assert (low < truth[0]).all()
assert (truth[0] < high).all()
assert float(np.corrcoef(draws.values.T)[0, 1]) > 0.8
assert wse.check(*point.traceable(), mode="streaming").portable
assert wse.check(*point.traceable()).why.split(";")[1] == there.why.split(";")[1]
assert there.total_s > here_s

# %% [markdown]
# ## What would make this fail
#
# - **A prior that excludes the truth.** No net can answer with what it never saw.
# - **The wrong noise.** If the photometer drifts, say so (`sciml.ode.AR1`): the posterior is only
#   as honest as the simulator.
# - **Trusting one answer.** Notebook 03 checks the probabilities over many.
#
# ## Where to go
#
# `02` your own equation, with gaps and strange data · `03` posteriors · `05` your own fields ·
# `06` the wafer at work · `08` would my model port? · `10` scaling out
#
# ## References
#
# - Michaelis and Menten, *Die Kinetik der Invertinwirkung*, Biochem. Z. 49, 333 (1913).
# - Durkan et al., *Neural Spline Flows*, arXiv 1906.04032.
