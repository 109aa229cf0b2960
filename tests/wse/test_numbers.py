"""Settings of a wrong kind are refused in one line; whole numbers of NumPy's are numbers."""

import dataclasses
from typing import get_type_hints

import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
import pytest
from beartype.door import is_bearable

import wse
from wse.layout.capacity import Net, Node
from wse.machine import processors
from wse.machine.machine import Sourced
from wse.show.explorer import Choice
from wse.workload import Layer, dense

pytestmark = pytest.mark.usefixtures("untyped")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: wse.CS2(systems="4"), "systems is '4'"),
        (lambda: wse.CS2(systems=True), "systems is True"),
        (lambda: wse.CS2(sparsity=0.5), r"sparsity is 0.5; .* pass wse.sparsity.Static\(0.9\)"),
        (lambda: wse.estimate(dense(), samples="10"), "samples is '10'"),
        (lambda: wse.estimate(dense(), batch=2.5), "batch is 2.5"),
        (lambda: dense(width="8"), "width is '8'"),
        (lambda: dense(width=2.5), "width is 2.5"),
        (lambda: wse.check(dense(), release=2.0), "release is 2.0; .* text"),
        (lambda: wse.sparsity.Static("a"), r"sparsity is 'a'; .* in \[0, 1\)"),
    ],
)
def test_what_is_no_such_setting_is_named(call, said):
    with pytest.raises(ValueError, match=said):
        call()


TABLE = pd.DataFrame({"a": [1.0, 2.0]})
NET = dense(width=64)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: wse.layout.pipeline(3), "kernels is 3 of type int; pass kernels, as wse.layout"),
        (lambda: wse.layout.pipeline([]), r"kernels is \[\], empty"),
        (lambda: wse.layout.pipeline(["a"]), r"kernels\[0\] is 'a' of type str"),
        (lambda: wse.layout.pipeline(TABLE), "kernels is .* of type DataFrame; pass kernels"),
        (lambda: wse.layout.pipeline(KERNELS, wafer=3), "wafer is 3 of type int; pass a grid"),
        (lambda: wse.layout.pipeline(KERNELS, pes=2.5), "pes is 2.5; it must be a positive"),
        (lambda: wse.layout.dense_kernels(784), r"sizes are \(784,\); .* pass 784, 10"),
        (lambda: wse.layout.Kernel("k", 2.5, 4), "channels of 'k' is 2.5; it must be a positive"),
        (lambda: wse.layout.Kernel("k", 3, 4, taps=3), "taps is 3 of type int; pass one number"),
        (lambda: wse.layout.Kernel("k", 3, 4, taps=(3,)), r"taps of 'k' are \(3,\); pass two"),
        (lambda: wse.layout.Wafer(True, 4), "columns is True; it must be a positive integer"),
        (lambda: wse.layout.plan(3), "shapes is 3 of type int; pass layers"),
        (lambda: wse.layout.unet(64), "size is 64 of type int; pass one number for each axis"),
        (lambda: wse.sweep(None, [100]), "models is None of type NoneType; pass a workload"),
        (lambda: wse.sweep({"a": 1}, [100]), r"models\[0\] is 1 of type int; pass a workload"),
        (lambda: wse.sweep(NET, "a"), r"batch is 'a'; it must hold numbers: pass batch=\[1\]"),
        (lambda: wse.sweep(NET, np.array(None)), "batch is .*; it must hold numbers"),
        (lambda: wse.sweep(NET, [100], systems=[True]), r"systems is \[True\]; it must hold numb"),
        (lambda: wse.inference(NET, "a"), "batch is 'a'; it must be a positive integer"),
        (lambda: wse.inference(NET, True), "batch is True; it must be a positive integer"),
        (lambda: wse.chakra.nodes(3), "graph is 3 of type int; pass what wse.trace gives"),
        (lambda: wse.chakra.save("a", "step.et"), "found is 'a' of type str; pass what wse.chakra"),
        (lambda: wse.chakra.save([], None), "path is None; it must be a path"),
        (lambda: wse.compare(NET, price=2.5), "price is 2.5 .*; pass a dictionary by machine"),
        (
            lambda: wse.compare(NET, price={"h100": np.inf}),
            "price of 'h100' is inf; it must be positive",
        ),
        (lambda: wse.read_model(None), "path is None; it must be a path"),
        (lambda: wse.workloads.read(3), "path is 3; it must be a path"),
        (lambda: wse.specification.read(3), "path is 3; it must be a path"),
        (lambda: wse.port(NET, beside=2.5), "machine is 2.5; pass a cluster, as wse.CS2"),
        (lambda: wse.estimate(NET, TABLE), "params is .*; a workload has its own"),
        (lambda: wse.estimate(NET, machine=TABLE), "machine is .*; pass a cluster"),
        (
            lambda: wse.estimate(NET, machine="h100", release=np.arange(3)),
            r"release is array\(.*, which H100 has not",
        ),
        (
            lambda: wse.estimate(NET, machine="h100", replicas=True),
            "replicas is True, which H100 has not",
        ),
        (lambda: wse.trace(loss, {"a": 10**30}, BATCH), "'a' is 1000.* it must be an array"),
    ],
)
def test_what_is_of_another_kind_is_named_in_a_line(call, said):
    with pytest.raises((TypeError, ValueError), match=said) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_one_machine_to_compare_with_needs_no_list():
    pages = [wse.port(NET, beside=one) for one in ("h100", ["h100"])]
    assert pages[0].document() == pages[1].document()
    assert wse.compare(NET, price={"h100": np.float16(2)}).candidates


