"""The layer-pipelined estimate: golden totals, bounds, monotony, refusals."""

import dataclasses
import json
import subprocess
import sys

import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import wse
from wse.machine.cluster import Cluster
from wse.machine.machine import Sourced
from wse.machine.published import TABLE4

counts = st.integers(min_value=1, max_value=3_000)
GOLDEN_S = {32: 177.6, 128: 178.2, 512: 191.5, 2048: 810.2}
ERRORS_PERCENT = {32: -0.6, 128: 0.4, 512: 0.2, 2048: 0.0}


@pytest.mark.parametrize("row", TABLE4, ids=lambda row: str(row.units))
def test_golden_totals(row) -> None:
    result = wse.estimate(wse.workload.dense(width=row.units), machine=wse.CS2())
    error_percent = 100 * (result.total_s / row.cs2_total_s - 1)
    assert round(result.total_s, 1) == GOLDEN_S[row.units]
    assert error_percent == pytest.approx(ERRORS_PERCENT[row.units], abs=0.06)
    assert result.train_s == pytest.approx(1e6 / row.cs2_samples_per_s, rel=0.06)
    assert result.setup_s == pytest.approx(row.cs2_setup_s, rel=0.01)
    assert result.binding == "input"
    assert result.cautions == ()
    assert {phase.status for phase in result.phases} == {"sourced", "calibrated"}


def estimate(width=512, inputs=1000, depth=8, samples=1_000_000) -> wse.Estimate:
    net = wse.workload.dense(inputs=inputs, width=width, depth=depth)
    return wse.estimate(net, samples=samples, batch=1)


@settings(deadline=None, max_examples=40)
@given(width=counts, inputs=counts, depth=st.integers(1, 9), samples=st.integers(1, 10**9))
def test_phases_add_and_bounds_hold(width: int, inputs: int, depth: int, samples: int) -> None:
    result = estimate(width, inputs, depth, samples)
    assert sum(phase.time_s for phase in result.phases) == pytest.approx(result.total_s)
    assert 0 < result.setup_s < result.lower_s <= result.total_s
    assert all(phase.limit_s <= phase.time_s for phase in result.phases)
    assert result.samples_per_s * result.train_s == pytest.approx(samples)


@settings(deadline=None, max_examples=40)
@given(width=counts, inputs=counts, depth=st.integers(1, 9), samples=st.integers(1, 10**9))
def test_more_work_never_takes_less(width: int, inputs: int, depth: int, samples: int) -> None:
    base = estimate(width, inputs, depth, samples)
    for more in (
        estimate(width + 1, inputs, depth, samples),
        estimate(width, inputs + 1, depth, samples),
        estimate(width, inputs, depth + 1, samples),
    ):
        assert more.setup_s >= base.setup_s
        assert more.train_s >= base.train_s
    assert estimate(width, inputs, depth, samples + 1).train_s > base.train_s


def test_batch_is_recorded_and_changes_no_time() -> None:
    net = wse.workload.dense(width=512)
    small, large = wse.estimate(net, batch=100), wse.estimate(net, batch=1000)
    assert (small.batch, large.batch) == (100, 1000)
    assert small.phases == large.phases


@pytest.mark.parametrize(
    ("sizes", "batch", "caution"),
    [
        ({"width": 4096}, 100, "width 4096 lies outside"),
        ({"width": 16}, 100, "width 16 lies outside"),
        ({"width": 512, "depth": 3}, 100, "depth 3"),
        ({"width": 512, "inputs": 784}, 100, "786 numbers per sample"),
        ({"width": 512}, 10, "batch 10 is below 100"),
    ],
)
def test_outside_the_calibrated_range_it_says_so(sizes, batch: int, caution: str) -> None:
    result = wse.estimate(wse.workload.dense(**sizes), batch=batch)
    assert len(result.cautions) == 1
    assert result.cautions[0].startswith(caution)
    assert caution in str(result)


def test_another_kind_of_layer_is_a_caution() -> None:
    net = wse.workload.dense(width=512)
    layers = (*net.layers[:-1], dataclasses.replace(net.layers[-1], kind="convolution"))
    changed = dataclasses.replace(net, layers=layers)
    result = wse.estimate(changed, machine=wse.CS2(mode="pipelined"))
    assert any("only such nets were calibrated" in caution for caution in result.cautions)


