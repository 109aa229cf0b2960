"""Surface quasi-geostrophic turbulence of finite depth, on a doubly periodic square."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float, Key

Spectrum = Complex[Array, "ky kx"]
Field = Float[Array, "y x"]


@dataclass(frozen=True)
class SurfaceQG:
    """θ_t + J(ψ, θ) = forcing − drag,  ψ̂ = θ̂ / (μ tanh μ),  μ = k / k_t,  u = −ψ_y, v = ψ_x.

    J(a, b) = a_x b_y − a_y b_x. θ is the temperature at the surface of a layer of depth H, and
    k_t = f / (N H) its transition wavenumber: scales larger than 1/k_t feel the bottom and behave
    like two-dimensional vorticity (energy spectrum k⁻³), smaller ones like pure surface
    quasi-geostrophy (k⁻⁵ᐟ³), the order in which the atmosphere has them.

    Lengths are in units of side / 2π, so that wavenumbers are integers; the forcing gives the
    wind a root mean square near one. Good values: n = 128, k_t = 12; n = 256, k_t = 20, dt 0.005.

    Reference: Tulloch and Smith (2006), PNAS 103, 14690, doi:10.1073/pnas.0605494103.

    Args:
        n: points along each side.
        k_t: transition wavenumber.
        dt: time step.
        forced: wavenumber at which energy goes in, in the ring |k| − 1/2 … |k| + 1/2.
        power: kinetic energy put in per unit time (assumed; it sets the unit of time).
        drag: linear damping rate of all scales (assumed).
        cutoff: exponential filter exp(−cutoff (k/k_max)³⁶) after each step, for what arrives at
            the smallest scales (sourced: Hou and Li 2007, J. Comput. Phys. 226, 379).

    Raises:
        ValueError: a value is out of range, or the forcing is not resolved.

    >>> from sciml import wind
    >>> wind.SurfaceQG(n=32).n
    32
    """

    n: int = 128
    k_t: float = 12.0
    dt: float = 0.01
    forced: int = 4
    power: float = 0.1
    drag: float = 0.1
    cutoff: float = 36.0

    def __post_init__(self):
        rules = {
            "n": (self.n >= 16 and self.n % 2 == 0, "an even number of at least 16"),
            "k_t": (self.k_t > 0, "positive"),
            "dt": (self.dt > 0, "positive"),
            "forced": (1 <= self.forced < self.n // 3, f"between 1 and {self.n // 3 - 1}"),
            "power": (self.power >= 0, "at least 0"),
            "drag": (self.drag >= 0, "at least 0"),
            "cutoff": (self.cutoff >= 0, "at least 0"),
        }
        for name, (holds, rule) in rules.items():
            if not holds:
                raise ValueError(f"SurfaceQG.{name} is {getattr(self, name)}; it must be {rule}")


def wavenumbers(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return kx (1, n/2 + 1), ky (n, 1) and |k| of a half-complex spectrum."""
    kx = np.fft.rfftfreq(n, 1 / n)[None]
    ky = np.fft.fftfreq(n, 1 / n)[:, None]
    return kx, ky, np.hypot(kx, ky)


def resolved(n: int) -> np.ndarray:
    """Return the mask of wavenumbers below n/3: their products have no alias among them."""
    kx, ky, _ = wavenumbers(n)
    return (np.abs(kx) < n / 3) & (np.abs(ky) < n / 3)


def inversion(n: int, k_t: float) -> np.ndarray:
    """Return 1 / (μ tanh μ), with 0 for the mean."""
    mu = wavenumbers(n)[2] / k_t
    mu[0, 0] = np.inf
    return 1 / (mu * np.tanh(mu))


def streamfunction(config: SurfaceQG, theta: Spectrum) -> Spectrum:
    """Return ψ̂ of θ̂."""
    return theta * inversion(config.n, config.k_t)


def velocity(config: SurfaceQG, theta: Spectrum) -> tuple[Field, Field]:
    """Return u = −ψ_y and v = ψ_x on the grid."""
    return skew_gradient(streamfunction(config, theta))


def skew_gradient(psi: Spectrum) -> tuple[Field, Field]:
    """Return −ψ_y and ψ_x on the grid."""
    kx, ky, _ = wavenumbers(psi.shape[0])
    return to_grid(psi * (-1j * ky)), to_grid(psi * (1j * kx))