KERNELS = wse.layout.dense_kernels(784, 10)
WEIGHTS = {"a": np.ones((6, 8), "f4")}
BATCH = np.ones((12, 6), "f4")


def loss(params, batch):
    return jnp.mean((batch @ params["a"]) ** 2)


def stored(folder):
    return wse.CS2().executor(loss, WEIGHTS, BATCH, optax.sgd(0.1), folder=folder).init(WEIGHTS)


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (
            lambda: wse.trace(None, WEIGHTS, BATCH),
            TypeError,
            r"loss is None; .* loss\(params, batch",
        ),
        (
            lambda: wse.trace(loss, "x", BATCH),
            ValueError,
            "parameter '' is 'x' of type str; .* array",
        ),
        (lambda: wse.trace(loss, WEIGHTS, "x"), ValueError, "batch entry '' is 'x' of type str; "),
        (
            lambda: wse.trace(loss, WEIGHTS, None),
            ValueError,
            "the batch is None, and .* pass the arr",
        ),
        (
            lambda: wse.check(loss, WEIGHTS, None),
            ValueError,
            "the batch is None, and the loss fails",
        ),
        (lambda: wse.check(loss, WEIGHTS, 3), ValueError, "the batch is 3, and the loss fails"),
        (lambda: wse.estimate(loss, WEIGHTS, 3), ValueError, "the batch is 3, and the loss fails"),
        (lambda: wse.CS2().executor(loss, WEIGHTS, None), ValueError, "the batch is None, and"),
        (lambda: stored(3), TypeError, "folder is 3; it must be a path, .* or None"),
        (lambda: stored(""), TypeError, "folder is ''; it must be a path"),
        (lambda: wse.pmap(None), TypeError, "fun is None; it must be a function"),
        (lambda: wse.workloads.get(None), TypeError, "name is None; it must be text"),
    ],
)
def test_what_is_no_function_batch_or_path_is_named(call, kind, said):
    with pytest.raises(kind, match=said):
        call()


def test_a_loss_that_needs_no_batch_takes_none_and_its_own_errors_are_its_own():
    def alone(params, batch):
        return jnp.sum(params["a"] ** 2)

    assert len(wse.trace(alone, WEIGHTS, None).layers) == 1
    value, _ = wse.CS2().executor(alone, WEIGHTS, None).value_and_grad(WEIGHTS, None)
    assert value == 48

    def fails(params, batch):
        raise LookupError("mine")

    with pytest.raises(LookupError, match=r"^'?mine"):
        wse.trace(fails, WEIGHTS, BATCH)


def test_whole_numbers_of_numpy_are_taken():
    asked = {"samples": np.int64(1200), "batch": np.int32(12)}
    found = wse.estimate(dense(width=np.int64(64)), machine=wse.CS2(np.int8(2)), **asked)
    same = wse.estimate(dense(width=64), machine=wse.CS2(2), samples=1200, batch=12)
    assert str(found) == str(same)


KERNEL, SHAPE = wse.layout.Kernel("k", 3, 4), wse.layout.Shape("s", 1, (1, 1), 3, 4)
MADE = (
    KERNEL, SHAPE,
    wse.layout.Rectangle(KERNEL, (1, 1, 1, 1)),
    wse.layout.Layout(1, 1, 1, (1, 1)),
    Node(SHAPE, (-1,)), Net("net", (Node(SHAPE, (-1,)),), 3),
    Layer("first", 3, 4, 12), dense(),
    wse.CS2(), wse.catalog.CS2, Sourced(1, "s", "sourced", "a page"), processors.PROCESSORS[0],
    wse.sparsity.Static(0.5), wse.sparsity.Magnitude(0.5), wse.sparsity.SET(0.5, 10),
    wse.sparsity.RigL(0.5, 10), wse.sparsity.Gradual(0.5, 1, 10), wse.sparsity.Rule(),
    wse.precision.Precision("float16"), wse.precision.Dynamic(), Choice(),
)  # fmt: skip
OTHERS = (object(), None, 3, "x", 2.5, True, ("a",), {})


@pytest.mark.parametrize("made", MADE, ids=lambda made: type(made).__name__)
def test_a_field_of_another_kind_is_refused_with_its_name(made):
    """Of every field of what a user makes, by its own annotation; beartype says what is right."""
    hints = get_type_hints(type(made))
    refused = 0
    for field in dataclasses.fields(made):
        for other in OTHERS:
            whole = isinstance(other, int) and not isinstance(other, bool)
            hint = hints[field.name]
            if is_bearable(other, hint) or (whole and is_bearable(1.0, hint)):
                continue
            with pytest.raises((TypeError, ValueError), match=field.name) as found:
                dataclasses.replace(made, **{field.name: other})
            assert "\n" not in str(found.value)
            refused += 1
    assert refused


def test_numbers_and_truths_of_numpy_are_taken():
    kernel = wse.layout.Kernel("k", np.int64(3), np.int32(4), taps=(np.int64(3), 3))
    assert wse.layout.Rectangle(kernel, [1, 1, 1, 1]).pes == 6
    layer = Layer("first", 3, 4, 12, density=np.float32(0.5), shared=np.bool_(True))
    assert layer.density == 0.5
