"""Two processes, joined by `jax.distributed`, train the net of one."""

import numpy as np
import pytest

import sciml
from sciml.train.devices import shared
from tests.processes import answered, started

SETUP = """
import numpy as np, sciml
theta = np.random.default_rng(0).uniform(1, 2, (60, 2))
x = theta @ np.random.default_rng(1).normal(size=(2, 4))
data, held = sciml.dataset(theta[:48], x[:48]), sciml.dataset(theta[48:], x[48:])
recipe = sciml.train.Recipe(batch=12)
weights = lambda fit: np.concatenate([np.ravel(v) for v in jax.tree.leaves(fit.params)])
net = sciml.models.Gaussian(8, 1)
windows = lambda: sciml.estimator.Windows(data.chunk(sample=3), size_bytes=1000)

def counted():
    from sciml.estimator import Windows
    checked, found = Windows.checked, []
    def count(self, place, missing):
        found.append(place)
        return checked(self, place, missing)
    Windows.checked = count
    return found
"""

JOINED = """
import json, logging, sys, jax
logging.disable()
rank, port, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]
where = f"127.0.0.1:{port}"
jax.distributed.initialize(where, 2, rank, coordinator_bind_address=where)
"""

PROGRAM = """
def said(call):
    try:
        call()
    except ValueError as error:
        return str(error)

found = {}
fit = sciml.fit(net, data, held, epochs=4, recipe=recipe, checkpoint=f"{folder}/c")
found["both"] = weights(fit).tolist()
found["scores"] = fit.history.validation_loss.values.tolist()
alone = sciml.fit(net, data, held, epochs=4, recipe=recipe, devices=jax.local_devices())
found["alone"] = weights(alone).tolist()
every = sciml.fit(net, data, held, epochs=4, recipe=recipe, devices=jax.devices())
found["all"] = weights(every).tolist()
fields = np.random.default_rng(2).gamma(2, 4, (6, 16, 16)).astype("f4")
wind = sciml.estimator.fit_downscaling(
    sciml.models.SuperResolution(2, 4, 1), fields, fields[:1], epochs=2,
    recipe=sciml.train.Recipe(batch=4), patches=sciml.estimator.Patches(8, 8),
)
found["wind"] = weights(wind.trained).tolist()
eleven = sciml.train.Recipe(batch=11)
found["odd"] = said(lambda: sciml.fit(net, data, held, epochs=1, recipe=eleven))
other = data if rank else sciml.dataset(theta[:48] + 1e-3, x[:48])
found["data"] = said(lambda: sciml.fit(net, other, held, epochs=1, recipe=recipe))
uneven = [d for d in jax.devices() if d.process_index == 0] + jax.devices()[-1:]
found["uneven"] = said(lambda: sciml.fit(net, data, held, epochs=1, recipe=recipe, devices=uneven))
count = counted()
read = sciml.fit(net, windows(), held, epochs=4, recipe=recipe, checkpoint=f"{folder}/w")
found["windows"], found["read"] = weights(read).tolist(), len(count)
from sciml.inverse.beyond_memory import windows as module
module.FIRST_LEAST, module.FIRST_PART = 1, 10**6  # what scales inputs is finite
data["observation"].values[3] = np.inf
try:
    sciml.fit(net, windows(), epochs=1, recipe=recipe)
except (ValueError, RuntimeError) as error:
    found["broken"] = str(error)
print(json.dumps(found))
"""


@pytest.mark.slow
def test_two_processes_train_the_net_of_one(tmp_path):
    first, second = answered(started(JOINED + SETUP + PROGRAM, tmp_path))
    one: dict = {}
    exec("import jax\n" + SETUP, one)
    options = {"epochs": 4, "recipe": one["recipe"]}
    fit = sciml.fit(one["net"], one["data"], one["held"], devices=1, **options)
    expected = one["weights"](fit)
    count = one["counted"]()
    lazy = sciml.fit(one["net"], one["windows"](), one["held"], devices=1, **options)
    for answer in (first, second):
        for name in ("both", "alone", "all"):
            np.testing.assert_allclose(answer[name], expected, atol=2e-6)
        np.testing.assert_allclose(answer["scores"], fit.history.validation_loss, rtol=1e-4)
        assert "the batch of 11 is shared by 2 processes" in answer["odd"]
        assert "weights, data, recipe, epochs or seed differ between" in answer["data"]
        assert "devices are 2, 1 of the 2 processes" in answer["uneven"]
        np.testing.assert_allclose(answer["windows"], one["weights"](lazy), atol=2e-6)
        assert answer["read"] < 0.7 * len(count)
    assert "of samples 3 to 5 on disk" in first["broken"] + second["broken"]
    assert "another process could not read its share" in first["broken"] + second["broken"]
    assert first["both"] == second["both"]
    assert first["wind"] == second["wind"]
    # What two processes had done by then one process goes on with, and ends at once.
    again = sciml.fit(one["net"], one["data"], one["held"], checkpoint=tmp_path / "c", **options)
    np.testing.assert_array_equal(one["weights"](again), first["both"])


STOPPED = """
import os, signal, threading
from sciml.train import loop
began, advance = threading.Event(), loop.advance
loop.advance = lambda *arguments: (began.set(), advance(*arguments))[1]

def stop():
    began.wait()
    os.kill(os.getpid(), signal.SIGTERM)

if rank:
    threading.Thread(target=stop).start()
try:
    sciml.fit(net, data, epochs=10**5, recipe=recipe, checkpoint=f"{folder}/c")
    said = "ended"
except KeyboardInterrupt as error:
    said = str(error)
except SystemExit as error:
    said = error.code
print(json.dumps({"said": said}))
"""


@pytest.mark.slow
def test_where_one_is_stopped_all_stop_and_what_is_done_is_saved(tmp_path):
    first, second = answered(started(JOINED + SETUP + STOPPED, tmp_path))
    assert "another process was stopped after" in first["said"]
    assert second["said"] == 143
    assert (tmp_path / "c").stat().st_size > 0


def test_one_process_alone_is_as_before():
    assert shared(None, 7).devices == ()
    with pytest.raises(ValueError, match="it must be a number from 1 to"):
        shared(99, 99)
