"""Training on fields of several grids, and the net that comes of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import wse
from sciml import wind
from sciml.downscale.objective import objective_of, skeleton, traceable
from sciml.downscale.pool import Pool, pooled, samples
from sciml.estimator import NotAFitError, Patches, fit_downscaling, load_downscaling
from sciml.models import Density, LocallyScaled, SuperResolution
from sciml.train import Recipe, loop
from sciml.wind.prepare.channels import COMPONENT
from sciml.wind.prepare.symmetry import inverse

pytestmark = pytest.mark.usefixtures("quick_compilation")
SMALL = SuperResolution(factor=2, channels=4, blocks=1)
VECTOR = ("x_wind", "y_wind")
OPTIONS = {"recipe": Recipe(4, 1e-3), "epochs": 2, "patches": Patches(16, 8)}


@pytest.fixture(scope="module")
def waves():
    """Fields whose subgrid part follows from the coarse one: waves of random phase."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:32, :32]
    phases = rng.uniform(0, 2 * np.pi, (12, 2, 1, 1))
    return (8 + np.sin(x * 0.6 + phases[:, 0]) + np.sin(y * 0.5 + phases[:, 1])).astype("float32")


@pytest.fixture(scope="module")
def vectors(waves):
    """Two grids of both components."""

    def grid(values, y):
        data = np.stack([values, values[::-1]], axis=1)[:, :, :y]
        return xr.DataArray(data, dims=("time", "channel", "y", "x"), coords={"channel": [*VECTOR]})

    return [grid(waves[:4] - 8, 32), grid(waves[4:7] - 8, 20)]


@pytest.fixture(scope="module")
def fitted(waves, quick_compilation):
    return fit_downscaling(SMALL, waves, waves[:1], **OPTIONS)


@pytest.fixture(scope="module")
def density(waves, quick_compilation):
    return fit_downscaling(Density(2, 4, 1), waves, waves[:1], **OPTIONS)


def pool_of(values: np.ndarray, names: tuple[str, ...] = ("field",)) -> Pool:
    table = [[0, values.shape[0], *values.shape[2:]]]
    return Pool(values.ravel(), np.array(table, np.int32), names)


def drawn(pool: Pool, patches: Patches) -> np.ndarray:
    online = pool.draws(patches)
    return np.asarray(jax.jit(online.draw)(jax.random.key(0), *online.source))


def test_patches_are_parts_of_the_field_in_all_eight_symmetries():
    field = np.arange(100, dtype=np.float32).reshape(1, 1, 10, 10)
    patches = drawn(pool_of(field), Patches(size=3, count=200))[:, 0]
    steps = {(int(p[0, 1] - p[0, 0]), int(p[1, 0] - p[0, 0])) for p in patches}
    assert steps == {(a, b) for i in (1, -1) for j in (10, -10) for a, b in ((i, j), (j, i))}
    assert {int(p.min()) for p in patches} <= {10 * y + x for y in range(8) for x in range(8)}


def test_components_come_with_both_signs_and_speeds_do_not():
    ones = np.ones((1, 1, 8, 8), np.float32)
    signs = {
        name: np.unique(drawn(pool_of(ones, (name,)), Patches(4, 40)))
        for name in ("wind_speed", COMPONENT)
    }
    assert list(signs["wind_speed"]) == [1]
    assert list(signs[COMPONENT]) == [-1, 1]


def test_grids_give_patches_as_their_areas_are_large():
    shapes = [(2, 1, 8, 8), (1, 1, 8, 48)]  # a quarter and three quarters of all points
    values = np.concatenate([np.full(np.prod(s), i, np.float32) for i, s in enumerate(shapes)])
    table = np.array([[0, 2, 8, 8], [128, 1, 8, 48]], np.int32)
    patches = drawn(Pool(values, table, ("speed",)), Patches(4, 2000))
    assert all(len(np.unique(p)) == 1 for p in patches)  # no patch crosses from one to the other
    assert abs(patches[:, 0, 0, 0].mean() - 0.75) < 0.05


