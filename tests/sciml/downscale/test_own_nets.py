"""A net of one's own is what its configuration says, or it is refused before it is trained."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import xarray as xr
from flax import nnx

from sciml.estimator import Patches, fit_downscaling, load_downscaling
from sciml.models import LocallyScaled, SuperResolution
from sciml.models.archive import NotAFitError
from sciml.models.wind.refinement import RefinementNet, refined, shuffle
from sciml.train import Recipe

pytestmark = pytest.mark.usefixtures("quick_compilation", "untyped")
FINE = np.random.default_rng(0).normal(size=(4, 16, 16)).astype("f4")


@dataclass(frozen=True)
class Own:
    """A configuration of one convolution, and what is done to it."""

    probabilistic: ClassVar[bool] = False
    more: Any = lambda net, x: x
    held: Any = lambda rngs: 0.0
    factor: int = 2
    wind: int = 1
    statics: int = 0
    beside: int = 0
    conservative: bool = True
    reach: int = 2  # of the interpolation; the convolution's is 1
    side: int = 3

    def build(self, rngs):
        return OwnNet(self, rngs)


class OwnNet(RefinementNet):
    def __init__(self, config, rngs):
        self.config = config
        self.conv = nnx.Conv(1, 4, (config.side, config.side), rngs=rngs)
        self.held = config.held(rngs)

    def __call__(self, coarse, statics=None):
        found = self.config.more(self, self.conv(coarse.transpose(0, 2, 3, 1)))
        return refined(self.config, coarse, shuffle(found, 2))


def fitted(model):
    how = {"recipe": Recipe(2), "epochs": 1, "patches": Patches(16, 2)}
    return fit_downscaling(model, FINE[1:], FINE[:1], **how)


def test_a_net_of_ones_own_is_trained_kept_and_read_with_its_configuration(tmp_path):
    net = fitted(Own())
    coarse = np.random.default_rng(1).normal(size=(3, 6, 6)).astype("f4")
    path = net.save(tmp_path / "own.net")
    assert (load_downscaling(path, Own()).refine(coarse) == net.refine(coarse)).all()
    with pytest.raises(NotAFitError, match=r"model is 'Own'.*pass a configuration of your own"):
        load_downscaling(path)
    with pytest.raises(NotAFitError, match=r"it holds a net of .*'reach': 2.*pass that one"):
        load_downscaling(path, Own(reach=3))


def batch_mean(net, x):
    return x - x.mean(axis=0)


def wide(net, x):
    return x.mean(axis=(1, 2), keepdims=True) + x


def random_scale(rngs):
    return float(np.random.default_rng().normal())


def scaled(net, x):
    return net.held * x


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            Own(held=lambda rngs: nnx.BatchNorm(4, rngs=rngs)),
            "keeps held.mean.* beside its weights",
        ),
        (Own(held=lambda rngs: nnx.Dropout(0.5, rngs=rngs)), "keeps held.rngs.* leave Dropout out"),
        (Own(more=batch_mean), "mixes the samples of a batch"),
        (Own(more=wide), r"reach is 2, and its points see coarse ones \d away.*at least"),
        (Own(side=9), "reach is 2, and its points see coarse ones 4 away.*at least 4"),
        (Own(more=scaled, held=random_scale), "makes another net each time"),
    ],
)
def test_what_it_does_not_say_of_itself_is_refused(model, said):
    with pytest.raises(ValueError, match=said) as caught:
        fitted(model)
    assert "\n" not in str(caught.value)


class Loose(OwnNet):
    def __call__(self, coarse, statics=None):
        return 0 * OwnNet.__call__(self, coarse) + 1.0


class Small(OwnNet):
    def __call__(self, coarse, statics=None):
        return coarse.mean(axis=(2, 3), keepdims=True)


@dataclass(frozen=True)
class Wrong(Own):
    kind: Any = Loose

    def build(self, rngs):
        return self.kind(self, rngs)


class Bare(nnx.Module):
    def __init__(self, config, rngs):
        self.conv = nnx.Conv(1, 4, (3, 3), rngs=rngs)


def test_what_is_no_net_or_does_not_keep_means_is_refused():
    with pytest.raises(ValueError, match="conservative is True, and its block means are not"):
        fitted(Wrong())
    with pytest.raises(ValueError, match=r"makes \(2, 1, 1, 1\) of \(2, 1, 8, 8\); .* 16, 16"):
        fitted(Wrong(kind=Small))
    with pytest.raises(TypeError, match=r"Wrong\.build returns a Bare; it must be a RefinementNet"):
        fitted(Wrong(kind=Bare))
    with pytest.raises(TypeError, match="Own is no frozen dataclass of plain values"):
        fitted(Own(more=[batch_mean]))


def test_around_a_net_of_ones_own_it_is_tried_too():
    assert fitted(LocallyScaled(Own(), window=3)).model.reach == 3
    with pytest.raises(ValueError, match="mixes the samples of a batch"):
        fitted(LocallyScaled(Own(more=batch_mean), window=3))


def test_one_that_changes_its_state_is_no_other_net():
    def counted(net, x):
        net.calls = getattr(net, "calls", 0) + 1
        return x

    coarse = np.random.default_rng(1).normal(size=(5, 6, 6)).astype("f4")
    net = fitted(Own(more=counted))
    alone = [net.refine(one[None])[0] for one in coarse]
    assert np.allclose(net.refine(coarse), alone, atol=1e-5)


def test_statics_that_are_missing_somewhere_are_refused():
    ground = np.ones((1, 16, 16), "f4")
    ground[0, 3, 3] = np.nan
    model = SuperResolution(2, 2, 1, statics=1)

    def fields(known):
        values = np.stack([FINE, np.broadcast_to(known[0], FINE.shape)], axis=1)
        channel = ["wind_speed", "orography"]
        return xr.DataArray(values, {"channel": channel}, ("time", "channel", "y", "x"))

    varied = np.random.default_rng(2).normal(size=(1, 16, 16)).astype("f4")
    how = {"recipe": Recipe(2), "epochs": 1, "patches": Patches(16, 2)}
    with pytest.raises(ValueError, match="orography is missing at 3 of 768 points"):
        fit_downscaling(model, fields(ground)[:3], fields(varied)[3:], **how)
    net = fit_downscaling(model, fields(varied)[:3], fields(varied)[3:], **how)
    with pytest.raises(ValueError, match="orography is missing at 1 of 256 points, which would"):
        net.refine(np.ones((1, 8, 8), "f4"), ground)
