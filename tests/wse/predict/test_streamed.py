"""Weight streaming: the equations, their bounds, their limits, golden values, refusals."""

import dataclasses
import json
from functools import cache

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import wse
from wse.machine import catalog, constants, specification
from wse.machine.machine import Sourced, numbers
from wse.models import shapes as workloads
from wse.models.shapes.workload import Layer, Workload
from wse.predict import arrays, bandwidth
from wse.predict import seconds as streamed
from wse.predict import step as step_module

model = cache(workloads.get)  # the largest take a second each to build
sizes = st.integers(1, 5000)

rows = st.lists(
    st.fixed_dictionaries(
        {
            "inputs": sizes,
            "outputs": sizes,
            "parameters": st.integers(0, 10**9),
            "multiplies": st.integers(0, 10**12),
            "block": st.sampled_from(["", "a", "b"]),
            "features": sizes,
            "shared": st.booleans(),
            "density": st.floats(0, 1),
        }
    ),
    min_size=1,
    max_size=6,
)


def any_net(found: list[dict]) -> Workload:
    """A row of layers: with weights or without, shared, thin, in blocks or not."""
    layers = tuple(Layer(name=f"layer_{i}", **row) for i, row in enumerate(found))
    return Workload("any", layers, layers[0].inputs, layers[-1].outputs)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(found=rows, systems=st.integers(1, 300), per_system=st.integers(1, 50))
def test_bounds_hold_and_parts_add_for_any_net(found, systems: int, per_system: int) -> None:
    net, batch = any_net(found), systems * per_system
    result = wse.estimate(net, batch=batch, machine=wse.CS2(systems, "streaming"), samples=10**6)
    lower, lockstep, upper = result.training_s
    assert 0 < lower <= lockstep * (1 + 1e-12)
    assert lockstep <= upper * (1 + 1e-12)
    assert sum(x.time_s for x in result.phases) == pytest.approx(result.total_s)
    assert sum(x.time_s for x in result.training) == pytest.approx(lockstep, rel=1e-9)
    fast, slow = result.training_interval_s
    assert fast <= lockstep * (1 + 1e-12)
    assert lockstep <= slow * (1 + 1e-12)
    assert result.step is not None
    parts = result.step.layer_times_s().sum()
    rest = float(result.step.times.input_s[0]) + result.step.step_s
    assert parts + rest == pytest.approx(result.step.upper_s)


@settings(deadline=None, max_examples=40)
@given(found=rows, systems=st.sampled_from([1, 2, 7, 64]), micro=st.integers(1, 9))
def test_merged_layers_take_what_they_took_apart(found, systems: int, micro: int) -> None:
    net, cluster = any_net(found), wse.CS2(systems)
    made = bandwidth.rates(net, cluster)
    batch = np.array([float(systems * micro)]), np.array([float(systems)])
    bounds = []
    for merged in (False, True):
        layers = arrays.shapes(net, cluster, "R2.0.3", merged=merged)
        for plan in arrays.plans(net):
            times = streamed.times(
                layers, made, plan, *batch, layers.density[None], np.array([float(micro)])
            )
            bounds.append([times.lower_s[0], times.lockstep_s[0], times.upper_s[0]])
    np.testing.assert_allclose(bounds[:3], bounds[3:], rtol=1e-12)


