"""Weighted draws against closed forms."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import xarray as xr
from numpyro import distributions as dist
from scipy import integrate, stats

from sciml.ode import CATALOG, Gaussian, Observation, Static, System, simulate
from sciml.reference import importance

pytestmark = pytest.mark.usefixtures("quick_compilation")
SD = 0.5
MEASURED = np.array([[0.8, -1.0], [0.1, 0.4]])


@dataclass(frozen=True)
class Normals:
    """A net that answers with the exact posterior, but `wider` and shifted by `off`."""

    mean: np.ndarray
    sd: np.ndarray
    names: tuple[str, ...] = ("first", "second")
    wider: float = 1.0
    off: float = 0.0

    def centres(self, data):
        return self.mean[data.sample.values] + self.off * self.sd

    def sample(self, data, draws, seed):
        noise = np.random.default_rng(seed).normal(size=(draws, data.sizes["sample"], len(self.sd)))
        values = self.centres(data) + self.wider * self.sd * noise
        dims = ("draw", "sample", "parameter")
        return xr.Dataset({"posterior": (dims, values)}, {"parameter": list(self.names)})

    def log_prob(self, data, parameters):
        each = stats.norm.logpdf(parameters, self.centres(data), self.wider * self.sd)
        return xr.DataArray(each.sum(axis=1), dims="sample")


def line():
    prior = {"first": dist.Normal(0.0, 1.0), "second": dist.Normal(0.0, 2.0)}
    return Static(name="line", prior=prior, features=2, noise=Gaussian(sd=SD))


def exact(**changes):
    """The posterior of `line`: prior and measurement are normal, each parameter by itself."""
    prior = np.array([1.0, 2.0])
    return Normals(
        MEASURED * prior**2 / (prior**2 + SD**2), 1 / np.hypot(1 / prior, 1 / SD), **changes
    )


def seen(values=MEASURED):
    values = np.asarray(values, np.float32)
    data = xr.Dataset({"observation": (("sample", "feature"), values)})
    return data.assign_coords(sample=np.arange(len(values)))


def evidence():
    return stats.norm.logpdf(MEASURED, 0, np.hypot([1.0, 2.0], SD)).sum(axis=1)


@pytest.mark.slow
def test_a_perfect_net_hardly_needs_weights():
    """What is lost is that half of the proposals have the tails of a Student t."""
    found = importance(exact(), line(), seen(), draws=500, proposals=20_000)
    assert (found.efficiency > 0.9).all()
    np.testing.assert_allclose(found.log_evidence, evidence(), atol=0.01)
    assert all(len(np.unique(one)) > 480 for one in found.posterior.values[..., 0].T)


@pytest.mark.parametrize(("wider", "off"), [(2.0, 0.0), (1.2, 0.5), (0.4, 1.0)])
def test_a_wrong_net_is_corrected(wider, off):
    """Too wide, beside it, and without the tails, where the weights of q alone have no variance.

    E_q (p/q)² = s² e^{m²/(2s²−1)} / √(2s²−1) for p = N(0, 1) and q = N(m, s²), s² > ½.
    """
    net, right = exact(wider=wider, off=off), exact()
    found = importance(net, line(), seen(), draws=20_000, proposals=40_000, seed=3)
    known = 2 * wider**2 - 1
    alone = (math.sqrt(known) / wider**2 * math.exp(-(off**2) / known)) ** 2 if known > 0 else 0
    assert (found.efficiency > max(alone, 0.4)).all()
    posterior = found.posterior.values
    error = right.sd / math.sqrt(0.4 * 40_000)
    np.testing.assert_allclose((posterior.mean(axis=0) - right.mean) / error, 0, atol=4)
    np.testing.assert_allclose(posterior.std(axis=0), np.tile(right.sd, (2, 1)), rtol=0.03)
    np.testing.assert_allclose(found.log_evidence, evidence(), atol=0.03)


def test_too_few_effective_proposals_are_not_taken_for_all():
    """A net that is far off: of 40 proposals hardly one counts, and the draws stay wide."""
    found = importance(exact(wider=0.1, off=8.0), line(), seen(), draws=40, proposals=40)
    assert (found.efficiency * 40 < 5).all()
    assert all(len(np.unique(one)) >= 15 for one in found.posterior.values[..., 0].T)


def test_few_effective_proposals_are_told(caplog):
    """Their draws lie between the net's and the posterior, and were given without a word."""
    importance(exact(wider=0.02, off=4.0), line(), seen(), draws=100, proposals=400)
    assert "few effective proposals" in caplog.text
    caplog.clear()
    importance(exact(), line(), seen(), draws=100, proposals=400)
    assert not caplog.text


@pytest.mark.slow
def test_more_proposals_are_made_where_too_few_count():
    """One of two observations, of which the net is far off."""
    right = exact()
    net = Normals(right.mean + np.array([[5.0], [0.0]]) * right.sd, right.sd)
    plain = importance(net, line(), seen(), draws=50, proposals=100)
    worth = (plain.efficiency * plain.proposals).values
    assert worth[0] < 10 < 80 < worth[1]
    found = importance(net, line(), seen().observation, draws=50, proposals=(100, 400, 1600))
    assert found.proposals.values.tolist() == [1600, 100]  # 400 were too few again
    assert float(found.efficiency[0]) * 1600 > 80
    xr.testing.assert_identical(found.isel(sample=1), plain.isel(sample=1))
    off = (found.posterior.mean("draw")[0] - right.mean[0]) / right.sd
    np.testing.assert_allclose(off, 0, atol=4 / math.sqrt(50))


