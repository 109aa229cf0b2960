"""Fine data sets from coarse ones, of any size and kind."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from flax import nnx

from sciml import wind
from sciml.diagnose import crps
from sciml.downscale import result
from sciml.downscale.apply import predict
from sciml.downscale.comparison import scores
from sciml.downscale.objective import skeleton
from sciml.downscale.result import POINTS, Downscaling, together
from sciml.models import Cascade, Density, LocallyScaled, SuperResolution
from sciml.train import Trained
from sciml.wind.prepare.channels import COMPONENT, Normaliser
from sciml.wind.prepare.resolution import coarser
from sciml.wind.prepare.tiled import Tiles
from sciml.wind.prepare.upsample import conservative_bicubic

pytestmark = pytest.mark.usefixtures("quick_compilation")
VECTOR = ("x_wind", "y_wind")


def net_of(model, names):
    """A net with weights that are nowhere zero."""
    params = nnx.split(model.build(nnx.Rngs(0)), nnx.Param)[1]
    keys = iter(jax.random.split(jax.random.key(1), len(jax.tree.leaves(params))))
    noisy = jax.tree.map(lambda p: p + 0.1 * jax.random.normal(next(keys), p.shape), params)
    nothing = np.zeros(0, np.float32)
    trained = Trained(noisy, nothing, nothing, nothing, 0.0, 0.0, 0.0)
    return Downscaling(model, Normaliser(names, (0.0,) * len(names), (3.0,) * len(names)), trained)


@pytest.fixture(scope="module")
def coarse():
    drawn = wind.gaussian(seed=0, snapshots=2, n=40)
    return wind.conform(drawn.isel(y=slice(0, 30)), "a test")


@pytest.mark.slow
def test_tiles_of_a_vector_are_the_whole(coarse):
    net = net_of(SuperResolution(2, 4, 1, wind=2), VECTOR)
    whole = predict(net, coarse)
    tiled = predict(net, coarse, tiles=Tiles(size=16, reach=net.model.reach))
    assert whole.x_wind.shape == (2, 60, 80)
    for name in ("x_wind", "wind_speed"):
        np.testing.assert_allclose(tiled[name], whole[name], atol=1e-4)
    np.testing.assert_allclose(whole.wind_speed, np.hypot(whole.x_wind, whole.y_wind), rtol=1e-5)
    assert whole.attrs["spacing_m"] == pytest.approx(coarse.attrs["spacing_m"] / 2)


@pytest.mark.parametrize("statics", [(), ("orography",)])
def test_a_globe_has_no_seam(statics):
    """Where its longitudes begin says nothing; what does not go round has edges."""
    net = net_of(SuperResolution(2, 4, 1, statics=len(statics)), (COMPONENT, *statics))
    drawn = np.random.default_rng(0).normal(size=(1, 9, 24)).astype("f4")
    hills = np.random.default_rng(1).normal(size=(18, 48)).astype("f4")

    def fine(first: int, east: float = 15.0, columns: int = 24):
        there = np.arange(first, first + columns)
        axes = {"lat": np.linspace(-60.0, 60.0, 9), "lon": east * there}
        units = {"lat": "degrees_north", "lon": "degrees_east"}
        on = {name: (name, values, {"units": units[name]}) for name, values in axes.items()}
        field = (("time", "lat", "lon"), drawn[..., there % 24], {"units": "m s-1"})
        low = wind.conform(xr.Dataset({"u10": field}, on), "a test")
        turned = hills[..., np.arange(2 * first, 2 * (first + columns)) % 48]
        ground = xr.Dataset({"orography": (("y", "x"), turned)}) if statics else None
        return predict(net, low, ground)

    first, turned, part = fine(0), fine(7), fine(7, 14.0)
    expected = np.roll(first.x_wind, -14, -1)
    np.testing.assert_allclose(turned.x_wind, expected, atol=1e-5)
    assert "refined across its seam" in turned.attrs["changes"]
    assert np.abs(part.x_wind.values - expected).max() > 1e-2
    assert "seam" not in part.attrs["changes"]
    twice = fine(0, columns=25)  # 0 and 360 degrees are there
    both = np.concatenate([first.x_wind, first.x_wind[..., :2]], -1)
    np.testing.assert_allclose(twice.x_wind, both, atol=1e-5)
    assert "its seam, where a meridian is there twice" in twice.attrs["changes"]


def test_components_are_refined_one_by_one(coarse):
    net = net_of(SuperResolution(2, 4, 1), (COMPONENT,))
    fine = predict(net, coarse)
    np.testing.assert_allclose(fine.y_wind, net.refine(coarse.y_wind.values), atol=1e-4)


def test_draws_have_an_axis_and_do_not_know_the_tiles(coarse):
    net = net_of(Density(2, 4, 1), ("wind_speed",))
    drawn = predict(net, coarse, draws=3, seed=5)
    assert drawn.wind_speed.dims == ("time", "draw", "y", "x")
    tiled = predict(net, coarse, draws=3, seed=5, tiles=Tiles(size=16, reach=net.model.reach))
    np.testing.assert_allclose(tiled.wind_speed, drawn.wind_speed, atol=1e-4)
    assert float(np.abs(drawn.wind_speed[0] - drawn.wind_speed[1]).max()) > 0.1


@pytest.mark.slow
def test_fields_that_go_together_are_refined_as_one_by_one():
    net = net_of(SuperResolution(2, 4, 1, wind=2), VECTOR)
    fields = np.random.default_rng(0).normal(size=(12, 2, 10, 8)).astype("float32")
    fields[3, 0, 2, 5] = np.nan
    assert together(*fields.shape) > 1
    whole = net.refine(fields)
    one_by_one = np.concatenate([net.refine(one[None]) for one in fields])
    np.testing.assert_allclose(whole, one_by_one, atol=1e-5)
    assert np.isnan(whole).sum() == 4


@pytest.mark.parametrize(("points", "calls"), [(8192, 1), (80, 4)])
def test_an_accelerator_gets_as_much_at_once_as_it_holds(points, calls, monkeypatch):
    net = net_of(SuperResolution(2, 4, 1, wind=2), VECTOR)
    fields = np.random.default_rng(0).normal(size=(13, 2, 10, 8)).astype("float32")
    wanted = net.refine(fields)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(result, "POINTS", points)
    monkeypatch.setattr(result, "CALLS", 7)
    monkeypatch.setattr(result, "refining", counted := CountedNet(result.refining))
    np.testing.assert_allclose(net.refine(fields), wanted, atol=1e-5)
    assert counted.calls == calls


class CountedNet:
    """Counts the calls of compiled nets."""

    def __init__(self, refining):
        """Count those that this makes."""
        self.refining, self.calls = refining, 0

    def __call__(self, model):
        run = self.refining(model)

        def counted(*args):
            self.calls += 1
            return run(*args)

        return counted


@pytest.mark.parametrize(("samples", "side", "cores"), [(16, 32, 2), (67, 8, 2), (5, 300, 4)])
def test_calls_are_alike_and_leave_no_core_without_one(samples, side, cores, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    monkeypatch.setattr(result, "usable_cores", lambda: cores)
    size = together(samples, 1, side, side)
    assert samples % size == 0
    assert samples // size >= min(cores, samples)
    assert size == 1 or size * side**2 <= POINTS


def test_the_ground_is_cut_with_the_tiles(coarse):
    net = net_of(SuperResolution(2, 4, 1, statics=1), ("wind_speed", "orography"))
    relief = np.random.default_rng(0).normal(size=(60, 80)).astype("float32")
    ground = xr.Dataset({"orography": (("y", "x"), relief)})
    whole = predict(net, coarse, ground)
    tiled = predict(net, coarse, ground, tiles=Tiles(size=16, reach=net.model.reach))
    np.testing.assert_allclose(tiled.wind_speed, whole.wind_speed, atol=1e-4)
    with pytest.raises(ValueError, match="the net knows orography of the fine grid; pass statics"):
        predict(net, coarse)
    with pytest.raises(ValueError, match="statics have 30×80 points; they must have the 60×80"):
        predict(net, coarse, ground.isel(y=slice(30)))
    with pytest.raises(ValueError, match="statics hold orography; the net knows nothing of the"):
        predict(net_of(SuperResolution(2, 4, 1), ("wind_speed",)), coarse, ground)


@pytest.mark.slow
@pytest.mark.parametrize("local", [False, True])
def test_a_cascade_refines_by_every_factor_that_it_learned(coarse, local):
    cascade = Cascade(4, channels=3, blocks=1)
    net = net_of(LocallyScaled(cascade, 3) if local else cascade, ("wind_speed",))
    seen = coarse.wind_speed.values
    half = net.at(2).refine(seen)
    assert half.shape == (2, 60, 80)
    if not local:
        made = nnx.merge(skeleton(cascade)[0], net.trained.params)
        direct = made(jnp.asarray(seen / 3.0)[:, None], None, 2)[:, 0] * 3.0
        np.testing.assert_allclose(half, direct, atol=1e-4)
    assert net.at(4) is net
    np.testing.assert_array_equal(net.at(2).at(4).refine(seen), net.refine(seen))
    assert predict(net.at(2), coarse).attrs["spacing_m"] == coarse.attrs["spacing_m"] / 2
    with pytest.raises(ValueError, match="takes steps of two, up to 4 here"):
        net.at(8)
    with pytest.raises(ValueError, match="SuperResolution refines by 2 alone; train a Cascade"):
        net_of(SuperResolution(2, 4, 1), ("wind_speed",)).at(4)


def test_a_prediction_says_how_it_was_made(coarse):
    net = net_of(SuperResolution(2, 4, 1), ("wind_speed",))
    assert predict(net, coarse).attrs["refined_by"] == str(net.model)
    bare = coarse.drop_vars([*coarse.coords]).assign_attrs(spacing_m=4000.0)
    assert predict(net, bare).attrs["spacing_m"] == 2000.0
    fine = predict(net.averaged(net), coarse)
    assert fine.attrs["refined_by"] == f"the mean of 2 × {net.model}"
    assert f"refined 2-fold by the mean of 2 × {net.model}" in fine.attrs["changes"]
    folded = predict(net.folded(), coarse)
    assert folded.attrs["refined_by"] == f"{net.model}, over all symmetries"
    drawing = net_of(Density(2, 4, 1), ("wind_speed",)).folded()
    drawn = predict(drawing, coarse, draws=2)  # a draw is not folded
    assert drawn.attrs["refined_by"] == f"{drawing.model}, in draws"


def test_wind_that_is_not_there_is_named(coarse):
    speed = coarse[["wind_speed"]]
    with pytest.raises(ValueError, match="the net refines x_wind, y_wind, the data have"):
        predict(net_of(SuperResolution(2, 4, 1, wind=2), VECTOR), speed)
    with pytest.raises(ValueError, match="the net refines components of wind"):
        predict(net_of(SuperResolution(2, 4, 1), (COMPONENT,)), speed)


def test_a_net_is_one_line_and_a_small_table():
    net = net_of(SuperResolution(2, 4, 1, wind=2), VECTOR)
    assert f"{net.weights:,} weights, x_wind, y_wind times 2; 0 epochs" in repr(net)
    assert "mean of 2 nets" in repr(net.averaged(net))
    assert "\n" not in repr(net)
    assert "x_wind, y_wind by 2" in net._repr_html_()
    assert len(net._repr_html_()) < 3000


@pytest.mark.usefixtures("untyped")
def test_a_vector_net_takes_its_components_in_its_order_or_nothing(coarse):
    net = net_of(SuperResolution(2, 4, 1, wind=2), VECTOR)
    fields = wind.channels(coarse, VECTOR)
    whole = net.refine(fields.values)
    swapped = fields.sel(channel=["y_wind", "x_wind"]).transpose("time", "y", "channel", "x")
    np.testing.assert_allclose(net.refine(swapped), whole, atol=1e-6)
    for one in (coarse.x_wind.values, coarse.x_wind, fields.values[:, :1]):
        with pytest.raises(
            ValueError, match=r"x_wind, y_wind together and takes \(sample, 2, y, x"
        ):
            net.refine(one)
    with pytest.raises(ValueError, match="the channels are wind_speed, x_wind; the net refines"):
        net.refine(wind.channels(coarse, ("wind_speed", "x_wind")))
    with pytest.raises(ValueError, match=r"takes \(sample, 2, y, x"):
        wind.refine_tiled(net.refine, fields.values, 2)


def test_the_speed_of_a_vector_is_scored_beside_the_speed_of_interpolated_vectors():
    rng = np.random.default_rng(0)
    fine = wind.conform(wind.gaussian(seed=1, snapshots=3, n=48), "a test")
    blocks = coarser(fine, 4)
    parts = {n: np.asarray(conservative_bicubic(blocks[n].values, 4)) for n in VECTOR}
    guess = fine.assign({n: (fine[n].dims, part) for n, part in parts.items()})
    guess["wind_speed"] = fine.wind_speed.copy(data=np.hypot(*parts.values()))
    table = scores(guess, fine, 4).set_index(["variable", "scheme"])
    # The prediction is the baseline itself, so it has no skill and no lack of it.
    assert table.loc[("wind_speed", "prediction"), "skill"] == pytest.approx(0, abs=1e-6)
    alone = scores(guess[["wind_speed"]], fine, 4).set_index(["variable", "scheme"])
    assert alone.loc[("wind_speed", "prediction"), "skill"] != pytest.approx(0, abs=1e-3)
    draws = [guess + 0.1 * rng.standard_normal(fine.x_wind.shape) for _ in range(4)]
    drawn = scores(xr.concat(draws, "draw"), fine, 4).set_index(["variable", "scheme"])
    ours = drawn.loc[("x_wind", "prediction")]
    bare = drawn.loc[("x_wind", "conservative bicubic")]
    assert ours.crps_m_s == pytest.approx(
        crps(np.stack([d.x_wind for d in draws]), fine.x_wind.values, fair=True), rel=1e-5
    )
    assert bare.crps_m_s == bare.mae_m_s
    assert ours.spread_skill < 1


@pytest.mark.slow
def test_another_place_is_refused_across_the_date_line_too():
    fine = wind.gaussian(seed=3, snapshots=1, n=16)
    y, x = np.mgrid[:16, :16] * 0.1
    near = {
        "latitude": (("y", "x"), 50 + y),
        "longitude": (("y", "x"), (179 + x + 180) % 360 - 180),
    }
    far = near | {"latitude": (("y", "x"), 55 + y)}
    truth, guess = (fine.assign_coords(places) for places in (near, far))
    with pytest.raises(ValueError, match="differ in latitude by up to 5 degrees"):
        scores(guess, truth, 4)
    far = near | {"longitude": (("y", "x"), 90 + x)}
    with pytest.raises(ValueError, match="differ in longitude by up to"):
        scores(fine.assign_coords(far), truth, 4)


def test_the_ground_lies_as_the_fine_grid_does(coarse):
    """Turned, mirrored or of elsewhere it would be of another place, and nobody would see it."""
    square = coarse.isel(x=slice(0, 30))
    net = net_of(SuperResolution(2, 4, 1, wind=2, statics=1), (*VECTOR, "orography"))
    fine = {name: line for name, line in wind.finer(square, 2).items() if name in ("y", "x")}
    height = np.random.default_rng(0).normal(size=(60, 60)).astype("f4")
    ground = xr.Dataset({"orography": (("y", "x"), height, {"units": "m"})}, fine)
    known = predict(net, square, ground).x_wind
    np.testing.assert_array_equal(predict(net, square, ground.transpose("x", "y")).x_wind, known)
    covered = square.assign(orography=ground.orography[::2, ::2].drop_vars(["y", "x"]))
    turned = covered.assign(orography=covered.orography.transpose("x", "y"))
    seen = [wind.channels(one, VECTOR, ("orography",)).values for one in (covered, turned)]
    np.testing.assert_array_equal(*seen)
    with pytest.raises(ValueError, match=r"y descends .* mirror image"):
        predict(net, square, ground.isel(y=slice(None, None, -1)))
    with pytest.raises(ValueError, match="statics and the fine grid differ in x by up to 1e"):
        predict(net, square, ground.assign_coords(x=ground.x + 1e6))
    with pytest.raises(ValueError, match="orography is on time, y, x; the ground is on y and x"):
        predict(net, square, ground.expand_dims(time=2))
    places = ground.drop_vars(["y", "x"])
    np.testing.assert_array_equal(predict(net, square, places).x_wind, known)


def test_longitudes_are_counted_as_the_net_has_learned_them(coarse):
    """5° and 365° are one place, and 360 is far from all that a net has seen."""
    net = net_of(SuperResolution(2, 4, 1, wind=2, statics=1), (*VECTOR, "longitude"))
    places = {
        "latitude": ("y", np.linspace(50, 51, 60)),
        "longitude": ("x", np.linspace(-1, 1, 80)),
    }
    ground = xr.Dataset(coords=places)
    known = predict(net, coarse.drop_vars(["latitude", "longitude"], errors="ignore"), ground)
    for other in (ground.longitude + 360, ground.longitude % 360):
        found = predict(net, coarse, ground.assign_coords(longitude=other))
        np.testing.assert_allclose(found.x_wind, known.x_wind, atol=1e-4)
