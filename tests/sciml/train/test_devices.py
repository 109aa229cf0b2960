"""Devices that share a batch: the same weights but for rounding, on however many."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sciml
import sciml.downscale
import wse
from sciml.models import Dense
from sciml.train import InParts, Recipe, train
from tests.wse.devices import run_on_8_devices

MADE = """
import json, tempfile, warnings
import jax, jax.numpy as jnp, numpy as np
import sciml
import sciml.downscale
from sciml.downscale import Patches
from sciml.inverse import Windows
from sciml.models import Dense, FlowMatching, SuperResolution
from sciml.ode import AR1
from sciml.train import InParts, Recipe, epoch, loop, parts, train
from sciml.train.devices import shared
from sciml.train.optimizer import optimizer

jax.config.update("jax_disable_most_optimizations", True)
warnings.simplefilter("ignore", sciml.estimator.CollapseWarning)
prey = sciml.ode.lotka_volterra()
data = sciml.simulate(prey, samples=50, seed=0)

def weights(trained):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(trained.params)])

def apart(one, other):
    return float(np.abs(weights(one) - weights(other)).max())
"""

PROGRAM = (
    MADE
    + """
found = {}
options = {"epochs": 3, "noise": AR1(sd=0.05), "recipe": Recipe(batch=40)}
kinds = {"point": Dense(16, 2), "flow": FlowMatching(width=8, embedding=None)}
for (name, model), counts in zip(kinds.items(), [(1, 2, 4, 8), (1, 8)]):
    fits = [sciml.fit(model, data, 0.2, devices=n, **options) for n in counts]
    found[name] = [apart(fits[0], fit) for fit in fits]
    first = fits[0].history.loss
    found[name + " loss"] = [float(abs(fit.history.loss / first - 1).max()) for fit in fits]
    found[name + " home"] = [len(jax.tree.leaves(f.params)[0].devices()) for f in fits]

online = [sciml.fit(Dense(8, 1), prey, epochs=2, online=True, devices=n) for n in (1, 4)]
found["online"] = [apart(*online)]

chunked = data.chunk(sample=5)
read = Windows(chunked, 20 * Windows(chunked).sample_bytes)
brief = {"epochs": 2, "recipe": Recipe(batch=8)}
streams = [sciml.fit(Dense(8, 1), read, devices=n, **brief) for n in (1, 4)]
found["read"] = [apart(*streams)]

file = tempfile.mktemp()
small = {"epochs": 6, "recipe": Recipe(batch=8)}
whole = sciml.fit(Dense(8, 1), data, 0.2, devices=1, **small)
loop.CHECKPOINT_S = -1.0
for where in (1, 2):
    calls, advance = iter(range(2)), loop.advance
    def interrupted(*given):
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return advance(*given)
    loop.advance = interrupted
    loop.CALL_S = 0.0
    try:
        sciml.fit(Dense(8, 1), data, 0.2, devices=4, checkpoint=file, **small)
    except KeyboardInterrupt:
        pass
    loop.advance = advance
    done = []
    loop.advance = lambda *given: done.append(given[-1]) or advance(*given)
    resumed = sciml.fit(Dense(8, 1), data, 0.2, devices=where, checkpoint=file, **small)
    loop.advance = advance
    found[f"resumed on {where}"] = [sum(done), apart(whole, resumed)]
    resumed.checkpoint.remove()

rng = np.random.default_rng(0)
fields = rng.normal(size=(6, 32, 32)).astype("f4")
wind = {"recipe": Recipe(batch=8), "epochs": 2, "patches": Patches(16, 16)}
parts.LEAST_FLOPS = 0.0  # also the loss that one device takes sample by sample
net = SuperResolution(2, 4, 1)
nets = [sciml.downscale.fit_downscaling(net, fields, fields[:2], devices=n, **wind) for n in (1, 4)]
found["wind"] = [apart(nets[0].trained, nets[1].trained)]

on = shared(4, 8)
rows = jnp.zeros((40, 6))
program = epoch.epochs_program(
    lambda p, x, key: jnp.mean(jnp.tanh(x @ p) ** 2), optimizer(Recipe(), 5), 8, None, on)
