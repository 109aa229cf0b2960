"""Settings of a wrong kind are refused in one line; whole numbers of NumPy's are numbers."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import wse
from wse.workload import dense

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