def test_a_slow_link_binds_and_is_no_longer_called_calibrated() -> None:
    link = Sourced(1e9, "bit/s", "assumed", "a test")
    machine = dataclasses.replace(wse.catalog.CS2, name="slow", host_bits_per_s=link)
    result = wse.estimate(wse.workload.dense(width=512), machine=Cluster(machine))
    phase = result.training[0]
    assert phase.time_s == phase.limit_s == pytest.approx(1e6 * 1002 * 32 / 1e9)
    assert phase.status == "derived"
    assert any(caution.startswith("slow is not") for caution in result.cautions)


def test_a_wafer_without_runs_in_the_mode_is_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="with WSE-3; in pipelined mode runs are known of WSE-1"):
        wse.estimate(wse.workload.dense(), machine=wse.CS3(mode="pipelined"))


def test_a_cs1_gives_its_one_published_run_and_ends_wider_than_a_cs2() -> None:
    """120,833 samples/s and 25 s of compiling, FC-MNIST: pscedu/psc-wpdocs."""
    first, second = (wse.estimate("FC-MNIST", machine=name) for name in ("cs1", "cs2"))
    assert first.samples_per_s == pytest.approx(120_832.56, rel=1e-4)
    assert "mode pipelined, the only one of WSE-1; release R2.0" in first.why
    seconds = {phase.name: phase for phase in first.phases}
    compiled_s = seconds["setup_front"].time_s + seconds["setup_place"].time_s
    assert compiled_s == pytest.approx(25, rel=0.1)  # by numbers of WSE-2 alone
    for name in ("setup_interval_s", "training_interval_s"):
        (low, high), (least, most) = getattr(first, name), getattr(second, name)
        assert high / low > most / least
    assert any("one run is known of WSE-1" in caution for caution in first.cautions)
    assert not any("of WSE-1" in caution for caution in second.cautions)


@pytest.mark.parametrize("model", ["BERT-large", "U-Net-Severstal", "GPT-J-6B"])
def test_any_model_is_pipelined_on_a_cs1_which_had_no_other_mode(model: str) -> None:
    found = wse.estimate(model, machine="cs1")
    low_s, high_s = found.training_interval_s
    assert found.cluster.mode == "pipelined"
    assert low_s < found.train_s < high_s
    assert found.train_s > wse.estimate(model, machine=wse.CS2(mode="pipelined")).train_s


def test_what_a_cs1_cannot_do_names_the_machine_that_can() -> None:
    with pytest.raises(ValueError, match=r"18 GB of WSE-1: .* machine=wse.CS2\(mode='streaming'"):
        wse.estimate("GPT-3-175B", machine="cs1")
    with pytest.raises(ValueError, match=r"systems is 2; .* machine=wse.CS2\(mode='streaming'"):
        wse.estimate("FC-MNIST", machine="2 x cs1")
    with pytest.raises(ValueError, match="with WSE-3; in pipelined mode"):
        wse.inference("FC-MNIST", machine=wse.CS3(mode="pipelined"))


def test_inference_takes_a_model_by_name_and_knows_a_cs1() -> None:
    named = wse.inference("FC-MNIST", 8, machine="cs1")
    assert (
        named.latency_s == wse.inference(wse.workloads.get("FC-MNIST"), 8, machine="cs1").latency_s
    )
    assert named.latency_s > wse.inference("FC-MNIST", 8, machine="cs2").latency_s


def test_answers_of_a_function_are_refused_with_what_to_pass() -> None:
    with pytest.raises(ValueError, match=r"a function; .* pass wse.trace\(loss, params, batch\)"):
        wse.inference(lambda params, _: params["w"])