p = jnp.ones((6, 5))
carry = on.on_all(epoch.Carry(p, optimizer(Recipe(), 5).init(p)))
given = (carry, *on.on_all((rows, jax.random.key(0))), np.int32(0), np.int32(1))
text = program.lower(*given).compile().as_text()
found["default"] = [len(shared(None, batch).devices) for batch in (40, 100, 7)]
found["share"] = ["f32[2,5]" in text, "f32[8,5]" in text, "all-reduce" in text]
print(json.dumps(found))
"""
)


@pytest.fixture(scope="module")
def found():
    return json.loads(run_on_8_devices(PROGRAM, 300).splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["point", "flow", "online", "read", "wind"])
def test_weights_are_those_of_one_device(found, name):
    assert max(found[name]) < 2e-6
    assert max(found.get(f"{name} loss", [0])) < 1e-5
    assert {*found.get(f"{name} home", [1])} == {1}  # what is returned lies on one


@pytest.mark.slow
@pytest.mark.parametrize("where", [1, 2])
def test_a_checkpoint_of_four_devices_goes_on_with_fewer(found, where):
    epochs, apart = found[f"resumed on {where}"]
    assert epochs == 4
    assert apart < 2e-6


@pytest.mark.slow
def test_by_default_as_many_share_a_batch_as_divide_it(found):
    assert found["default"] == [8, 5, 7]


@pytest.mark.slow
def test_each_device_computes_its_share_of_a_batch(found):
    assert found["share"] == [True, False, True]


def test_a_loss_in_parts_is_the_same_mean_together():
    def loss(params, batch, key):
        noise = jax.random.normal(key, batch.shape)
        return jnp.mean(jnp.square(batch @ params + noise.sum(axis=1)))

    batch = jnp.asarray(np.random.default_rng(0).normal(size=(6, 3)), jnp.float32)
    params, key = jnp.ones(3), jax.random.key(1)
    alone = [loss(params, batch[i : i + 1], jax.random.fold_in(key, i)) for i in range(6)]
    together = InParts(loss, 2).together(params, batch, key)
    np.testing.assert_allclose(together, np.mean(alone), rtol=1e-6)


REFUSED = {
    "more than there are": (999, "devices is 999, and this process has"),
    "none": (0, "devices is 0, and this process has"),
    "a truth value": (True, "devices is True, and this process has"),
    "half of one": (1.5, "devices is 1.5; it must be a number, or devices as"),
    "a word": ("cpu", "devices is 'cpu'; it must be a number, or devices as"),
    "an empty list": ([], r"devices is \[\]; it must be a number"),
    "one twice": (jax.local_devices()[:1] * 2, "each once"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.usefixtures("untyped")
def test_devices_that_are_not_there_are_refused(name):
    devices, said = REFUSED[name]
    with pytest.raises(ValueError, match=said):
        train(lambda p, x, k: jnp.mean(p * x), jnp.ones(1), jnp.ones((4, 1)), devices,
              recipe=Recipe(batch=2), epochs=1)  # fmt: skip


@pytest.mark.usefixtures("untyped")
def test_devices_do_not_go_with_an_executor():
    data = sciml.simulate(sciml.ode.lotka_volterra(), samples=4, seed=0)
    with pytest.raises(ValueError, match="devices is 1 beside an executor"):
        sciml.fit(Dense(4, 1), data, devices=1, executor=wse.CS2())
    with pytest.raises(ValueError, match="devices is 1 beside an executor"):
        sciml.downscale.fit_downscaling(None, None, None, wse.CS2(), 1, recipe=Recipe(), epochs=1)


def test_devices_that_do_not_divide_the_batch_are_refused():
    printed = run_on_8_devices("""
    import jax.numpy as jnp
    from sciml.train import Recipe, train
    try:
        train(lambda p, x, k: jnp.mean(p * x), jnp.ones(1), jnp.ones((100, 1)), 3,
              recipe=Recipe(batch=100), epochs=1)
    except ValueError as error:
        print(error)
    """)
    said = "devices is 3, which does not divide the batch of 100; every device takes the same share"
    assert said in printed
    assert "pass devices=2, or Recipe(batch=99)" in printed