def test_two_layers_by_hand() -> None:
    """Numbers small enough to follow: every term of the module's words, on two systems."""
    first = Layer("first", 10, 10, 3_000_000, multiplies=10**9, features=4096)
    second = Layer("second", 10, 10, 6_000_000, multiplies=2 * 10**9, features=4096)
    net = Workload("two", (first, second), inputs=1000, outputs=1)
    made = step_module.step(net, wse.CS2(2), batch=8, release="R2.0.3")
    peak = 850_000 * 8 * 850e6 * constants.efficiency("WSE-2", "R2.0.3", 4096).value
    link, level = 150e9, 10e-6
    w = [3e6 * 2 / link + level, 6e6 * 2 / link + level]
    g = [3e6 * 4 / link + level, 6e6 * 4 / link + level]
    f = [4 * 2e9 / peak, 4 * 4e9 / peak]
    b = [4 * 2e9 / peak, 2 * f[1]]  # the first layer has no gradient of the samples
    forward = w[0] + max(f[0], w[1]) + f[1]
    backward = max(b[1], w[0]) + max(b[0], g[1])
    tail = g[0] + 3e6 / 37.5e9
    assert made.lockstep_s == pytest.approx(forward + backward + tail + 5.05e-3, rel=1e-12)
    busiest = max(sum(f) + sum(b), sum(w) + w[0], sum(g), 9e6 / 37.5e9, 4 * 4000 / 52.5e9)
    assert made.lower_s == pytest.approx(busiest + 5.05e-3, rel=1e-12)
    assert made.micro_batches == 1
    assert made.plan.name == "keep"


def test_gptj_is_exact_by_calibration() -> None:
    for release, rate in wse.published.GPTJ_SAMPLES_PER_S.items():
        batch = 120 if release == "R2.0.3" else 130  # as their logs say
        result = wse.estimate(model("GPT-J-6B"), batch=batch, machine=wse.CS2(2), release=release)
        assert result.samples_per_s == pytest.approx(rate, rel=5e-4)


def test_the_shares_and_the_set_up_are_those_that_calibration_finds() -> None:
    found, known = wse.calibrate.shares(), constants.SHARES
    for one, told in zip(found.anchors, known.anchors, strict=True):
        assert (told.wafer, told.features) == (one.wafer, one.features)
        assert told.value == pytest.approx(one.value, abs=5e-5)
    for (name, gain), (release, factor) in zip(found.releases, known.releases, strict=True):
        assert name == release
        assert factor == pytest.approx(gain, abs=5e-5)
    assert constants.version(known.narrow_since) == constants.version(found.narrow_since)
    for wafer, fitted in wse.calibrate.started().items():
        for name, number in numbers(fitted).items():
            own = getattr(constants.SETUPS[wafer], name)
            assert own.value == pytest.approx(number.value, rel=2e-3), (wafer, name)


@pytest.mark.parametrize("run", wse.published.STREAMED, ids=lambda x: f"{x.model} {x.machine}")
def test_every_streamed_run_lies_in_its_interval_and_near(run) -> None:
    cluster = dataclasses.replace(
        specification.find(run.machine), systems=run.systems, mode="streaming"
    )
    result = wse.estimate(run.model, batch=run.batch, machine=cluster, release=run.release)
    fast, slow = (result.samples / end for end in result.training_interval_s)
    assert slow <= run.samples_per_s <= fast
    assert result.samples_per_s == pytest.approx(run.samples_per_s, rel=0.02)


@settings(deadline=None, max_examples=60)
@given(
    widths=st.tuples(st.integers(1, 40_000), st.integers(1, 40_000)),
    wafer=st.sampled_from(["WSE-2", "WSE-3"]),
    release=st.sampled_from(["R1.6", "R1.8", "R2.0.3", "R2.4", "R2.10"]),
)
def test_efficiency_grows_with_width_without_a_step(widths, wafer: str, release: str) -> None:
    narrow, wide = sorted(widths)
    low, high = (constants.efficiency(wafer, release, width) for width in (narrow, wide))
    assert low.value <= high.value
    beside = constants.efficiency(wafer, release, wide + 1).value
    assert beside <= high.value * (1 + 1.5 / wide) + 1e-5  # no faster than a power of 1.5
    assert high.interval is not None
    assert high.interval[0] < high.value < high.interval[1] <= 1


