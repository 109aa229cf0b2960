"""What limits an inverse map: net, noise, simulations, unknown noise."""

from dataclasses import replace

from numpyro.distributions import Uniform

from sciml.models import Convolutional, Dense
from sciml.ode import AR1
from sciml.studies.inverse.recovery_runs import Run
from sciml.studies.inverse.recovery_study import Cases, study_of

LEVELS = (0.07, 0.28, 0.35)  # sourced: marginal sd's that may be the published one (see AR1)
CNN = Convolutional()
HELD_OUT = "Judged on 2000 held-out parameters, measured with the same noise; FitzHugh-Nagumo. "
INTERVALS = "Means over parameters and seeds with Student's 95 % intervals of three seeds."


def nets(scale: str) -> dict[str, tuple[object, int]]:
    """Return name → (configuration, epochs); the wider, the fewer epochs it needs."""
    if scale == "fast":
        return {"CNN": (CNN, 20), "dense 32": (Dense(32), 100)}
    return {
        "CNN": (CNN, 200),
        "dense 32": (Dense(32), 600),
        "dense 128": (Dense(128), 300),
        "dense 512": (Dense(512), 150),
        "dense 2048": (Dense(2048), 100),
    }


def under_noise(scale: str) -> tuple[Run, ...]:
    """Return every net without noise and with fresh noise, and two nets with fixed noise."""
    levels = LEVELS if scale == "full" else LEVELS[1:2]
    noises = [None, *(AR1(sd=sd) for sd in levels)]
    fresh = [
        Run(name, model, noise, "fresh" if noise else "fixed", epochs=epochs)
        for noise in noises
        for name, (model, epochs) in nets(scale).items()
    ]
    twice = [run for run in fresh if run.noise and run.net in ("CNN", "dense 32")]
    return (*fresh, *(replace(run, training="fixed") for run in twice))


def by_width(scale: str) -> tuple[Run, ...]:
    """Return a narrow and a wide net, trained for as many epochs, without noise and with it."""
    full = scale == "full"
    wide, epochs = (2048, 100) if full else (256, 40)
    noises = [None, *(AR1(sd=sd) for sd in (LEVELS if full else LEVELS[1:2]))]
    return tuple(
        Run(f"dense {units}", Dense(units), noise, "fresh" if noise else "fixed", epochs=epochs)
        for noise in noises
        for units in (32, wide)
    )


def by_samples(scale: str) -> tuple[Run, ...]:
    """Return the CNN on more and more simulations, for as many visits, and a fast net online."""
    full = scale == "full"
    sizes = (250, 1000, 4000, 8000) if full else (250, 1000)
    visits = 200_000 if full else 20_000
    noise = AR1(sd=0.28)
    offline = [Run("CNN", CNN, noise, samples=n, epochs=visits // n) for n in sizes]
    online = Run("CNN", CNN, noise, "online", epochs=visits // 1000)
    fast = Run("dense 4 x 256", Dense(256, depth=4), noise, "online", epochs=4000 if full else 100)
    return (*offline, online, fast)


def with_levels(scale: str) -> tuple[Run, ...]:
    """Return the CNN that estimates the noise's level and correlation with the parameters."""
    noise = AR1(sd=Uniform(0.03, 0.4), correlation=Uniform(0.6, 0.95), estimate=True)
    return (Run("CNN", CNN, noise, epochs=200 if scale == "full" else 20),)


NOISE = study_of(
    Cases(
        name="noise",
        title="Nets under noise",
        about=(
            f"{HELD_OUT}1000 training simulations; AR(1) noise of marginal sd 0.07, 0.28 and 0.35 "
            f"and correlation 0.8, drawn once (fixed) or anew at every epoch (fresh). {INTERVALS}"
        ),
        published=(
            "Rudi, Bessac, Lenzi, arXiv 2012.06691: mean test R² 0.948 of the selected CNN under "
            "noise whose level is not certain; a later reproduction with re-paired noise 0.972."
        ),
        runs=under_noise,
    )
)
WIDTH = study_of(
    Cases(
        name="width",
        title="A narrow and a wide net after as many epochs",
        about=(
            f"{HELD_OUT}1000 training simulations, without noise and with AR(1) noise of marginal "
            "sd 0.07, 0.28 and 0.35, anew at every epoch; 32 and 2048 units, 100 epochs each. "
            "Means over parameters and seeds with Student's 95 % intervals of four seeds, of the "
            "narrow net twelve."
        ),
        published=(
            "OSTI brief, Figure 3: scatter of true against estimated parameters, without noise; "
            "the net of 2048 units estimates them better than that of 32."
        ),
        runs=by_width,
        seeds=4,
        more={"dense 32": 3},
    )
)
SAMPLES = study_of(
    Cases(
        name="samples",
        title="What more simulations give",
        about=(
            f"{HELD_OUT}The CNN under fresh AR(1) noise of sd 0.28, on 250 to 8000 simulations "
            "and on new ones at every epoch (online), 200,000 visits each; and a dense net, whose "
            f"visits cost less, on 4 million simulations online. {INTERVALS}"
        ),
        published="No published figures.",
        runs=by_samples,
    )
)
JOINT = study_of(
    Cases(
        name="joint",
        title="Noise parameters estimated with the ODE's",
        about=(
            f"{HELD_OUT}AR(1) noise whose sd, in [0.03, 0.4], and correlation, in [0.6, 0.95], "
            f"differ from sample to sample and are targets too. {INTERVALS}"
        ),
        published=(
            "Rudi, Bessac, Lenzi, arXiv 2012.06691, estimate two ODE and two noise parameters; "
            "no figures that could be compared were found."
        ),
        runs=with_levels,
        each_parameter=True,
    )
)
