"""Convolutions estimated by their layouts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wse
from wse import workloads
from wse.predict import grid

SMALL = workloads.unet("small", size=(64, 64), filters=(8, 16), channels=3)


def test_compute_of_a_step_is_what_layouts_and_kernels_make_of_it() -> None:
    found = wse.estimate(SMALL, batch=64, micro_batch=64, machine="cs2")
    machine, laid = wse.catalog.CS2, grid.laid_out(SMALL, wse.catalog.CS2, 64)
    assert [x.name for x in laid] == [x.name for x in SMALL.layers if x.kind == "convolution"]
    for one in laid:
        assert sum(one.parts().values()) == one.cycles
        assert {*one.parts()} == {*grid.PARTS}
        assert one.parts()["compute"] >= 3 * sum(x.cost.compute_cycles for x in one.placed)
        assert (one.norm_cycles > 0) == (one.name.endswith(("1", "2")))
    kernels = wse.constants.SHARES.kernels
    cycles = sum(x.cycles for x in laid)
    passes = 2 * len(SMALL.layers) * wse.constants.STREAMING.pass_s.value
    step_s = sum(found.step.layer_times_s()[:, [1, 3]].sum(axis=1)) - passes
    # Nobody asks for the gradient of the images: the first layer does two thirds.
    first = laid[0].cycles / 3
    known_s = (cycles - first) / machine.clock_hz.value / kernels.value
    assert step_s == pytest.approx(known_s, rel=1e-3)
    phase = next(x for x in found.phases if x.name == "compute")
    assert phase.status == "assumed"
    low, high = found.step.share.interval or (0.0, 1.0)
    assert high / low == pytest.approx(4)


def test_a_sweep_is_of_the_same_layouts() -> None:
    batches = [8, 24, 64, 300]
    found = wse.sweep(SMALL, batches, systems=[1, 4]).samples_per_s
    for batch in batches:
        for systems in (1, 4):
            one = wse.estimate(SMALL, batch=batch, machine=wse.CS2(systems, "streaming"))
            there = float(found.sel(batch=batch, systems=systems).squeeze())
            assert there == pytest.approx(one.samples_per_s, rel=1e-9)


def test_a_traced_net_is_laid_out_as_its_workload_by_name() -> None:
    made = wse.zoo.traceable(SMALL, batch=4)
    traced = wse.traced.workload(wse.trace(made.loss, made.params, made.batch))
    mine, known = (grid.laid_out(x, wse.catalog.CS2, 16) for x in (traced, SMALL))
    # The head of one tap is a product there, in the program of the convolution before it.
    assert [x.multiplies for x in mine[:6]] == [x.multiplies for x in known[:6]]
    assert sum(x.multiplies for x in mine) == sum(x.multiplies for x in known)
    assert [x.cycles for x in mine[:5]] == [x.cycles for x in known[:5]]


def test_a_text_net_and_a_net_that_does_not_fit_are_not_laid_out() -> None:
    assert grid.laid_out(workloads.get("GPT-2-small"), wse.catalog.CS2, 8) == ()
    with pytest.raises(ValueError, match="GB of WSE-2 that activations may use"):
        wse.estimate("U-Net-3D")


def test_convolutions_of_one_axis_and_strides_are_laid_out() -> None:
    def loss(w, x):
        numbers = ("NWC", "WIO", "NWC")
        y = jax.lax.conv_general_dilated(x, w, (2,), "SAME", dimension_numbers=numbers)
        return jnp.mean(y**2)

    found = wse.estimate(loss, np.ones((5, 8, 16), "f4"), np.ones((32, 128, 8), "f4"))
    layer = found.workload.layers[0]
    (shape,) = layer.grid
    assert (shape.batch, shape.size, shape.taps, shape.stride) == (1, (1, 128), (1, 5), 2)
    assert found.step is not None
    assert "its layout leaves" in found.step.share.source
