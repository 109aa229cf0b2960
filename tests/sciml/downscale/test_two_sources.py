"""Nets that learn from a coarse model's own wind, not from block means."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciml import wind
from sciml.downscale.pool import Patches, pooled, samples, with_coarse
from sciml.estimator import fit_downscaling, load_downscaling
from sciml.models import Cascade, SuperResolution
from sciml.train import Recipe
from sciml.wind import fit_normaliser

pytestmark = pytest.mark.usefixtures("quick_compilation")
NAMES = ("x_wind", "y_wind")
NET = SuperResolution(2, 4, 1, conservative=False, wind=2)
SMALL = {"recipe": Recipe(batch=4), "epochs": 2, "patches": Patches(8, 8)}


def pairs(seed, bias=0.0, names=NAMES):
    """Fine wind, and block means of it that a model with errors of its own has made."""
    fine = wind.conform(wind.gaussian(seed=seed, snapshots=4, n=16), "a test")
    fine = fine.assign_coords(
        time=np.datetime64("2020-01-01", "ns") + np.arange(4) * np.timedelta64(1, "h")
    )
    coarse = wind.coarser(fine, 2)
    coarse = coarse.assign({n: 1.2 * coarse[n] + bias for n in (*NAMES, "wind_speed")})
    return wind.matched(coarse, fine, 2, names)


@pytest.mark.slow
def test_patches_keep_blocks_whole_and_turn_both_winds_alike():
    (grid,) = samples([pairs(0)], NET)
    assert [str(n) for n in grid.channel.values] == [*NAMES, *("coarse " + n for n in NAMES)]
    normaliser = with_coarse(fit_normaliser(grid.sel(channel=list(NAMES))), grid)
    drawn = pooled([grid], normaliser, step=2).draws(Patches(8, 16))
    patches = np.asarray(drawn.draw(jax.random.key(0), *drawn.source))
    fine, blocks = patches[:, :2], patches[:, 2:]
    np.testing.assert_array_equal(blocks, np.kron(blocks[..., ::2, ::2], np.ones((2, 2))))
    np.testing.assert_allclose(1.2 * wind.block_mean(fine, 2), blocks[..., ::2, ::2], atol=1e-4)


@pytest.fixture(scope="module")
def trained():
    both = [pairs(0, 1.0), pairs(1, 1.0)]
    correction = wind.fit_correction(both[0])
    train, held = (one.corrected_by(correction) for one in both)
    return fit_downscaling(NET, [train], [held], **SMALL), correction, train


@pytest.mark.slow
def test_a_net_takes_its_correction_with_it(trained, tmp_path):
    net, correction, train = trained
    assert net.correction == correction
    np.testing.assert_allclose(correction.scale, 1 / 1.2, rtol=1e-3)
    net.save(tmp_path / "net.wind")
    again = load_downscaling(tmp_path / "net.wind")
    assert again.correction == correction
    raw, right = train.coarse.values, train.shown()
    bare = fit_downscaling(NET, [train.corrected_by(None)], [train.corrected_by(None)], **SMALL)
    assert bare.correction is None
    np.testing.assert_array_equal(again.refine(raw), net.refine(raw))
    from dataclasses import replace

    np.testing.assert_allclose(
        replace(net, correction=None).refine(right), net.refine(raw), atol=1e-5
    )
    with pytest.raises(ValueError, match="differ"):
        net.averaged(bare)


def test_the_same_pairs_by_their_own_means_are_the_plain_training():
    """Block means as the coarse model's wind: the loss is that of training on fine fields."""
    from flax import nnx

    from sciml.downscale.objective import objective_of

    net = NET.build(nnx.Rngs(0))
    structure, params = nnx.split(net, nnx.Param)
    objective = objective_of(NET, structure)
    fine = np.random.default_rng(0).normal(size=(3, 2, 8, 8)).astype(np.float32)
    blocks = np.kron(wind.block_mean(fine, 2), np.ones((2, 2), np.float32))
    alone = objective(params, jnp.asarray(fine), None)
    paired = objective(params, jnp.concatenate([fine, blocks], axis=1), None)
    assert float(paired) == pytest.approx(float(alone), rel=1e-6)
    holed = blocks.copy()
    holed[:, :, :2] = np.nan  # a row of blocks that the coarse model lacks counts nowhere
    worse = fine.copy()
    worse[:, :, :2] += 100
    few = [objective(params, jnp.concatenate([f, holed], axis=1), None) for f in (fine, worse)]
    assert float(few[0]) == pytest.approx(float(few[1]), rel=1e-6)


@pytest.mark.slow
def test_what_cannot_learn_from_pairs_is_refused(trained):
    _, _, train = trained
    with pytest.raises(ValueError, match="partly pairs of two sources and partly fine fields"):
        fit_downscaling(NET, [train, train.fine], [train], **SMALL)
    with pytest.raises(ValueError, match="must both be pairs"):
        fit_downscaling(NET, [train], [train.fine], **SMALL)
    with pytest.raises(ValueError, match="a Cascade makes the coarse fields"):
        fit_downscaling(Cascade(2, wind=2), [train], [train], **SMALL)
    with pytest.raises(ValueError, match="pairs have different corrections"):
        fit_downscaling(NET, [train], [train.corrected_by(None)], **SMALL)
    with pytest.raises(ValueError, match="of factor 2, the net of 4"):
        fit_downscaling(SuperResolution(4, wind=2), [train], [train], **SMALL)
    with pytest.raises(ValueError, match="train on vectors, or leave the correction out"):
        fit_downscaling(SuperResolution(2, 4, 1), [train], [train], **SMALL)
    loose = train.corrected_by(None)
    assert samples([loose], SuperResolution(2, 4, 1))[0].sizes["time"] == 8


@pytest.mark.slow
def test_a_net_of_pairs_refines_what_lies_as_their_blocks_did(trained):
    """Blocks of 6 km were learned from; a coarse wind 9 or 12 km apart has other small scales."""
    net, _, _ = trained
    assert net.attrs["block_m"] == [6000.0, 6000.0]
    fine = wind.gaussian(seed=3, snapshots=1, n=24)
    for factor, fits in ((2, True), (3, False), (4, False)):
        coarse = wind.coarser(fine, factor)
        if fits:
            assert net.predict(coarse).sizes["x"] == 24
            continue
        with pytest.raises(ValueError, match=r"pairs on blocks of 6 km: pass --onto a file of the"):
            net.predict(coarse)
        assert net.predict(wind.onto_blocks(coarse, fine, 2)).sizes["x"] == 24