@pytest.mark.parametrize("ask", [wse.estimate, wse.inference, wse.compare])
def test_what_was_read_of_a_file_is_told_to_pass_its_workload(ask, tmp_path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("model: {name: fc_mnist, hidden_sizes: [50, 50]}")
    with pytest.raises(ValueError, match=r"a ReadModel, of mine; .* pass its workload"):
        ask(wse.read_model(path))


def test_a_net_beyond_the_wafer_is_refused() -> None:
    with pytest.raises(ValueError, match="must stay within the 40 GB of WSE-2: make the"):
        wse.estimate(wse.workload.dense(width=60_000), machine=wse.CS2(mode="pipelined"))


def test_several_systems_are_refused_in_pipelined_mode() -> None:
    with pytest.raises(ValueError, match="systems is 4; the pipelined estimate holds for one"):
        wse.estimate(wse.workload.dense(), machine=wse.CS2(4, mode="pipelined"))


def test_a_cluster_in_the_place_of_parameters_is_refused() -> None:
    with pytest.raises(ValueError, match="a workload has its own: pass the cluster as machine"):
        wse.estimate(wse.workload.dense(), wse.CS2())


@pytest.mark.parametrize(
    ("samples", "batch", "rule"),
    [
        (0, 100, "samples is 0; it must be a positive integer"),
        (1000, -1, "batch is -1; it must be a positive integer"),
        (10, 100, "batch is 100 with 10 samples; a batch holds at most all samples"),
    ],
)
def test_bad_counts_are_refused(samples: int, batch: int, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        wse.estimate(wse.workload.dense(), samples=samples, batch=batch)


def test_dataset_has_phases_units_status_and_errors() -> None:
    result = wse.estimate(wse.workload.dense(width=512))
    data = result.dataset
    assert isinstance(data, xr.Dataset)
    assert list(data.phase.values)[-3:] == ["setup_place", "input", "units"]
    assert data.time_s.attrs["units"] == "s"
    assert float(data.time_s.sum()) == pytest.approx(result.total_s)
    assert set(data.status.values) == {"sourced", "calibrated"}
    assert data.attrs["total_s"] == result.total_s
    assert data.attrs["train_leave_one_out_mape_percent"] == pytest.approx(4.9, abs=0.05)
    assert len(data.attrs["setup_in_sample_percent"]) == 4


def test_dataset_survives_a_file(tmp_path) -> None:
    data = wse.estimate(wse.workload.dense(width=512)).dataset
    data.to_netcdf(tmp_path / "estimate.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "estimate.nc", engine="h5netcdf") as again:
        xr.testing.assert_equal(again.load(), data)


def test_text_and_html_say_what_is_calibrated() -> None:
    result = wse.estimate(wse.workload.dense(width=512))
    for shown in (str(result), result._repr_html_()):
        assert "calibrated" in shown
        assert "2.9 and 4.9 %" in shown


def test_html_escapes_names() -> None:
    net = dataclasses.replace(wse.workload.dense(width=512), name="<script>")
    assert "<script>" not in wse.estimate(net)._repr_html_()


def test_document_is_json() -> None:
    document = wse.estimate(wse.workload.dense(width=512)).document()
    assert json.loads(json.dumps(document)) == document


def test_it_computes_without_jax_and_starts_without_xarray() -> None:
    program = (
        "import sys, wse, wse.cli.main\n"
        "heavy = {'jax', 'flax', 'xarray', 'numpy', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "text = str(wse.estimate(wse.workload.dense()))\n"
        "assert not {'jax', 'flax', 'xarray'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_contents_are_listed_and_unknown_names_refused() -> None:
    assert {"CS2", "Machine", "catalog", "estimate", "workload"} <= set(dir(wse))
    for name in dir(wse):
        assert getattr(wse, name) is not None
    with pytest.raises(AttributeError, match="wse has no 'CS9'; it has CG1"):
        _ = wse.CS9  # pyright: ignore[reportAttributeAccessIssue]


def test_convolutions_are_placed_in_pipelined_mode() -> None:
    """The slowest rectangle sets the rate; what is not placed keeps a share of the peak."""
    machine = wse.CS2(mode="pipelined")
    net = wse.layout.unet((256, 256), (32, 64, 128, 256), inputs=1)
    kernels = [wse.layout.Kernel.of(node.shape) for node in net.nodes]
    cycles = wse.layout.pipeline(kernels).cycles_per_sample
    found = wse.estimate("U-Net-Severstal", machine=machine, samples=1000)
    units = found.phases[-1]
    assert units.time_s == pytest.approx(1000 * cycles / machine.machine.clock_hz.value)
    low_s, high_s = units.interval_s
    assert low_s == pytest.approx(units.time_s / 2)
    assert high_s == pytest.approx(2 * units.time_s)
    assert low_s <= 1000 * 49_168 / 850e6 <= high_s  # the vendor's own estimate
    assert not any("no placement" in caution for caution in found.cautions)
    large = wse.estimate("U-Net-5K", machine=machine, samples=1000)
    assert any("no placement of these convolutions" in caution for caution in large.cautions)