def jacobian(config: SurfaceQG, psi: Spectrum, theta: Spectrum) -> Spectrum:
    """Return the spectrum of J(ψ, θ) = u θ_x + v θ_y, free of aliases, of `resolved` ψ and θ."""
    kx, ky, _ = wavenumbers(config.n)
    u, v = skew_gradient(psi)
    product = u * to_grid(theta * (1j * kx)) + v * to_grid(theta * (1j * ky))
    return jnp.fft.rfft2(product) * resolved(config.n)


def tendency(config: SurfaceQG, theta: Spectrum) -> Spectrum:
    """Return θ_t without the forcing."""
    return -jacobian(config, streamfunction(config, theta), theta) - config.drag * theta


def runge_kutta(config: SurfaceQG, theta: Spectrum) -> Spectrum:
    """Advance by one step of the classical fourth-order method, unforced and unfiltered."""
    dt = config.dt
    k1 = tendency(config, theta)
    k2 = tendency(config, theta + dt / 2 * k1)
    k3 = tendency(config, theta + dt / 2 * k2)
    k4 = tendency(config, theta + dt * k3)
    return theta + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def step(config: SurfaceQG, theta: Spectrum, key: Key[Array, ""]) -> Spectrum:
    """Advance by one step: transport and drag, a random kick at the forced scale, the filter."""
    kick = ring(config, key, float(np.sqrt(config.power * config.dt)))
    return filtered(config, theta, kick)


def filtered(config: SurfaceQG, theta: Spectrum, kick: Spectrum) -> Spectrum:
    """Advance by one step with a kick that is given, and the filter."""
    k = wavenumbers(config.n)[2]
    smooth = resolved(config.n) * np.exp(-config.cutoff * (k / (config.n / 3)) ** 36)
    return (runge_kutta(config, theta) + kick) * smooth


def ring(config: SurfaceQG, key: Key[Array, ""], speed: float) -> Spectrum:
    """Return a random θ̂ at the forced wavenumber whose wind has the mean square 2 speed²."""
    n, k = config.n, wavenumbers(config.n)[2]
    noise = jnp.fft.rfft2(jax.random.normal(key, (n, n)))  # real on the grid, white
    inside = np.abs(k - config.forced) <= 0.5
    shape = inside / np.where(inside, k, 1)  # ψ̂ falls as 1/k: equal energy for all modes inside
    modes = (inside * weights(n)).sum()  # of the full spectrum; each carries n² of white noise
    scale = speed * np.sqrt(2 * n**2 / modes)
    inverse = np.where(inside, 1 / np.maximum(inversion(n, config.k_t), 1e-30), 0)
    return noise * (scale * shape * inverse)


def run(config: SurfaceQG, theta: Spectrum, key: Key[Array, ""], steps: int) -> Spectrum:
    """Advance by `steps` steps."""
    keys = jax.random.split(key, steps)
    return jax.lax.scan(lambda t, k: (step(config, t, k), None), theta, keys)[0]


def kinetic_spectrum(u: Field, v: Field) -> Float[Array, " ring"]:
    """Return the kinetic energy in each ring |k| − ½ ≤ ring < |k| + ½; it sums to the mean.

    Σ_ring E(ring) = ⟨u² + v²⟩ / 2 (Parseval), all wavenumbers counted.

    >>> import jax
    >>> import jax.numpy as jnp
    >>> from sciml import wind
    >>> u, v = jax.random.normal(jax.random.key(0), (2, 16, 16))
    >>> bool(jnp.isclose(wind.kinetic_spectrum(u, v).sum(), (u**2 + v**2).mean() / 2))
    True
    """
    n = u.shape[0]
    power = (jnp.abs(jnp.fft.rfft2(u)) ** 2 + jnp.abs(jnp.fft.rfft2(v)) ** 2) * weights(n)
    index = np.floor(wavenumbers(n)[2] + 0.5).astype(int)
    return jnp.bincount(index.ravel(), power.ravel(), length=index.max() + 1) / (2.0 * n**4)


def weights(n: int) -> np.ndarray:
    """Return how many wavenumbers of the full spectrum each one of the half spectrum stands for."""
    counts = np.full((n, n // 2 + 1), 2.0)
    counts[:, 0] = counts[:, -1] = 1.0
    return counts


def to_grid(spectrum: Spectrum) -> Field:
    """Return the field of a half-complex spectrum on the square grid."""
    n = spectrum.shape[0]
    return jnp.fft.irfft2(spectrum, s=(n, n))
