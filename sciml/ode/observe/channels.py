"""A noise of its own for every channel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key
from numpyro.distributions import Distribution

from sciml._labels import each_once
from sciml.ode.observe.level import Levels
from sciml.ode.observe.noise import Noise, check_noise


@dataclass(frozen=True)
class PerChannel:
    """For every channel a noise of its own, by its name.

    Args:
        channels: name → noise, in the order in which the problem names what it observes; None adds
            nothing. Levels that are drawn are called after their channel: `prey_sd`, and as a
            target `noise_prey_sd`.

    Examples:
        >>> from sciml.ode import Gaussian, LogNormal
        >>> PerChannel({"prey": Gaussian(sd=0.5), "predator": LogNormal(sd=0.1)}).names
        ('prey', 'predator')

    Raises:
        ValueError: no channel, or some drawn levels are to be estimated and others are not.
    """

    channels: Mapping[str, Noise | None] | tuple[tuple[str, Noise | None], ...]

    def __post_init__(self):
        """Keep a tuple of pairs; check every noise."""
        if not isinstance(self.channels, Mapping):
            each_once(tuple(name for name, _ in self.channels), "the channels")
        object.__setattr__(self, "channels", tuple(dict(self.channels).items()))
        for noise in self.noises.values():
            check_noise(noise)
        drawn = {k: noise.estimate for k, noise in self.noises.items() if noise and noise.prior}
        if not self.channels or len(set(drawn.values())) > 1:
            raise ValueError(
                f"PerChannel has the channels {', '.join(self.names) or 'none'}, of which "
                f"{', '.join(name for name in drawn if drawn[name]) or 'none'} estimate their "
                "levels; name a channel at least, and estimate all drawn levels or none"
            )

    @property
    def noises(self) -> dict[str, Noise | None]:
        """The noise of every channel, in order."""
        return dict(self.channels)

    @property
    def names(self) -> tuple[str, ...]:
        """The channels, in order."""
        return tuple(self.noises)

    @property
    def estimate(self) -> bool:
        """Whether the drawn levels are to be estimated."""
        return any(noise.estimate for noise in self.noises.values() if noise)

    @property
    def prior(self) -> dict[str, Distribution]:
        """The distributions of the drawn levels, by channel and name."""
        return {
            f"{name}_{level}": prior
            for name, noise in self.noises.items()
            for level, prior in (noise.prior if noise else {}).items()
        }

    def levels_of(self, channel: str, levels: Mapping[str, Any]) -> dict[str, Any]:
        """Return the levels of one channel under their own names."""
        own = self.noises[channel]
        return {level: levels[f"{channel}_{level}"] for level in (own.prior if own else {})}

    def apply(self, key: Key[Array, ""], clean: Any, levels: Levels) -> Any:
        """Return the measurement of clean (sample, time, channel)."""
        if clean.ndim != 3 or clean.shape[-1] != len(self.channels):
            raise ValueError(
                f"the observations have shape {clean.shape}; PerChannel has noises of "
                f"{', '.join(self.names)}: (sample, time, {len(self.channels)})"
            )
        keys = jax.random.split(key, len(self.channels))
        parts = [
            noise.apply(keys[i], clean[..., i : i + 1], self.levels_of(name, levels))
            if noise
            else clean[..., i : i + 1]
            for i, (name, noise) in enumerate(self.noises.items())
        ]
        return jnp.concatenate(parts, axis=-1)

    def describe(self) -> dict[str, Any]:
        """Return what a file must say of this noise."""
        told = {name: noise.describe() if noise else None for name, noise in self.noises.items()}
        return {"kind": "PerChannel", "channels": told}


def check_channels(noise: Any, observed: str | Sequence[str], owner: str) -> None:
    """Refuse noises of other channels than the observed ones, or in another order."""
    beneath = getattr(noise, "noise", noise)  # of Missing
    if not isinstance(beneath, PerChannel):
        return
    names = (observed,) if isinstance(observed, str) else tuple(observed)
    if names != beneath.names:
        raise ValueError(
            f"the noise has the channels {', '.join(beneath.names)}; {owner} observes "
            f"{', '.join(names) or 'no named channels'}: name these, in this order"
        )
