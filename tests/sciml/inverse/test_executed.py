"""The same fit on the emulated machine: the weights of plain JAX, but for rounding."""

import jax
import numpy as np
import pytest

import sciml
import wse
from sciml.models import Dense, FlowMatching, Gaussian
from sciml.ode import AR1, Observation, System
from sciml.studies.inverse.plain import PlainJax
from sciml.train import Recipe
from wse.sparsity import PackedSteps, Static

pytestmark = pytest.mark.usefixtures("quick_compilation")

SMALL = Dense(width=16, depth=2)
RECIPE = Recipe(batch=20, learning_rate=5e-3)


@pytest.fixture(scope="module")
def data():
    from numpyro.distributions import Uniform

    system = System(
        name="decay",
        vector_field=lambda t, u, p: (-p[0] * u[0] + p[1],),
        initial_state=(1.0,),
        prior={"rate": Uniform(0.5, 2.0), "source": Uniform(-1.0, 1.0)},
        observation=Observation.regular(interval=0.2, length=16),
    )
    return sciml.simulate(system, samples=100, seed=0)


def weights(fit) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(fit.params)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sciml.estimator.CollapseWarning")
@pytest.mark.parametrize("systems", [1, 2])
@pytest.mark.parametrize("model", [SMALL, Gaussian(embedding=SMALL)], ids=["point", "posterior"])
def test_streamed_weights_are_those_of_plain_jax(data, model, systems):
    options = {"epochs": 3, "recipe": RECIPE, "noise": AR1(sd=0.05)}
    plain = sciml.fit(model, data, 0.2, **options)
    streamed = sciml.fit(model, data, 0.2, **options, executor=wse.CS2(systems=systems))
    np.testing.assert_allclose(weights(streamed), weights(plain), atol=2e-5)
    np.testing.assert_allclose(streamed.history.loss, plain.history.loss, rtol=1e-4)
    np.testing.assert_allclose(
        streamed.history.validation_loss, plain.history.validation_loss, rtol=1e-3
    )
    assert plain.run is None
    assert streamed.run.systems == systems
    sent = sum(leaf.nbytes for leaf in jax.tree.leaves(streamed.params))
    assert streamed.run.total_bytes("gradient") == sent


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sciml.estimator.CollapseWarning")
def test_packed_weights_are_those_of_masks(data):
    options = {"epochs": 3, "recipe": RECIPE, "noise": AR1(sd=0.05)}
    method = Static(0.5, block=4)
    masked = sciml.fit(SMALL, data, 0.2, **options, executor=PlainJax(sparsity=method))
    packed = sciml.fit(SMALL, data, 0.2, **options, executor=PackedSteps(method))
    np.testing.assert_allclose(weights(packed), weights(masked), atol=2e-5)
    np.testing.assert_allclose(packed.history.loss, masked.history.loss, rtol=1e-4)
    assert 0.3 < (weights(packed) == 0).mean() < 0.5


@pytest.mark.slow
def test_random_losses_do_not_know_how_many_systems_there_are(data):
    options = {"epochs": 2, "recipe": RECIPE}
    model = FlowMatching(width=8, embedding=None)
    one, two = (sciml.fit(model, data, **options, executor=wse.CS2(systems=n)) for n in (1, 2))
    np.testing.assert_allclose(weights(one), weights(two), atol=2e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sciml.estimator.CollapseWarning")
@pytest.mark.parametrize("mode", ["streaming", "pipelined"])
def test_an_interrupted_fit_goes_on_within_an_epoch(data, tmp_path, monkeypatch, mode):
    from sciml.train import loop

    file, cluster = tmp_path / "fit.checkpoint", wse.CS2(mode=mode)
    options = {"epochs": 3, "recipe": RECIPE, "noise": AR1(sd=0.05), "executor": cluster}
    whole = sciml.fit(SMALL, data, 0.2, **options)
    monkeypatch.setattr(loop, "CHECKPOINT_S", -1.0)  # write after every step
    executor = type(cluster.executor(lambda p, x: (p * x).sum(), np.ones(2), np.ones(2)))
    step, left = executor.train_step, iter(range(6))

    def interrupted(self, state, batch):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return step(self, state, batch)

    monkeypatch.setattr(executor, "train_step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sciml.fit(SMALL, data, 0.2, **options, checkpoint=file)
    assert file.exists()
    done = []
    monkeypatch.setattr(executor, "train_step", lambda *a: done.append(0) or step(*a))
    resumed = sciml.fit(SMALL, data, 0.2, **options, checkpoint=file)
    # 80 of the 100 samples train, 20 at a time; the first step of a run only compiles.
    assert len(done) - 1 == 3 * (80 // 20) - 5
    np.testing.assert_array_equal(weights(resumed), weights(whole))
    np.testing.assert_array_equal(resumed.history.loss, whole.history.loss)
    resumed.save(tmp_path / "done.fit")
    assert not file.exists()


def test_what_the_loop_cannot_do_is_refused(data):
    with pytest.raises(ValueError, match="online=True is given with an executor"):
        sciml.fit(SMALL, data, epochs=1, recipe=RECIPE, online=True, executor=wse.CS2())
    with pytest.raises(ValueError, match="divide"):
        sciml.fit(SMALL, data, epochs=1, recipe=RECIPE, executor=wse.CS2(systems=3))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sciml.estimator.CollapseWarning")
@pytest.mark.parametrize("model", [SMALL, Gaussian(embedding=SMALL)], ids=["point", "posterior"])
def test_the_machine_can_be_asked_of_a_fit(data, model):
    fit = sciml.fit(model, data, epochs=1, recipe=RECIPE)
    loss, params, batch = fit.traceable(batch=20)
    found = wse.estimate(loss, params, batch, samples=1000)
    assert (found.workload.parameters, found.batch) == (fit.parameter_count, 20)
    verdict = wse.check(loss, params, batch, mode="streaming").verdict
    assert verdict == ("native" if model is SMALL else "unknown")
    with pytest.raises(ValueError, match="batch is 0; it must be a whole number, at least 1"):
        fit.traceable(batch=0)