def test_channels_of_a_patch_belong_together():
    u = np.random.default_rng(0).normal(size=(3, 1, 6, 7)).astype("float32")
    patches = drawn(pool_of(np.concatenate([u, 2 * u], axis=1), ("wind_speed", "orography")),
                    Patches(4, 30))  # fmt: skip
    np.testing.assert_array_equal(patches[:, 1], 2 * patches[:, 0])


def test_components_are_fields_of_their_own_for_a_net_of_one_channel(vectors):
    (one, other) = samples(vectors, SMALL)
    assert one.shape == (8, 1, 32, 32)
    assert list(one.channel.values) == [COMPONENT]
    fitted = wind.fit_normaliser(one, other)
    together = np.concatenate([grid.values.ravel() for grid in vectors])
    assert fitted.mean == (0.0,)
    assert fitted.std == pytest.approx((np.sqrt(np.mean(together**2)),))
    pool = pooled([one, other], fitted)
    np.testing.assert_allclose(np.sqrt(np.mean(pool.values**2)), 1, rtol=1e-5)


@pytest.mark.slow
def test_training_beats_interpolation_on_held_out_fields(waves):
    net = fit_downscaling(
        SuperResolution(factor=4, channels=8, blocks=1),
        waves[:8],
        waves[8:9],
        recipe=Recipe(batch=8, learning_rate=1e-2),
        epochs=250,
        patches=Patches(size=32, count=16),
    )
    truth = waves[9:]
    coarse = np.asarray(wind.block_mean(jnp.asarray(truth), 4))
    fine = net.refine(coarse)
    baseline = np.asarray(wind.conservative_bicubic(jnp.asarray(coarse), 4))
    assert ((fine - truth) ** 2).mean() < 0.5 * ((baseline - truth) ** 2).mean()
    np.testing.assert_allclose(wind.block_mean(jnp.asarray(fine), 4), coarse, atol=1e-4)
    assert net.normaliser.mean[0] == pytest.approx(waves[:8].mean())


@pytest.mark.slow
def test_same_seed_same_weights(waves, fitted):
    again = fit_downscaling(SMALL, waves, waves[:1], **OPTIONS)
    jax.tree.map(np.testing.assert_array_equal, fitted.trained.params, again.trained.params)


@pytest.mark.slow
def test_streamed_training_gives_the_weights_of_plain_jax(waves, fitted):
    for executor in (wse.CS2(), wse.CS2(systems=4)):
        found = fit_downscaling(SMALL, waves, waves[:1], executor, **OPTIONS)
        assert found.trained.run.systems == executor.systems
        assert found.trained.loss == pytest.approx(fitted.trained.loss, rel=1e-4)
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5),
            found.trained.params,
            fitted.trained.params,
        )


@pytest.mark.slow
def test_a_trained_net_is_what_the_machine_asks_of_a_model(waves, fitted):
    loss, params, batch = fitted.traceable(batch=4, size=16)
    assert jax.tree.map(jnp.shape, params) == jax.tree.map(jnp.shape, fitted.trained.params)
    assert wse.check(loss, params, batch).portable
    assert wse.estimate(loss, params, batch).workload.parameters == fitted.weights
    fine = jnp.asarray(waves[:4, None, :16, :16])
    value = loss(fitted.trained.params, fine)
    assert value == objective_of(SMALL, skeleton(SMALL)[0])(fitted.trained.params, fine, None)
    for sizes in ({"batch": 0}, {"size": 15}, {"size": 0}):
        with pytest.raises(ValueError, match="size a multiple of"):
            fitted.traceable(**sizes)
    with pytest.raises(ValueError, match="Density draws in its loss"):
        traceable(Density(2, 4, 1), 4, 16)


def test_nets_that_draw_are_refused_on_an_executor(waves):
    with pytest.raises(ValueError, match="Density draws in its loss"):
        fit_downscaling(Density(2, 4, 1), waves, waves[:1], wse.CS2(), **OPTIONS)