def test_weights_cost_the_same_on_every_number_of_systems() -> None:
    net = model("Cerebras-GPT-6.7B")

    def weights_s(systems: int) -> float:
        one = step_module.step(net, wse.CS2(systems), 64 * systems, "R2.0.3")
        level = catalog.TREES["WSE-2"].level_latency_s.value
        visits = sum(layer.parameters > 0 for layer in net.layers)
        latency = visits * level * int(np.ceil(np.log2(systems)))
        return float(one.times.weights_s.sum()) - latency

    assert weights_s(192) == pytest.approx(weights_s(1), rel=1e-12)


def test_scaling_is_near_linear_with_the_batch_and_bends_without() -> None:
    """To 192 systems (Freund 2021): linear while each system keeps its samples."""
    net = model("Cerebras-GPT-6.7B")

    def rate(systems: int, batch: int) -> float:
        return wse.estimate(net, batch=batch, machine=wse.CS2(systems)).samples_per_s

    for systems in (2, 16, 64, 192):
        speedup = rate(systems, 60 * systems) / rate(1, 60)
        assert 0.98 * systems < speedup <= systems
    bent = rate(192, 192) / rate(1, 192)
    assert bent < 0.3 * 192
    one_each = wse.estimate(net, batch=192, machine=wse.CS2(192))
    assert one_each.step is not None
    assert {"weights", "gradients"} <= {*one_each.step.binding()[1]}


def test_more_systems_more_density_and_more_samples_never_surprise() -> None:
    net = model("GPT-2-small")
    found = wse.sweep(net, [64, 128, 256], systems=[1, 2, 4], density=[0.1, 0.5, 1.0])
    assert (found.step_s.diff("batch") > 0).all()
    assert (found.step_s.diff("systems") < 0).all()
    assert (found.step_s.diff("density") >= 0).all()
    assert (found.lower_s <= found.step_s).all()
    assert (found.step_s <= found.upper_s).all()


def test_a_sweep_holds_what_single_estimates_say() -> None:
    nets = {width: wse.workload.dense(width=width) for width in (64, 512)}
    found = wse.sweep(nets, [60, 120], systems=[1, 7, 4], density=[0.25, 1.0], machine=wse.CS3())
    assert found.sizes == {"model": 2, "batch": 2, "systems": 3, "density": 2}
    assert np.isnan(found.step_s.sel(systems=7)).all()
    for width, net in nets.items():
        for batch in (60, 120):
            for density in (0.25, 1.0):
                one = wse.estimate(net.sparse(density), batch=batch, machine=wse.CS3(4))
                here = found.sel(model=width, batch=batch, systems=4, density=density)
                assert float(here.step_s) == pytest.approx(one.step_s, rel=1e-12)
                assert float(here.upper_s) * one.samples / batch == pytest.approx(
                    one.training_s[2], rel=1e-12
                )


def test_a_large_sweep_is_cut_into_parts_that_fit_together() -> None:
    net = wse.workload.dense(width=64)
    whole = wse.sweep(net, range(1, 10_001))
    part = wse.sweep(net, range(9_001, 10_001))
    xr.testing.assert_equal(whole.sel(batch=slice(9_001, None)), part)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"batch": [0]}, "batch is .*; it must hold positive integers"),
        ({"batch": []}, "batch is .*; it must hold positive integers"),
        ({"batch": [1.5]}, "batch is .*; it must hold positive integers"),
        ({"batch": [1], "systems": [-1]}, "systems is .* positive integers"),
        ({"batch": [1], "density": [1.5]}, "density is .* between 0 and 1"),
        ({"batch": [1], "release": "new"}, "release is 'new'.* known are R0.9"),
    ],
)
def test_bad_sweeps_are_refused(options, rule: str, untyped) -> None:
    with pytest.raises(ValueError, match=rule):
        wse.sweep(wse.workload.dense(width=8), **options)