@pytest.mark.slow
def test_many_observations_are_those_one_by_one():
    """Whatever shares a chunk: nothing of one observation enters another's draws."""
    many = seen(np.tile(MEASURED, (15, 1)))
    net = Normals(np.tile(exact().mean, (15, 1)), exact().sd, wider=1.5)
    found = importance(net, line(), many, draws=2000, proposals=4000)
    centres = found.posterior.mean("draw").values.reshape(15, 2, 2)
    spread = np.abs(centres - exact().mean) / exact().sd
    assert spread.max() < 5 / math.sqrt(2000)
    again = importance(net, line(), many, draws=2000, proposals=4000)
    xr.testing.assert_identical(found, again)


def test_draws_on_the_border_of_the_support_do_not_count():
    """Rounding puts some there, where log q is −∞; they would have all of the weight."""

    class Rounded(Normals):
        def log_prob(self, data, parameters):
            return super().log_prob(data, parameters).where(parameters[:, 0] < 1.0, -np.inf)

    exactly = exact()
    found = importance(Rounded(exactly.mean, exactly.sd), line(), seen(), draws=500)
    np.testing.assert_allclose(found.log_evidence, evidence(), atol=0.1)


def test_levels_of_the_noise_are_weighed_too():
    """The evidence of one reading, the noise's level unknown, against quadrature."""
    noise = Gaussian(sd=dist.Uniform(0.2, 1.0), estimate=True)
    task = Static(name="one", prior={"mean": dist.Normal(0.0, 1.0)}, features=1, noise=noise)

    class Prior(Normals):
        def sample(self, data, draws, seed):
            found = super().sample(data, draws, seed)
            found.posterior[..., 1] = np.random.default_rng(seed).uniform(
                0.2, 1.0, found.posterior.shape[:2]
            )
            return found

        def log_prob(self, data, parameters):
            known = stats.norm.logpdf(parameters[:, 0]) + math.log(1 / 0.8)
            return xr.DataArray(known, dims="sample")

    net = Prior(np.zeros((1, 2)), np.ones(2), names=("mean", "noise_sd"))
    found = importance(net, task, seen([[0.7]]), draws=100, proposals=40_000)
    known = integrate.quad(lambda s: stats.norm.pdf(0.7, 0, math.hypot(1, s)) / 0.8, 0.2, 1)[0]
    assert float(found.log_evidence[0]) == pytest.approx(math.log(known), abs=0.02)


@pytest.mark.slow
def test_without_any_weight_it_says_so():
    """Of the decay no proposal is possible where the rate makes every solution overflow."""

    def field(t, u, parameters):
        return (parameters[0] * u[0] ** 3,)

    problem = System(
        name="overflow",
        vector_field=field,
        initial_state=(10.0,),
        prior={"rate": dist.Uniform(1.0, 2.0)},
        observation=Observation.regular(states=(0,), interval=1.0, length=5),
        noise=Gaussian(sd=0.1),
        time_unit="s",
        observed="u",
    )
    net = Normals(np.full((1, 1), 1.5), np.full(1, 0.01), names=("rate",))
    data = xr.Dataset({"observation": (("sample", "time"), np.ones((1, 5), np.float32))})
    found = importance(net, problem, data.assign_coords(sample=[0]), draws=10)
    assert np.isnan(found.posterior).all()
    assert float(found.efficiency[0]) == 0
    assert float(found.log_evidence[0]) == -math.inf


def test_observations_that_the_problem_cannot_give_are_refused():
    """Whatever the net takes: the likelihood compares with solutions of the problem."""
    problem = CATALOG["lotka_volterra"]()
    data = simulate(problem, samples=2, noise=problem.noise).assign_coords(sample=[0, 1])
    net = Normals(np.ones((2, 4)), np.ones(4), names=tuple(problem.prior))
    later = data.assign_coords(time=data.time + 0.5)
    with pytest.raises(ValueError, match=r"time\[0\] of the observations is"):
        importance(net, problem, later, draws=5)
    with pytest.raises(ValueError, match="have 9 times, but there are 10"):
        importance(net, problem, data.observation[:, 1:], draws=5)
    with pytest.raises(ValueError, match=r"sample 1 is missing altogether \(1 of 2 samples\)"):
        importance(net, problem, data.observation.where(data.sample != 1), draws=5)


@pytest.mark.slow
@pytest.mark.usefixtures("untyped")
def test_refusals():
    for draws, proposals in ((10, 9), (0, 9), (1, 7)):
        with pytest.raises(ValueError, match=rf"draws is {draws} of {proposals} proposals; there"):
            importance(exact(), line(), seen(), draws=draws, proposals=proposals)
    with pytest.raises(ValueError, match=r"sizes \{'sample': 0, 'feature': 2\}; they must hold"):
        importance(exact(), line(), seen(np.empty((0, 2))), draws=5)
    with pytest.raises(ValueError, match=r"proposals are \(200, 100\); each number must be larger"):
        importance(exact(), line(), seen(), draws=5, proposals=(200, 100))
    with pytest.raises(TypeError, match="NoisyCurrent has no likelihood"):
        neuron = CATALOG["hodgkin_huxley_stochastic"]()
        names = tuple(neuron.prior)
        values = np.array([[float(p.mean) for p in neuron.prior.values()]])
        importance(
            Normals(values, np.full(8, 1e-3), names=names),
            neuron,
            xr.Dataset({"observation": (("sample", "feature"), np.zeros((1, 7), np.float32))}),
            draws=2,
        )
    drawn = Gaussian(sd=dist.Uniform(0.1, 1.0))
    with pytest.raises(ValueError, match="estimates first, second, but the likelihood depends on"):
        importance(exact(), line(), seen(), draws=5, noise=drawn)
    bare = Static(name="bare", prior=line().prior, features=2, noise=None)
    with pytest.raises(ValueError, match="noise is None"):
        importance(exact(), bare, seen(), draws=5)
