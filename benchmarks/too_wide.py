"""Whether draws that are too wide are told so without a likelihood.

python benchmarks/too_wide.py

Exact posteriors (by SMC) of two problems, as they are, and spread on a logarithmic scale; a net
on the flow of the Nile (Cobb 1978), by a NumPy simulator that fails now and then; and nets on the
rates of an enzyme (Treloar 1974; Bates and Watts 1988), whose likelihood is known.
"""

import logging

import numpy as np
import numpyro.distributions as dist
import xarray as xr
from scipy import stats

import sciml
from sciml.reference.sharpness import too_wide

log = logging.getLogger("too_wide")
OBSERVATIONS, TIMES = 4, (1, 2, 3)
FLOW_TEXT = """
    1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180 799 958 1140
    1100 1210 1150 1250 1260 1220 1030 1100 774 840 874 694 940 833 701 916 692 1020 1050 969
    831 726 456 824 702 1120 1100 832 764 821 768 845 864 862 698 845 744 796 1040 759
    781 865 845 944 984 897 822 1010 771 676 649 846 812 742 801 1040 860 874 848 890
    744 749 838 1050 918 986 797 923 975 815 1020 906 901 1170 912 746 919 718 714 740
    """
FLOW = np.array(FLOW_TEXT.split(), float)
YEARS = 1871.0 + np.arange(len(FLOW))

DOSES = np.repeat([0.02, 0.06, 0.11, 0.22, 0.56, 1.1], 2)
RATES = np.array([76, 47, 97, 107, 123, 139, 159, 152, 191, 201, 207, 200.0])


class Known:
    """Draws that are there already."""

    def __init__(self, draws, names):
        self.draws, self.names = draws, names

    def sample(self, _, draws, seed):
        """Return some of them."""
        at = np.random.default_rng(seed).choice(len(self.draws), draws)
        dims = ("draw", "sample", "parameter")
        return xr.Dataset({"posterior": (dims, self.draws[at][:, None])}, {"parameter": self.names})


def nile(p, rng):
    """Return a flow whose mean changes once; the gauge breaks once in fifty times."""
    if rng.random() < 0.02:
        raise RuntimeError("the gauge is broken")
    mean = np.where(p["year"] >= YEARS, p["before"], p["after"])
    return mean + p["sd"] * rng.normal(size=len(YEARS))


def catalogue():
    """Print the largest ratio of each observation."""
    for problem in (sciml.ode.lotka_volterra(), sciml.ode.sir()):
        for seed in range(OBSERVATIONS):
            one = sciml.simulate(problem, 1, seed=10 + seed, noise=problem.noise).observation
            exact = sciml.reference.smc(problem, one[0], noise=problem.noise, seed=0)
            logs = np.log(exact.posterior.values)
            found = []
            for times in TIMES:
                draws = np.exp(logs.mean(axis=0) + times * (logs - logs.mean(axis=0)))
                known = Known(draws, list(problem.parameter_names))
                found.append(float(too_wide(known, problem, one, seed).max()))
            log.info("%s %d: %s", problem.name, seed, np.round(found, 2))


def exact():
    """Return the standard deviations of the posterior, over a grid of the year and of sd.

    Given both, each mean is conjugate: N(1000, 200²) and n values of variance s².
    """
    years, sd = np.arange(1, len(FLOW)), np.exp(np.linspace(4.0, 6.5, 200))
    log_p, moments = stats.norm.logpdf(np.log(sd), 5.0, 0.4) - len(FLOW) * np.log(sd), []
    for part in (np.arange(len(FLOW)) < years[:, None], np.arange(len(FLOW)) >= years[:, None]):
        count, total = part.sum(axis=1)[:, None], (part * FLOW).sum(axis=1)[:, None]
        variance = 1 / (1 / 200**2 + count / sd**2)
        mean = variance * (1000 / 200**2 + total / sd**2)
        log_p = log_p - ((part * FLOW**2).sum(axis=1)[:, None] / sd**2 - mean**2 / variance) / 2
        log_p = log_p + np.log(variance) / 2
        moments.append((mean, mean**2 + variance))
    share = np.exp(log_p - log_p.max())
    share /= share.sum()
    year = 1870.5 + years[:, None]  # anywhere in its year: a variance of 1/12
    moments += [(year, year**2 + 1 / 12), (sd, sd**2)]
    at = [[(share * each).sum() for each in pair] for pair in moments]
    return [np.sqrt(square - mean**2) for mean, square in at]