@pytest.mark.slow
def test_an_interrupted_training_goes_on(waves, fitted, tmp_path, monkeypatch):
    file = tmp_path / "net.checkpoint"
    monkeypatch.setattr(loop, "CHECKPOINT_S", -1.0)
    monkeypatch.setattr(loop, "CALL_S", 1e-9)  # one epoch a call
    saved = loop.saved

    def interrupted(*arguments):
        saved(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(loop, "saved", interrupted)
        fit_downscaling(SMALL, waves, waves[:1], checkpoint=file, **OPTIONS)
    assert file.exists()
    resumed = fit_downscaling(SMALL, waves, waves[:1], checkpoint=file, **OPTIONS)
    jax.tree.map(np.testing.assert_array_equal, resumed.trained.params, fitted.trained.params)
    assert file.exists()
    resumed.save(tmp_path / "done.wind")
    assert not file.exists()


@pytest.mark.slow
def test_a_checkpoint_of_a_training_from_other_weights_is_not_used(waves, fitted, tmp_path, caplog):
    second = fit_downscaling(SMALL, waves, waves[:1], seed=2, **OPTIONS)
    file = tmp_path / "net.checkpoint"
    fit_downscaling(fitted, waves, waves[:1], checkpoint=file, **OPTIONS)
    again = fit_downscaling(second, waves, waves[:1], checkpoint=file, **OPTIONS)
    assert "it belongs to another run: of was" in caplog.text
    alone = fit_downscaling(second, waves, waves[:1], **OPTIONS)
    jax.tree.map(np.testing.assert_array_equal, again.trained.params, alone.trained.params)


def test_missing_points_do_not_count():
    """The loss of a field with a hole is the mean error over what is there."""
    objective = objective_of(SMALL, skeleton(SMALL)[0])
    params = jax.tree.map(jnp.asarray, fresh(SMALL))
    whole = np.random.default_rng(0).normal(size=(1, 1, 8, 8)).astype("float32")
    whole[..., 4:, :] = 0
    coarse = np.asarray(wind.block_mean(whole, 2))
    error = np.square(np.asarray(wind.conservative_bicubic(coarse, 2)) - whole)
    holed = whole.copy()
    holed[..., 6:, :] = np.nan
    expected = error[..., :6, :].mean()
    assert float(objective(params, jnp.asarray(holed), None)) == pytest.approx(expected, rel=1e-5)
    assert np.isfinite(objective(params, jnp.full((1, 1, 8, 8), jnp.nan), None))


def fresh(model):
    from flax import nnx

    return nnx.split(model.build(nnx.Rngs(0)), nnx.Param)[1]


@pytest.mark.slow
def test_seas_without_values_stay_without(waves):
    holed = waves.copy()
    holed[:, :8, :8] = np.nan
    net = fit_downscaling(SMALL, holed, holed[:1], **OPTIONS)
    assert np.isfinite(net.trained.loss).all()
    coarse = np.asarray(wind.block_mean_present(holed[:1], 2))
    fine = net.refine(coarse)
    np.testing.assert_array_equal(np.isnan(fine), np.isnan(holed[:1]))


@pytest.mark.parametrize(
    ("patches", "message"),
    [
        (Patches(15, 8), "Patches.size is 15; it must be a multiple of the factor 2"),
        (Patches(64, 8), r"Patches.size is 64 but the fields are 32×32 points; a patch must fit"),
    ],
)
def test_patches_that_do_not_fit_are_refused(waves, patches, message):
    with pytest.raises(ValueError, match=message):
        fit_downscaling(SMALL, waves, waves[:1], recipe=Recipe(4), epochs=1, patches=patches)


def test_channels_that_the_net_does_not_have_are_refused(vectors, waves):
    with pytest.raises(ValueError, match="wind=2 and statics=0"):
        samples(waves, SuperResolution(wind=2))
    with pytest.raises(ValueError, match="speeds are not learned together with components"):
        samples([waves, vectors[0]], SMALL)
    with pytest.raises(ValueError, match="fields is empty"):
        samples([], SMALL)


def test_empty_patches_are_refused():
    with pytest.raises(
        ValueError, match=r"Patches\.count is 0; it must be a whole number, at least 1"
    ):
        Patches(count=0)


@pytest.mark.parametrize("model", [SMALL, LocallyScaled(SMALL, 3)], ids=["plain", "local"])
def test_a_net_is_the_same_after_it_was_kept(waves, tmp_path, model):
    net = fit_downscaling(model, waves, waves[:1], **OPTIONS)
    again = load_downscaling(net.folded().save(tmp_path / "net.wind"))
    coarse = np.asarray(wind.block_mean(waves[:2], 2))
    np.testing.assert_array_equal(again.refine(coarse), net.folded().refine(coarse))
    assert (again.model, again.normaliser, again.attrs) == (model, net.normaliser, net.attrs)
    np.testing.assert_array_equal(again.trained.loss, net.trained.loss)
    (tmp_path / "net.wind").write_bytes(b"PK nothing")
    with pytest.raises(NotAFitError, match=r"must be a file that Downscaling\.save wrote"):
        load_downscaling(tmp_path / "net.wind")


@pytest.mark.slow
def test_folded_estimates_do_not_know_where_north_is(vectors):
    model = SuperResolution(factor=2, channels=4, blocks=1, wind=2)
    net = fit_downscaling(model, vectors, vectors[1], **OPTIONS).folded()
    coarse = np.asarray(wind.block_mean(vectors[1].values[:1], 2))
    fine = net.refine(coarse)
    for element in (1, 4, 7):
        turned = np.asarray(wind.symmetry(coarse, VECTOR, element))
        back = wind.symmetry(net.refine(turned), VECTOR, inverse(element))
        np.testing.assert_allclose(back, fine, atol=1e-5)


@pytest.mark.slow
def test_an_average_of_seeds_is_the_mean_of_its_nets(waves, density, tmp_path):
    nets = [density, fit_downscaling(Density(2, 4, 1), waves, waves[:1], seed=1, **OPTIONS)]
    mean = nets[0].averaged(nets[1])
    coarse = np.asarray(wind.block_mean(waves[:2], 2))
    expected = np.mean([net.refine(coarse) for net in nets], axis=0)
    assert np.abs(expected - nets[0].refine(coarse)).max() > 1e-4
    np.testing.assert_allclose(mean.refine(coarse), expected, atol=1e-6)
    np.testing.assert_allclose(wind.block_mean(mean.refine(coarse), 2), coarse, atol=1e-5)
    swapped = nets[1].averaged(nets[0]).averaged(mean)
    assert [net.trained for net in swapped.members] == [nets[i].trained for i in (1, 0, 0, 1)]
    np.testing.assert_allclose(swapped.refine(coarse), expected, atol=1e-6)
    with pytest.raises(ValueError, match="average of 2 nets draws nothing"):
        mean.draw(coarse, 1)
    with pytest.raises(ValueError, match="one of 2 averaged nets; save each"):
        mean.save(tmp_path / "mean.wind")
    assert not list(tmp_path.iterdir())
    other = fit_downscaling(Density(2, 4, 1), 2 * waves, waves[:1], **OPTIONS)
    with pytest.raises(ValueError, match="average nets of one training with several seeds"):
        nets[0].averaged(other)


@pytest.mark.slow
def test_draws_differ_and_keep_block_means(waves, density, fitted):
    coarse = np.asarray(wind.block_mean(waves[:2], 2))
    draws = density.draw(coarse, 3, seed=1)
    assert draws.shape == (2, 3, 32, 32)
    assert np.ptp(draws, axis=1).min() > 0
    np.testing.assert_allclose(wind.block_mean(draws[0, 1], 2), coarse[0], atol=1e-4)
    with pytest.raises(ValueError, match="SuperResolution gives one estimate and draws nothing"):
        fitted.draw(coarse, 2)
