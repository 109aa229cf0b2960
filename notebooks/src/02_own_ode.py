# %% [markdown]
# # Can a net learn to read the parameters of *my* equation?
#
# You bring a differential equation, what you believe of its parameters beforehand, and what your
# instrument sees of it. Everything else is done for you.
#
# **What you will see.** A pendulum in ten lines; simulations with noise and with gaps; a net that
# estimates length and friction from the noisy angle; and how well it does, with and without gaps.

# %%
import matplotlib.pyplot as plt
import numpy as np
from jax import numpy as jnp
from numpyro.distributions import LogUniform, Uniform

import sciml
from sciml.ode import AR1, Missing, Observation, System

# %% [markdown]
# ## Settings
#
# Fast scale simulates 1000 pendulums and trains for 150 epochs.

# %%
SAMPLES = sciml.notebook.scale(full=8000, fast=1000)
EPOCHS = sciml.notebook.scale(full=400, fast=150)
G_M_S2 = 9.81

# %% [markdown]
# ## The equation
#
# φ″ = −(g / L) sin φ − c φ′. The vector field is written for one pendulum, with its state (φ, φ′)
# and its parameters (L, c); batching is done outside. The priors are numpyro distributions.


# %%
def pendulum(_time, state, parameters):
    """Return d(φ, φ′)/dt."""
    angle, speed = state
    length, friction = parameters
    return speed, -G_M_S2 / length * jnp.sin(angle) - friction * speed


# %% [markdown]
# The system is that field with a start, a prior, and what is seen of it: the angle, ten times a
# second.

# %%
system = System(
    name="pendulum",
    vector_field=pendulum,
    initial_state=(1.0, 0.0),
    prior={"length": Uniform(0.5, 2.0), "friction": LogUniform(0.02, 0.5)},
    observation=Observation.regular(states=(0,), interval=0.1, length=100),
    observed="angle / rad",
)

# %% [markdown]
# ## Simulate
#
# Draws from the prior, solved at once. What comes back is an xarray Dataset that says how it was
# made; a solution that fails would be marked in `valid`, and counted.

# %%
data = sciml.simulate(system, samples=SAMPLES, seed=0)
data

# %% [markdown]
# ## Look
#
# The instrument adds noise that remembers itself, and loses a third of the values. Noise belongs
# to the measurement, so it is an object of its own, and a net sees fresh noise at every epoch.

# %%
noise = AR1(sd=0.1, correlation=0.5)
gaps = Missing(noise, fraction=0.33)
seen = sciml.simulate(system, samples=200, seed=1, noise=gaps)
fig, ax = plt.subplots(figsize=(8, 3), layout="constrained")
seen.observation[:3].plot.line(x="time", ax=ax, marker="o", markersize=3)
_ = ax.set(xlabel="time / s", ylabel="angle / rad")

# %% [markdown]
# ## Fit
#
# Two nets: one for whole series, one that reads NaN as *missing*.

# %%
whole = sciml.fit(sciml.models.Dense(64, 3), data, epochs=EPOCHS, noise=noise)
gappy = sciml.fit(sciml.models.Dense(64, 3, missing=True), data, epochs=EPOCHS, noise=gaps)

# %% [markdown]
# ## Diagnose
#
# On pendulums that neither has seen, measured as they will be.

# %%
test = sciml.simulate(system, samples=1000, seed=2, noise=noise)
holes = sciml.simulate(system, samples=1000, seed=2, noise=gaps)
guesses = [whole.predict(test), gappy.predict(holes)]
scores = [
    sciml.diagnose.recovery(
        test.parameters.values, guess.estimate.values, names=system.parameter_names
    )
    for guess in guesses
]
r2 = [s.r2.sel(regime="all").values.round(3) for s in scores]
{n: x.tolist() for n, x in zip(["whole", "with gaps"], r2, strict=True)}

# %% [markdown]
# ## The figure
#
# The length is read off the period and hardly suffers from gaps; friction shows in the decay alone.

# %%
fig, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
for i, ax in enumerate(axes):
    for guess, label in zip(guesses, ["whole", "with gaps"], strict=True):
        ax.plot(test.parameters[:, i], guess.estimate[:, i], ".", markersize=3, label=label)
    ax.axline((test.parameters[0, i],) * 2, slope=1, color="gray", linewidth=0.8)
    ax.set(xlabel=f"true {system.parameter_names[i]}", ylabel="estimated")
_ = axes[0].legend()

# %% [markdown]
# ## Your own measurement
#
# A series from your instrument is a DataArray with the same times. An observation unlike all
# simulations gets an estimate too, as any net would give, but it is `flagged`; so are, by chance,
# five of a hundred proper ones.

# %%
mine = test.observation[1:4].copy()
mine[2] = np.sign(mine[2])  # a broken sensor, which only knows left from right
whole.predict(mine)[["estimate", "flagged"]].to_dataframe().unstack("parameter")

# %% tags=["assert"]
assert (r2[0] > 0.8).all()
assert r2[1][0] > 0.8
assert r2[1][1] < r2[0][1]
assert bool(whole.predict(mine).flagged[2])

# %% [markdown]
# ## What would make this fail
#
# - **A stiff equation.** The fast path takes fixed steps. Pass
#   `method=sciml.ode.Diffrax("Kvaerno5")` to `System` or `simulate`.
# - **Parameters that the data cannot tell apart.** The loss stays high and `CollapseWarning` names
#   them. A posterior (next notebook) shows which combination is known.
# - **A prior that excludes the truth.** Nothing outside it can be estimated.
#
# ## References
#
# - Kidger, *On Neural Differential Equations*, thesis, Oxford 2021 (diffrax, the adaptive solvers).
# - Rudi, Bessac, Lenzi, arXiv 2012.06691 (noise drawn anew as training goes on).
