"""Checks 1 to 7 and 10 of the equation; the spectrum's slopes and the null are in validation/."""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciml.wind import SurfaceQG, generate, kinetic_spectrum
from sciml.wind.make import surface_qg as qg

N = 32
FREE = SurfaceQG(n=N, k_t=6.0, dt=0.01, forced=3, power=0.0, drag=0.0, cutoff=0.0)


@pytest.fixture(autouse=True)
def double():
    """All of this is exact only in double precision."""
    with jax.enable_x64(True):
        yield


def smooth(seed=0, config=FREE):
    """A resolved random θ̂ without a mean, its wind of order one."""
    noise = jnp.fft.rfft2(jax.random.normal(jax.random.key(seed), (config.n, config.n)))
    k = qg.wavenumbers(config.n)[2]
    theta = noise * (qg.resolved(config.n) * np.exp(-k / 3) * (k > 0))
    u, v = qg.velocity(config, theta)
    return theta / jnp.sqrt(jnp.mean(u**2 + v**2))


def invariants(config, theta):
    """⟨θ²⟩ and the total energy ⟨ψ θ⟩ / 2."""
    on_grid = qg.to_grid(theta)
    psi = qg.to_grid(qg.streamfunction(config, theta))
    return jnp.stack([jnp.mean(on_grid**2), jnp.mean(psi * on_grid) / 2])


def drift(dt, span=0.2):
    config = SurfaceQG(n=N, k_t=6.0, dt=dt, forced=3, power=0.0, drag=0.0, cutoff=0.0)
    theta = smooth()
    end = theta
    step = jax.jit(lambda t: qg.runge_kutta(config, t))
    for _ in range(round(span / dt)):
        end = step(end)
    return np.abs(np.asarray(invariants(config, end) / invariants(config, theta) - 1))


def test_invariants_drift_at_the_order_of_the_scheme_or_faster():
    coarse, fine = drift(0.04), drift(0.02)
    assert (coarse < 1e-4).all()
    assert (np.log2(coarse / fine) > 3.9).all()
    assert (drift(0.002) < 1e-11).all()


@pytest.mark.parametrize("k", [3.0, 5.0])
def test_a_single_wavenumber_is_steady(k):
    modes = np.isclose(qg.wavenumbers(N)[2], k)
    theta = smooth() * modes
    assert modes.sum() > 1
    assert float(jnp.abs(theta).max()) > 0
    assert float(jnp.abs(qg.tendency(FREE, theta)).max()) < 1e-10 * float(jnp.abs(theta).max())


def test_the_jacobian_is_antisymmetric_and_has_no_net_effect():
    a, b = smooth(1), smooth(2)
    ab, ba = qg.jacobian(FREE, a, b), qg.jacobian(FREE, b, a)
    scale = float(jnp.abs(ab).max())
    np.testing.assert_allclose(ab, -ba, atol=1e-12 * scale)
    on_grid = qg.to_grid(ab)
    for factor in (1.0, qg.to_grid(a), qg.to_grid(b)):
        size = float(jnp.mean(jnp.abs(on_grid * factor)))
        assert abs(float(jnp.mean(on_grid * factor))) < 1e-12 * size


@pytest.mark.parametrize(
    ("k_t", "limit"),
    [(1e4, lambda k: 1e4**2 / k**2), (1e-3, lambda k: 1e-3 / k)],
    ids=["deep: two-dimensional vorticity", "shallow: surface quasi-geostrophy"],
)
def test_the_inversion_has_its_two_limits(k_t, limit):
    k = qg.wavenumbers(N)[2]
    k[0, 0] = 1.0
    expected = limit(k)
    expected[0, 0] = 0.0
    np.testing.assert_allclose(qg.inversion(N, k_t), expected, rtol=1e-4)


def test_wind_has_no_divergence():
    u, v = qg.velocity(FREE, smooth())
    kx, ky, _ = qg.wavenumbers(N)
    divergence = qg.to_grid(jnp.fft.rfft2(u) * (1j * kx) + jnp.fft.rfft2(v) * (1j * ky))
    assert float(jnp.abs(divergence).max()) < 1e-12


@pytest.mark.parametrize(
    "move",
    [lambda f: jnp.roll(f, (5, -3), (0, 1)), jnp.rot90],
    ids=["translation", "quarter turn"],
)
def test_the_equation_knows_no_place_and_no_direction(move):
    # rot90 turns about the centre of the array; a shift puts the origin back on a grid point.
    theta = qg.to_grid(smooth())
    rate = qg.to_grid(qg.tendency(FREE, jnp.fft.rfft2(theta)))
    rate_moved = qg.to_grid(qg.tendency(FREE, jnp.fft.rfft2(move(theta))))
    np.testing.assert_allclose(rate_moved, move(rate), atol=1e-11)


def test_the_spectrum_sums_to_the_kinetic_energy():
    u, v = qg.velocity(FREE, smooth())
    assert float(kinetic_spectrum(u, v).sum()) == pytest.approx(float(jnp.mean(u**2 + v**2) / 2))


def test_the_spectrum_of_one_wave_is_in_its_ring():
    x = 2 * np.pi * np.arange(N) / N
    u = jnp.asarray(np.cos(5 * x)[None].repeat(N, 0))
    spectrum = np.asarray(kinetic_spectrum(u, 0 * u))
    assert spectrum[5] == pytest.approx(0.25)
    assert spectrum.sum() == pytest.approx(0.25)


def test_the_kick_puts_in_the_energy_that_it_says():
    config = SurfaceQG(n=N, k_t=6.0, forced=3)
    energies = []
    for seed in range(200):
        u, v = qg.velocity(config, qg.ring(config, jax.random.key(seed), 0.5))
        energies.append(float(jnp.mean(u**2 + v**2) / 2))
    assert np.mean(energies) == pytest.approx(0.25, rel=0.1)


@pytest.mark.slow
def test_same_seed_same_bytes_and_other_seed_other_wind():
    with jax.enable_x64(False):
        config = SurfaceQG(n=N, k_t=6.0, dt=0.04)
        one, same, other = (generate(seed, 2, config=config) for seed in (0, 0, 1))
    assert one.x_wind.values.tobytes() == same.x_wind.values.tobytes()
    assert float(np.corrcoef(one.x_wind.values.ravel(), other.x_wind.values.ravel())[0, 1]) < 0.5
    assert one.attrs["synthetic"] == "true"
    assert "SYNTHETIC" in one.attrs["title"]
    assert one.wind_speed.attrs["units"] == "m s-1"
    assert float((one.wind_speed**2).mean()) == pytest.approx(64, rel=1e-4)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 15),
        ("n", 8),
        ("k_t", 0.0),
        ("dt", -1.0),
        ("forced", 99),
        ("power", -1.0),
        ("drag", -1.0),
    ],
)
def test_bad_constants_are_refused(name, value):
    with pytest.raises(ValueError, match=f"SurfaceQG.{name} is {value}; it must be"):
        SurfaceQG(**{name: value})


def test_no_snapshots_are_refused():
    with pytest.raises(ValueError, match="snapshots is 0; it must be a whole number, at least 1"):
        generate(0, 0)


def test_an_unstable_run_says_so():
    with (
        jax.enable_x64(False),
        contextlib.suppress(RuntimeWarning),
        pytest.raises(FloatingPointError, match=r"pass a smaller SurfaceQG\.dt"),
    ):
        generate(0, 1, config=SurfaceQG(n=N, k_t=6.0, dt=0.5, power=50.0, cutoff=0.0))