def river():
    """Print what is said of a net, and of the same net refined."""
    prior = {
        "before": dist.Normal(1000.0, 200.0),
        "after": dist.Normal(1000.0, 200.0),
        "year": dist.Uniform(1871.0, 1970.0),
        "sd": dist.LogNormal(5.0, 0.4),
    }
    box = sciml.ode.BlackBox(nile, prior, time=YEARS)
    seen = xr.DataArray(FLOW[None], {"time": YEARS}, ("sample", "time"))
    data = sciml.simulate(box, 4000)
    log.info("by a grid: %s", np.round(exact(), 1))
    for embedding in (None, sciml.models.Convolutional()):
        model = sciml.models.SplineFlow(embedding=embedding)
        fit = sciml.fit(model, data, epochs=40, validation=0.1)
        found = fit.sample(seen, 2000, check=box)
        spread = found.posterior.std("draw").values[0]
        log.info("%s: %s, %s", model, np.round(spread, 1), found.too_wide.values.round(2))
        sharp = sciml.refine(fit, box, seen, rounds=3, simulations=2000)
        found = sharp.sample(seen, 2000, check=box)
        spread = found.posterior.std("draw").values[0]
        log.info("refined: %s, %s", spread.round(1), found.too_wide.values.round(2))


def grid(priors):
    """Return standard deviations of rate = vmax dose / (km + dose) and of its error."""
    axes = np.linspace(5.0, 5.8, 101), np.linspace(-4.0, -1.8, 101), np.linspace(1.4, 4.0, 101)
    vmax, km, sd = at = np.exp(np.meshgrid(*axes, indexing="ij"))
    off = RATES - vmax[..., None] * DOSES / (km[..., None] + DOSES)
    log_p = -len(RATES) * np.log(sd) - np.square(off).sum(axis=-1) / (2 * sd**2)
    for name, (mean, scale) in zip(at, priors, strict=True):
        log_p = log_p + stats.norm.logpdf(np.log(name), mean, scale)
    share = np.exp(log_p - log_p.max())
    share /= share.sum()
    return [np.sqrt((share * (each - (share * each).sum()) ** 2).sum()) for each in at]


def enzyme():
    """Print what the likelihood says of two nets."""
    priors = (np.log(150.0), 0.5), (np.log(0.1), 1.0), (np.log(10.0), 0.5)
    vmax, km, sd = (dist.LogNormal(*each) for each in priors)
    error = sciml.ode.Gaussian(sd=sd, estimate=True)
    task = sciml.ode.Static(
        "enzyme",
        {"vmax": vmax, "km": km},
        12,
        error,
        solution=lambda p: p[0] * DOSES / (p[1] + DOSES),
    )
    seen = xr.DataArray(RATES[None], dims=("sample", "feature"))
    for model in (sciml.models.SplineFlow(), sciml.models.Gaussian()):
        for seed in (0, 1):
            data = sciml.simulate(task, 4000, noise=error, seed=seed)
            fit = sciml.fit(model, data, 0.1, epochs=60, seed=seed)
            found = fit.sample(seen, 4000, check=task)
            times = (found.posterior.std("draw").values[0] / grid(priors)).round(2)
            told = found.too_wide.values[0].round(2)
            log.info("%s: %s, told %s, C2ST %.2f", model, times, told, float(found.c2st[0]))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    enzyme()
    catalogue()
    river()
