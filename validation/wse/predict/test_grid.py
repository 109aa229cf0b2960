"""What layouts cost, beside the stepped mesh; and what kernels of transformers reach of layouts."""

import numpy as np
import pytest

from wse import constants, layout, mesh
from wse.layout.plan import fitting
from wse.mesh import Instruction, Program, Stream

# PEs across and down, places of one PE across and down, channels of one PE, filters, parts of the
# channels: ten convolutions of three by three taps.
SHAPES = (
    (2, 2, 16, 16, 2, 2, 1),
    (3, 2, 24, 24, 2, 4, 1),
    (4, 3, 32, 16, 2, 4, 2),
    (2, 4, 20, 30, 4, 4, 1),
    (5, 3, 16, 40, 2, 8, 4),
    (3, 3, 28, 28, 4, 4, 2),
    (6, 2, 18, 24, 2, 6, 3),
    (2, 6, 30, 20, 2, 4, 2),
    (4, 4, 25, 25, 2, 2, 1),
    (8, 3, 20, 20, 4, 8, 4),
)


def laid(across, down, wide, tall, channels, filters, parts):
    """A convolution on a small wafer of one multiply-add a cycle, and its cost."""
    shape = layout.Shape("c", 1, (down * tall, across * wide), channels * parts, filters, (3, 3))
    way = layout.Layout(1, parts, 1, (down, across))
    wafer = layout.Wafer(across * parts, down, memory_bytes=2**20, multiplies_per_cycle=1)
    return shape, way, layout.cost(shape, way, wafer)


def summed(columns, rows, words, kind=mesh.reduce):
    """Cycles of the mesh for sums over a rectangle, with the best pattern of each axis."""
    if columns * rows == 1:
        return 0
    patterns = ("chain", "tree", "star", "two-phase")
    values = np.ones((rows, columns, words))
    return min(mesh.simulate(kind(mesh.Grid(columns, rows), values, x)).cycles for x in patterns)


def exchanged(across, down, wide, tall, pairs):
    """Cycles of the mesh for the edges of so many pairs of half-precision numbers a place."""
    tall, wide = tall * pairs, wide * pairs
    run = mesh.simulate(
        mesh.stencil(mesh.Grid(across, down), np.zeros((down * tall, across * wide))).program
    )
    return run.cycles - 5 * tall * wide  # without the arithmetic


@pytest.mark.parametrize("case", SHAPES)
def test_parts_of_a_convolution_take_what_the_mesh_takes(case):
    across, down, wide, tall, channels, filters, parts = case
    shape, way, known = laid(*case)

    # Arithmetic: for each tap, filter and channel one vector instruction over the places.
    places = wide * tall
    product = Instruction(
        "fma", first=Stream(0, 1), second=Stream(places, 0), result=Stream(places + 1, 1),
        inner=places,
    )  # fmt: skip
    code = {(0, 0): [product] * (9 * filters * channels)}
    single = Program(mesh.Grid(1), {}, code, {}, words=2 * places + 1)
    assert known.compute_cycles == pytest.approx(mesh.simulate(single).cycles, rel=0.1)

    # Halo: the edges of half as many pairs, forward of the channels, backward of the filters; an
    # element inside has four neighbours.
    if min(across, down) > 2:
        there = sum(
            exchanged(across, down, wide, tall, n // 2) for n in (channels, filters // parts)
        )
        hops = 4 * 2 * (parts - 1)  # over the parts of a channel that lie in between
        assert known.halo_cycles - hops == pytest.approx(there, rel=0.1)

    # Sums over the parts of the channels, forward and backward.
    there = summed(parts, 1, filters * places) + summed(parts, 1, channels * parts * places)
    assert known.reduce_cycles == pytest.approx(there, rel=0.1)

    # The sums and broadcasts of a batch norm, twice; neighbours of a channel lie `parts` apart.
    if parts == 1:
        norm = 2 * summed(across, down, 2 * filters, mesh.all_reduce)
        assert layout.norm_cycles(shape, way) == pytest.approx(norm, rel=0.1)


@pytest.mark.usefixtures("untyped")  # a search over many layouts
@pytest.mark.parametrize(
    ("tokens", "features", "filters", "share"),
    [(8 * 2048, 4096, 16384, 0.2979), (64 * 256, 2048, 8192, 0.1689)],
)
def test_kernels_of_transformers_reach_what_the_constant_says(tokens, features, filters, share):
    """GPT-J 6B and DiT-2B/2 on CS-2: their shares of the peak over what layouts leave."""
    h, f, wafer = features, filters, layout.Wafer.of()
    sizes = ((h, 3 * h), (h, h), (h, f), (f, h))
    shapes = [layout.dense("x", tokens, n, m) for n, m in sizes]
    cycles = sum(layout.cost(s, fitting(s, wafer, 1)[0], wafer).cycles for s in shapes)
    left = 3 * sum(s.multiplies for s in shapes) / (850_000 * 4 * cycles)
    low, high = constants.SHARES.kernels.interval
    assert low < share / left < high
    assert share / left == pytest.approx({4096: 0.57, 2048: 0.395}[features], rel=0.01)
