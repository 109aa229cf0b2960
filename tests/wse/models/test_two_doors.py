"""A model by name and the same model traced: as many operations, bytes and seconds.

What differs is said here, and in `why` of the answers: by name attention never writes its
matrix, as in the published trainings; plain JAX writes and reads it.
"""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest

import wse
from wse import workloads, zoo
from wse.models.from_graph import workload
from wse.predict.arrays import plans
from wse.predict.resident import units

MACHINES = ("h100", "a100", "tpu v5e", "cpu node", "table 4 cpu", "cs1", "cs2", "cs3")
BLOCKS = 2  # all blocks of a model are alike
HEADS = 16  # of DiT, where the catalogue says none
EMBEDDED = 0.02  # by name, what lookups and the last norm read and write counts too
VISITED = 0.12  # on wafers: each visit of a trace waits for its own weights, queries, keys, values
NORMED = 0.06  # by name the norm at the end enters as a block of two or three
BLOCKED = {"RetinaNet": 0.2}  # by name every layer behind the backbone is a block
# By name queries, keys and values come as one layer, and attention works while the next one comes.
# Where two samples fill the wafer, their weights take as long as their products: a trace, whose
# three visits attend too, waits for them half as long.
WAITED = {("GenSLM-25B", "cs3"): 0.35}


def written_out(named, heads):
    """With the matrix of attention written, read and kept, as plain JAX does."""
    count = heads * named.tokens**2
    layers = tuple(
        replace(x, moved=x.traffic + 2 * count, products=2, kept=x.inputs + count)
        if x.kind == "attention"
        else x
        for x in named.layers
    )
    return replace(named, layers=layers)


def seconds(model, machine):
    """Of set-up and of training; None where the machine refuses the model."""
    try:
        found = wse.estimate(model, machine=machine, batch=1024, samples=1024)
    except ValueError:
        return None
    return found.setup_s, found.train_s


QUICK = (
    "FC-MNIST",
    "GPT-2-small",
    "GPT-J-6B",
    "Llama-7B",
    "ESM-2-35M",
    "DiT-XL-2",
    "U-Net-Severstal",
)
NAMES = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
    for name in workloads.entries()
]


@pytest.mark.parametrize("name", NAMES)
def test_a_model_by_name_is_the_model_that_is_traced(name: str) -> None:
    shape = workloads.entries()[name].shape
    few = {"num_hidden_layers": BLOCKS} if "num_hidden_layers" in shape else {}
    named = written_out(workloads.get(name, **few), shape.get("num_heads", HEADS))
    made = zoo.traceable(name, 1, **few)
    traced = workload(wse.trace(made.loss, made.params, made.batch))
    assert (traced.parameters, traced.forward_flops) == (named.parameters, named.forward_flops)
    assert traced.backward_flops == pytest.approx(named.backward_flops, rel=1e-3)
    multiplying = [x for x in named.layers if x.forward_flops]
    moved = sum(x.traffic for x in multiplying)
    assert sum(x.traffic for x in traced.layers) == pytest.approx(moved, rel=1e-3)
    # By name queries, keys and values are one layer, and so are the two of a gate.
    assert units(traced) <= units(named) + 1 <= 3 * units(traced) + 2
    # BERT's pooler is one layer of two; RetinaNet's heads run on every level of the pyramid.
    started = sum(x.products for x in multiplying) + {"BERT-large": 1, "RetinaNet": 40}.get(name, 0)
    assert sum(x.products for x in traced.layers) == started
    for one, other in zip(plans(named), plans(traced), strict=True):
        far = 2e-3 if one.name == "keep" else BLOCKED.get(name, NORMED)
        assert other.bytes_per_sample == pytest.approx(one.bytes_per_sample, rel=far), one.name
    for machine in MACHINES:
        one, other = seconds(named, machine), seconds(traced, machine)
        far = WAITED.get((name, machine), VISITED if "cs" in machine else EMBEDDED)
        if far and one and other:
            assert other[0] == pytest.approx(one[0], rel=1e-3), machine
            assert other[1] == pytest.approx(one[1], rel=far), machine
        elif far:
            assert one == other, machine


SMALL = {  # with filters of single channels beside products that take nearly all operations
    "mamba2": {"architectures": ["Mamba2ForCausalLM"], "hidden_size": 768, "num_hidden_layers": 2,
        "vocab_size": 50288, "num_heads": 24, "head_dim": 64, "state_size": 128, "n_groups": 1},
    "convnext": {"architectures": ["ConvNextForImageClassification"], "image_size": 224,
        "hidden_sizes": [192, 384, 768, 1536], "depths": [3, 3, 9, 3]},
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "machine"),
    [
        *(("mamba2", machine) for machine in ("cpu node", "cs1", "cs2")),
        *(("convnext", machine) for machine in ("h100", "cpu node")),
    ],
)
def test_a_few_filters_do_not_make_convolutions_of_products(kind, machine, tmp_path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind, **SMALL[kind]}))
    read = wse.read_model(tmp_path, 2048 if kind == "mamba2" else None)
    made = zoo.traceable(read.workload, 1)
    traced = workload(wse.trace(made.loss, made.params, made.batch))
    one, other = seconds(read.workload, machine), seconds(traced, machine)
    assert one is not None
    assert other is not None
    assert other == pytest.approx(one, rel=VISITED)


def test_fused_states_are_told_as_fused_attention_is(tmp_path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "mamba2", **SMALL["mamba2"]}))
    found = wse.estimate(wse.read_model(tmp_path, 2048).workload, machine="h100", batch=8,
        samples=8)  # fmt: skip
    assert "state spaces fused" in found.why


def test_one_small_convolution_does_not_set_the_interval() -> None:
    """As patches are of a ViT: of convolutions on an H100 nothing was published."""
    shape = jax.ShapeDtypeStruct
    matrices = [shape((1024, 1024), jnp.float32)] * 4
    image, filters = shape((8, 1, 32, 32), jnp.float32), shape((1, 1, 3, 3), jnp.float32)

    def plain(params, x):
        x = x.reshape(8, -1)
        for w in params["matrices"]:
            x = jnp.tanh(x @ w)
        return jnp.mean(x)

    def filtered(params, x):
        return plain(params, jax.lax.conv_general_dilated(x, params["filters"], (1, 1), "SAME"))

    params = {"matrices": matrices}
    one = wse.estimate(plain, params, image, machine="h100", samples=8000)
    other = wse.estimate(filtered, {**params, "filters": filters}, image, machine="h100",
        samples=8000)  # fmt: skip
    ends = []
    for found in (one, other):
        (compute,) = [phase for phase in found.phases if phase.name == "compute"]
        ends.append([end_s / compute.time_s for end_s in compute.interval_s])
    assert ends[1] == pytest.approx(ends[0], rel=0.02)
    assert not any("convolution" in said for said in other.cautions)