def test_micro_batches_are_the_fewest_that_fit() -> None:
    net = model("GPT-J-6B")
    usable = 40e9 * constants.STREAMING.usable_sram.value
    for batch in (1, 50, 55, 56, 500):
        made = step_module.step(net, wse.CS2(), batch, "R2.0.3")
        held = made.plan.bytes_per_sample
        assert -(-batch // made.micro_batches) * held <= usable
        if made.micro_batches > 1:
            assert batch / (made.micro_batches - 1) * held > usable
        assert made.sram_share <= 1


def test_a_given_micro_batch_is_kept_and_saves_the_search() -> None:
    net = model("GPT-J-6B")
    found = wse.estimate(net, batch=120, machine=wse.CS2(2), micro_batch=10)
    free = wse.estimate(net, batch=120, machine=wse.CS2(2))
    assert found.step is not None
    assert found.step.micro_batches == 6
    (search,) = [phase for phase in free.setup if phase.name == "setup_search"]
    assert free.setup_s - found.setup_s == pytest.approx(search.time_s)
    assert search.time_s == pytest.approx(constants.SETUP.search_s.value, rel=0.02)
    with pytest.raises(ValueError, match=r"micro_batch is 600; .* pass micro_batch=\d+ or fewer"):
        wse.estimate(net, batch=1200, machine=wse.CS2(2), micro_batch=600)


@pytest.mark.parametrize(("size", "most"), [(25, 5), (7, 1), (61, 1), (120, 60)])
def test_a_micro_batch_divides_what_a_system_has(size: int, most: int) -> None:
    with pytest.raises(ValueError, match=rf"micro_batch is {size} for 60 .*micro_batch={most}$"):
        wse.estimate(model("GPT-J-6B"), batch=120, machine=wse.CS2(2), micro_batch=size)


def test_setup_of_llama_is_what_its_log_shows() -> None:
    found = wse.estimate(model("Llama-7B"), batch=100)
    seconds = {phase.name: phase.time_s for phase in found.setup}
    assert seconds["setup_search"] + seconds["setup_codegen"] == pytest.approx(2037, rel=0.01)
    assert seconds["setup_weights"] == pytest.approx(87, rel=0.001)
    # All phases of its log, with what is left of 2037 s of compiling; other logs moved some.
    assert found.setup_s == pytest.approx(2037 + 52 + 47 + 87 + 85 + 19, rel=0.02)
    assert found.checkpoint_s == pytest.approx(60 * 6.738, rel=1e-3)  # ALCF: 60 s per 1e9


def test_zeros_leave_the_stream_below_one_half_and_the_products_at_once() -> None:
    net = model("GPT-3-1.3B")

    def made(density: float):
        return step_module.step(net.sparse(density), wse.CS2(), 1, "R2.0.3").times

    block = 1  # the first product of the first block; layer 0 is the embedding
    dense, half, quarter = made(1.0), made(0.5), made(0.25)
    assert half.weights_s[0, block] == dense.weights_s[0, block]
    assert quarter.weights_s[0, block] == pytest.approx(dense.weights_s[0, block] / 2)
    assert half.forward_s[0, block] == pytest.approx(dense.forward_s[0, block] / 2)
    assert half.gradients_s[0, block] == pytest.approx(dense.gradients_s[0, block] / 2)
    assert quarter.forward_s[0, 0] == dense.forward_s[0, 0]
    assert quarter.weights_s[0, -1] == dense.weights_s[0, -1]


def test_a_sparse_cluster_thins_the_workload() -> None:
    net = model("GPT-2-small")
    method = wse.sparsity.Static(0.75)
    found = wse.estimate(net, batch=64, machine=wse.CS2(sparsity=method))
    assert found.training_s == wse.estimate(net.sparse(0.25), batch=64).training_s
    resident = wse.estimate(wse.workload.dense(width=512), machine=wse.CS2(sparsity=method))
    assert any(text.startswith("zeros among the weights") for text in resident.cautions)


def test_zeros_among_activations_count_only_as_far_as_harvested() -> None:
    net = model("GPT-2-small")
    plain = step_module.step(net, wse.CS2(), 8, "R2.0.3")
    sparse = step_module.step(net.sparse(1.0, zeros=0.5), wse.CS2(), 8, "R2.0.3")
    assert sparse.lockstep_s == plain.lockstep_s
    fast = step_module.step(net.sparse(1.0, zeros=0.5), wse.CS2(), 8, "R2.0.3", fast=True)
    assert fast.lockstep_s < step_module.step(net, wse.CS2(), 8, "R2.0.3", fast=True).lockstep_s


@pytest.mark.parametrize(
    ("name", "changes", "cluster", "batch", "rule"),
    [
        ("GPT-J-6B", {}, wse.CS2(7), 120, "they must divide it: pass batch=126"),
        ("GPT-J-6B", {"max_sequence_length": 9_000_000}, wse.CS2(), 1, "shorten the sequence"),
        ("U-Net-3D", {}, wse.CS2(), 1, "need .* GB, computed again as far as possible, of the 36"),
        ("GPT-120T", {"num_hidden_layers": 500}, wse.CS2(), 1, "MemoryX 2400 TB holds 2400"),
        ("GPT-120T", {}, wse.CG1(), 64, "MemoryX of CG-1 holds 82 TB"),
        (
            "GPT-J-6B",
            {},
            wse.CS1(mode="streaming"),
            1,
            "weights are streamed to WSE-2 and WSE-3 only",
        ),
    ],
)
def test_what_fits_nowhere_is_refused(name, changes, cluster, batch: int, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        wse.estimate(model(name, **changes), batch=batch, machine=cluster)


@pytest.mark.parametrize("ask", [wse.estimate, wse.inference])
@pytest.mark.parametrize(
    ("name", "key", "sizes"),
    [
        ("U-Net-Severstal", "size", (50_000, 20_000)),
        ("U-Net-3D", "size", (1024, 1024, 2048)),
        ("GPT-2-small", "max_sequence_length", (90_000_000,)),
    ],
)
def test_the_size_that_a_refusal_names_fits(ask, name, key, sizes) -> None:
    def build(sizes: tuple[int, ...]) -> Workload:
        return workloads.get(name, **{key: sizes if key == "size" else sizes[0]})

    with pytest.raises(ValueError, match="more systems do not help") as caught:
        ask(build(sizes), batch=1, machine="cs2")
    told = str(caught.value).partition("to about ")[2].partition(", or")[0]
    fit = tuple(int(word) for word in told.removesuffix(" tokens").split(" x "))
    assert ask(build(fit), batch=1, machine="cs2").batch == 1
    with pytest.raises(ValueError, match="more systems do not help"):
        ask(build(tuple(int(1.3 * n) // 32 * 32 for n in fit)), batch=1, machine="cs2")


@pytest.mark.parametrize(("release", "like"), [("R1.6", "R1.7.1"), ("1.9.1", "R1.8")])
def test_releases_that_were_not_calibrated_are_assumptions(release, like) -> None:
    share, known = (constants.efficiency("WSE-2", name, 4096) for name in (release, like))
    assert share.value == known.value
    assert share.status == "assumed"
    assert share.interval is not None
    assert known.interval is not None
    assert share.interval[0] < known.interval[0] < known.interval[1] < share.interval[1]
    assert f"{release} was not calibrated" in share.source


@pytest.mark.parametrize("release", ["R2.1.1", "Release_2.10.0"])
def test_later_releases_are_as_the_last_that_showed_a_gain(release) -> None:
    share, known = (constants.efficiency("WSE-2", name, 4096) for name in (release, "R2.0.3"))
    assert (share.value, share.interval) == (known.value, known.interval)


@pytest.mark.parametrize(
    ("machine", "release", "rule"),
    [
        (wse.CS2(), "R3.1", "release is 'R3.1', which is not known; known are R0.9 to R2.10"),
        (wse.CS2(), "R0.9", "which WSE-2 never had in streaming mode; it had R1.0 to R2.10"),
        (wse.CS3(), "R1.8", "which WSE-3 never had in streaming mode; it had R2.2 to R2.10"),
        (wse.CS2(mode="pipelined"), "R2.3", "never had in pipelined mode; it had R1.0 to R2.0"),
    ],
)
def test_releases_that_a_machine_never_had_are_refused_everywhere(machine, release, rule) -> None:
    net = wse.workload.dense(width=64)
    for ask in (wse.estimate, wse.inference):
        with pytest.raises(ValueError, match=rule):
            ask(net, machine=machine, release=release)
    if machine.mode is None:
        with pytest.raises(ValueError, match=rule):
            wse.sweep(net, [100], machine=machine, release=release)


def test_a_release_that_is_no_version_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"'R2.O.3', which is no version: did you mean 'R2.0.3'"):
        wse.estimate(model("GPT-J-6B"), release="R2.O.3")


def test_narrow_layers_get_less_and_far_ones_a_wide_interval() -> None:
    shares = {w: constants.efficiency("WSE-2", "R2.3", w) for w in (64, 480, 1024, 2048, 4096)}
    assert [x.value for x in shares.values()] == sorted(x.value for x in shares.values())

    def wide(width: int) -> float:
        low, high = shares[width].interval or (1.0, 1.0)
        return high / low

    assert wide(480) == pytest.approx(wide(2048)) == pytest.approx(wide(4096))
    assert 1.4 < wide(480) < wide(1024) < wide(64)
    assert {shares[w].status for w in (480, 2048, 4096)} == {"calibrated"}
    assert shares[64].status == "assumed"
    older = constants.efficiency("WSE-2", "R2.0.3", 1024).interval
    assert older is not None
    assert shares[1024].interval is not None
    assert older[0] < shares[1024].interval[0] / 2  # narrow models gained up to tenfold


def test_kinds_that_were_not_calibrated_are_a_range_with_a_reason() -> None:
    convolution = constants.efficiency("WSE-2", "R2.5", 4096, "convolution")
    assert convolution.status == "assumed"
    assert convolution.interval is not None
    assert convolution.interval[1] / convolution.interval[0] >= 4
    found = wse.estimate(model("U-Net"), batch=8)
    assert "assumed" in {x.status for x in found.phases if x.name == "compute"}
    assert any("for convolutions nothing was published" in text for text in found.cautions)


def test_which_store_holds_which_model() -> None:
    def store(name: str) -> str:
        return bandwidth.surroundings(model(name), wse.CS2())[0].name

    assert [store(name) for name in ("GPT-3-175B", "GPT-1T", "GPT-120T")] == [
        "MemoryX 4 TB",
        "MemoryX 2400 TB",
        "MemoryX 2400 TB",
    ]


def test_intervals_stand_at_their_ends() -> None:
    fast, slow = (constants.at_end(constants.STREAMING, end) for end in (True, False))
    assert fast.pass_s.value <= constants.STREAMING.pass_s.value <= slow.pass_s.value
    assert fast.input_bytes_per_s.value >= slow.input_bytes_per_s.value
    assert fast.sparse_weight_bytes == slow.sparse_weight_bytes
    plain = Sourced(1.0, "s", "assumed", "a test")
    assert constants.end(plain, fast=True) == plain


def test_dataset_document_and_text() -> None:
    found = wse.estimate(model("GPT-2-small"), batch=128, machine=wse.CS2(2))
    data = found.dataset
    assert dict(data.sizes)["layer"] == len(found.workload.layers)
    assert float(data.time_s.sum()) == pytest.approx(found.total_s)
    assert float(data.parameters.sum()) > found.workload.parameters  # the head is shared
    assert set(np.unique(data.binding)) <= {"compute", "weights", "gradients"}
    document = found.document()
    assert json.loads(json.dumps(document)) == document
    assert document["tokens_per_s"] == pytest.approx(found.samples_per_s * 1024)
    for shown in (str(found), found._repr_html_()):
        for text in ("R2.10", "micro-batches", "tokens/s", "caution: efficiency", "dense peak"):
            assert text in shown


def test_dataset_survives_a_file(tmp_path) -> None:
    data = wse.estimate(model("GPT-2-small"), batch=128).dataset
    data.to_netcdf(tmp_path / "estimate.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "estimate.nc", engine="h5netcdf") as again:
        xr.testing.assert_equal(again.load(), data)


def test_more_systems_than_planned_is_a_caution() -> None:
    found = wse.estimate(model("GPT-J-6B"), batch=193, machine=wse.CS2(193))
    assert any("193 systems are more than the 192 planned" in text for text in found.cautions)


def test_a_store_of_ones_own_counts() -> None:
    store = catalog.STORES["WSE-2"][0]
    slow = dataclasses.replace(store, bytes_per_s=Sourced(1e9, "B/s", "assumed", "a test"))
    cluster = dataclasses.replace(wse.CS2(2), store=slow)
    found = wse.estimate(model("GPT-J-6B"), batch=120, machine=cluster)
    assert found.binding == "weights"


def test_inference_takes_a_third_of_a_step_where_products_bind() -> None:
    net = model("Cerebras-GPT-6.7B")
    forward = wse.inference(net, 128)
    train = wse.estimate(net, batch=128)
    assert forward.latency_s == pytest.approx(train.step_s / 3, rel=0.1)
    assert forward.binding == "compute"
    assert wse.inference(net, 1).binding == "weights"
    fast, slow = forward.interval_s
    assert fast <= forward.latency_s <= slow
    assert "samples/s" in str(forward)


def test_a_resident_net_answers_in_the_time_of_its_input() -> None:
    found = wse.inference(wse.workload.dense(width=512), 1000, machine=wse.CS2(mode="pipelined"))
    a = catalog.PIPELINED.input_s_per_sample.value
    assert found.latency_s == pytest.approx(1000 * a, rel=1e-3)
    assert found.binding == "input"


@pytest.mark.parametrize(
    ("net", "batch", "cluster", "rule"),
    [
        (wse.workload.dense(width=8), 0, None, "batch is 0; it must be a positive integer"),
        (wse.workload.dense(width=8), 3, wse.CS2(2), "batch is 3 on 2 systems"),
        (
            wse.workload.dense(width=8),
            1,
            wse.CS3(mode="pipelined"),
            "runs are known of WSE-1 and WSE-2",
        ),
        (model("GPT-2-small"), 1, wse.CS2(mode="pipelined"), "no plain chain of dense"),
        (model("GPT-J-6B", max_sequence_length=10**6), 1, None, "in one layer, of the 36"),
    ],
)
def test_bad_inference_is_refused(net, batch: int, cluster, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        wse.inference(net, batch, machine=cluster)


@pytest.mark.parametrize(
    ("machine", "more", "fewer"), [("cs2", 36, 32), ("cs3", 18, 16), ("cs2", 576, 32)]
)
def test_more_systems_that_are_slower_than_fewer_say_so(machine, more, fewer) -> None:
    made = {"cs2": wse.CS2, "cs3": wse.CS3}[machine]
    one, other = (
        wse.estimate(model("DiT-XL/2"), batch=576, machine=made(systems=n)) for n in (more, fewer)
    )
    assert one.total_s > other.total_s
    (said,) = (x for x in one.cautions if "through a tree of" in x)
    assert said.startswith(f"{fewer} systems take ")
    assert not any("through a tree of" in x for x in other.cautions)


@pytest.mark.parametrize(("convolved", "status"), [(0.01, "calibrated"), (0.5, "assumed")])
def test_the_times_of_products_and_convolutions_add_up(convolved: float, status: str) -> None:
    kinds = "products", "convolution"
    alone = [constants.SHARES.of("WSE-2", "R1.8.0", 5000, kind) for kind in kinds]
    both = constants.SHARES.of("WSE-2", "R1.8.0", 5000, "products", convolved)
    for end in range(3):
        times = [1 / one.ends[end] for one in alone]
        mixed = (1 - convolved) * times[0] + convolved * times[1]
        assert 1 / both.ends[end] == pytest.approx(mixed)
    assert both.status == status
