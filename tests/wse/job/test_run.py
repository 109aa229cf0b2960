"""`wse run`: the numbers of plain JAX, going on after a kill, one error for what is wrong."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from typer.testing import CliRunner

from wse import sparsity
from wse.cli.main import app
from wse.execute.timeline import faults
from wse.job import Job, data, evaluate, infer, optimizer, read, train
from wse.job.params import Input, Sparsity
from wse.job.run import expected

pytestmark = pytest.mark.usefixtures("quick_compilation")
SETTINGS = """
train_input: {{data_dir: {folder}/train, batch_size: 16}}
eval_input: {{data_dir: {folder}/eval.npz, batch_size: 16}}
model: {{hidden_sizes: [8], activation_fn: swish}}
optimizer: {{optimizer_type: SGD, learning_rate: 0.1, momentum: 0.9}}
runconfig: {{max_steps: 12, checkpoint_steps: 5, log_steps: 4, model_dir: {folder}/run}}
"""


def filled(folder: Path) -> Path:
    """Return a folder with samples in it."""
    rng = np.random.default_rng(0)
    turn = rng.normal(size=(6, 2))
    (folder / "train").mkdir()
    for name, count in (("train/a", 30), ("train/b", 34), ("eval", 20)):
        x = rng.normal(size=(count, 6))
        np.savez(folder / f"{name}.npz", features=x, labels=np.tanh(x @ turn))
    return folder


@pytest.fixture
def folder(tmp_path):
    return filled(tmp_path)


def params(folder: Path, more: str = "") -> Path:
    path = folder / "params.yaml"
    path.write_text(SETTINGS.format(folder=folder) + more)
    return path


def plain(job: Job, steps: int):
    """The same training by plain JAX."""
    optimizer = optax.sgd(0.1, momentum=0.9)
    weights, state = job.built.params, optimizer.init(job.built.params)

    @jax.jit
    def stepped(weights, state, batch):
        updates, state = optimizer.update(jax.grad(job.built.loss)(weights, batch), state, weights)
        return optax.apply_updates(weights, updates), state

    for step in range(steps):
        weights, state = stepped(weights, state, job.samples.batch(step))
    return weights


def close(a, b):
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    assert all(np.allclose(x, y, rtol=2e-4, atol=2e-6) for x, y in pairs)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, quick_compilation) -> Job:
    """A run that the command made, which no test changes."""
    folder = filled(tmp_path_factory.mktemp("trained"))
    made = CliRunner().invoke(app, ["run", "CSX", "--params", str(params(folder))])
    assert made.exit_code == 0, made.output
    assert f"records in {folder}/run" in made.output
    return Job(read(folder / "params.yaml"))


def test_training_is_that_of_plain_jax_and_is_recorded(trained):
    close(trained.executor.init(trained.built.params).params, plain(trained, 12))
    said = json.loads((trained.folder / "performance.json").read_text())
    assert {"total_samples", "total_time", "samples_per_sec", "compile_time", "programming_time",
            "est_samples_per_sec"} <= set(said)  # fmt: skip
    assert said["total_samples"] == 16 * 11
    assert said["est_samples_per_sec"] > 0
    assert "x CS-2, as asked; mode streaming" in said["why"]
    traced = json.loads((trained.folder / "trace.json").read_text())
    assert faults(traced) == []
    assert {"broadcast", "forward", "backward", "gradient", "update"} <= {
        event.get("cat") for event in traced["traceEvents"]
    }


def test_an_interrupted_run_goes_on_to_the_same_weights(folder):
    assert train(Job(read(params(folder)), steps=7)).total_samples == 16 * 6
    job = Job(read(params(folder)))
    assert job.executor.init(job.built.params).step == 7
    train(job)
    close(job.executor.init(job.built.params).params, plain(job, 12))
    assert train(job).total_samples == 0


def test_evaluation_and_inference_are_those_of_the_trained_weights(trained):
    job = trained
    held = data.load(job.params.eval_input)
    whole = {"features": held.features, "labels": held.labels}
    weights = job.executor.init(job.built.params).params
    assert evaluate(job)["loss"] == pytest.approx(float(job.built.loss(weights, whole)), rel=1e-5)
    with np.load(infer(job), allow_pickle=False) as found:
        assert np.allclose(found["predictions"], job.built.predict(weights, held.features), 1e-5)


TRAINING = """
import sys
import time

from wse.job import Job, read, run, train

keep = run.keep


def slowly(*arguments):
    keep(*arguments)
    time.sleep(0.01)


run.keep = slowly
print("begins", flush=True)
train(Job(read(sys.argv[1]), steps=100_000))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="locks as POSIX does")
@pytest.mark.parametrize("mode", ["weight_streaming", "pipeline"])
def test_what_is_being_trained_can_be_evaluated(folder, mode):
    path = params(folder)
    every = f"checkpoint_steps: 1, execution_strategy: {mode}"
    path.write_text(path.read_text().replace("checkpoint_steps: 5", every))
    steps = []
    with subprocess.Popen([sys.executable, "-c", TRAINING, str(path)]) as other:
        try:
            while len(steps) < 3 and other.poll() is None:
                time.sleep(0.05)
                if re.search(r"\"step\": [1-9]", manifest(folder)):
                    steps.append(evaluate(Job(read(path)))["step"])
        finally:
            other.kill()
    assert len(steps) == 3, "the training ended by itself"
    assert 0 < steps[0] < steps[1] < steps[2]
    assert not list((folder / "run").glob(".store*"))


def manifest(folder: Path) -> str:
    """What the manifest of a run says, if it has one."""
    path = folder / "run" / "store" / "manifest.json"
    return path.read_text() if path.exists() else ""


def test_an_order_is_a_permutation_that_the_epoch_determines(folder):
    samples = data.load(Input(f"{folder}/train", 16))
    assert (samples.count, samples.steps_per_epoch) == (64, 4)
    rows = np.concatenate([samples.batch(step)["features"] for step in range(4)])
    assert np.array_equal(np.sort(rows, axis=0), np.sort(samples.features, axis=0))
    assert not np.array_equal(rows[:16], samples.batch(4)["features"])
    assert np.array_equal(samples.batch(5)["labels"], samples.batch(5)["labels"])


class Own(nnx.Module):
    """A model of a user, with a loss of its own."""

    def __init__(self, width: int, *, rngs):
        self.layer = nnx.Linear(6, width, rngs=rngs)

    def __call__(self, x):
        return self.layer(x)

    def loss(self, batch):
        return jnp.mean(jnp.abs(self(batch["features"])))


class Auxiliary(Own):
    """With more than the loss."""

    def loss(self, batch):
        return jnp.mean(jnp.abs(self(batch["features"]))), {"features": batch["features"]}


class Raising(Own):
    """Whose call raises."""

    def __call__(self, x):
        raise KeyError("nothing")


class Several(Own):
    """With two outputs and no loss."""

    loss = None

    def __call__(self, x):
        return self.layer(x), x


class Noted(nnx.Module):
    """A model with more than parameters."""

    def __init__(self, *, rngs):
        self.layer = nnx.BatchNorm(6, rngs=rngs)


@pytest.mark.parametrize("kind", ["Own", "Auxiliary"])
def test_a_users_own_class_trains(folder, kind):
    path = params(folder)
    path.write_text(path.read_text().replace("hidden_sizes: [8], activation_fn: swish", "width: 3"))
    job = Job(read(path), module=f"{__name__}:{kind}")
    before = float(job.built.loss(job.built.params, job.samples.batch(0)))
    train(job)
    after = job.executor.init(job.built.params).params
    assert float(job.built.loss(after, job.samples.batch(0))) < before


def test_each_kind_of_sparsity_is_that_of_its_name(untyped):
    rule = sparsity.Rule(only=("*",))
    asked = {
        kind: optimizer.masks(Sparsity(0.5, kind, update_freq=4), 12)
        for kind in ("static", "magnitude", "gmp", "set", "rigl")
    }
    assert asked == {
        "static": sparsity.Static(0.5, rule=rule),
        "magnitude": sparsity.Magnitude(0.5, rule=rule),
        "gmp": sparsity.Gradual(0.5, begin=1, end=6, every=4, rule=rule),
        "set": sparsity.SET(0.5, steps=12, drop=0.3, every=4, rule=rule),
        "rigl": sparsity.RigL(0.5, steps=12, drop=0.3, every=4, rule=rule),
    }
    with pytest.raises(ValueError, match=r"sparsity\.type is 'random'"):
        optimizer.masks(Sparsity(0.5, "random"), 12)


@pytest.mark.parametrize("kind", ["gmp", "rigl"])
def test_weights_end_as_sparse_as_was_asked(folder, kind):
    more = f"sparsity: {{type: {kind}, sparsity: 0.5, update_freq: 4}}\n"
    job = Job(read(params(folder, more)))
    train(job)
    first = jax.tree.leaves(job.executor.init(job.built.params).params)[1]
    assert first.shape == (6, 8)
    assert np.mean(first == 0) == 0.5


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("batch_size: 16}", "batch_sise: 16}", "did you mean 'batch_size'"),
        ("data_dir: {f}/train, ", "", "lacks data_dir"),
        ("learning_rate: 0.1", "learning_rate: fast", "learning_rate .* must be a plain number"),
        ("max_steps: 12", "max_steps: 1:30", "max_steps .* is '1:30'; it must be of type int"),
        ("max_steps: 12", "max_steps: 12.5", "max_steps .* must be of type int"),
        ("max_steps: 12, ", "", "neither max_steps nor num_epochs"),
        ("SGD", "SGDM", "optimizer_type in .* is 'SGDM'; .*: did you mean 'SGD'"),
        ("SGD", "Adam", "momentum is 0.9 but Adam takes none"),
        ("activation_fn: swish", "activation_fn: sine", "activation_fn is 'sine'"),
        ("activation_fn: swish", "hidden_size: 3", "did you mean 'hidden_sizes'"),
        (
            "activation_fn: swish",
            "activation_fn: [a]",
            "activation_fn is .'a'.; it must be one of relu, swish",
        ),
        ("activation_fn: swish", "inputs: 3", "model has the key 'inputs', which is not known"),
        ("hidden_sizes: [8]", "hidden_sizes: [-3]", r"model.hidden_sizes\[0\] is -3; .* positive"),
        (
            "hidden_sizes: [8]",
            "hidden_sizes: [2.5]",
            r"model.hidden_sizes\[0\] is 2.5; .* type int",
        ),
        ("hidden_sizes: [8]", "hidden_sizes: 8", "model.hidden_sizes is 8; .* a list"),
        ("hidden_sizes: [8]", "loss: huber", "loss is 'huber'"),
        ("/train, batch_size: 16", "/train, batch_size: 65", "has 64 samples; a batch must fit"),
        ("/train,", "/nowhere,", "nothing to read"),
        ("/train,", "/train, labels: answers,", "but no 'answers'"),
    ],
)
def test_what_is_wrong_gets_one_error(folder, old, new, rule):
    path = params(folder)
    old = old.replace("{f}", str(folder))
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    made = CliRunner().invoke(app, ["run", "CSX", "--params", str(path)])
    assert made.exit_code == 2
    assert made.output.count("error:") == 1
    assert re.search(rule, made.output)


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        *[(f"optimizer.{key}", value, "a positive number from 1e-37 to 1e38")
          for key in ("learning_rate", "max_gradient_norm")
          for value in ("-0.1", "0", ".nan", ".inf", "1e-300", "1e300")],
        *[(key, value, "at least 0 and below 1")
          for key in ("optimizer.momentum", "sparsity.sparsity")
          for value in ("-0.1", "1", ".nan")],
        *[("optimizer.weight_decay", value, "a number from 0") for value in ("-1", ".nan", ".inf")],
        *[(f"runconfig.{key}", value, "a positive integer")
          for key in ("max_steps", "num_epochs", "num_csx", "checkpoint_steps", "log_steps",
                      "eval_steps")
          for value in ("-1", "0", "1000000000001", "0x" + "f" * 5000)],
        *[(key, value, "a positive integer") for key in ("train_input.batch_size",
          "eval_input.batch_size", "sparsity.update_freq") for value in ("-1", "0")],
        *[(key, value, "an integer from 0 to 4294967295")
          for key in ("runconfig.seed", "train_input.shuffle_seed")
          for value in ("-1", "4294967296")],
        *[("sparsity.drop_fraction", value, "above 0") for value in ("-0.1", "0", "1.1", ".nan")],
    ],
)  # fmt: skip
def test_a_number_outside_its_range_is_named_with_its_path(tmp_path, key, value, rule):
    section, name = key.split(".")
    given = {"train_input": {"data_dir": "x", "batch_size": 1}, "sparsity": {"sparsity": 0.5}}
    given["eval_input"] = given["train_input"]
    lines = {**given.get(section, {}), name: value}
    path = tmp_path / "params.yaml"
    path.write_text(f"{section}:\n" + "".join(f"  {k}: {v}\n" for k, v in lines.items()))
    with pytest.raises(ValueError, match=rf"^{key} is .+; it must be {rule}.*: \w") as caught:
        read(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_ends_of_ranges_are_taken(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text(
        "optimizer: {learning_rate: 1e-37, momentum: 0, weight_decay: 0, max_gradient_norm: 1e38}\n"
        "runconfig: {max_steps: 1000000000000, seed: 4294967295, log_steps: 1}\n"
        "sparsity: {sparsity: 0, drop_fraction: 1}\n"
    )
    assert read(path).runconfig.seed == 2**32 - 1


@pytest.mark.parametrize("value", ["1:30:00", "010", "1e3"])
def test_what_is_no_integer_stays_none(tmp_path, value):
    path = tmp_path / "params.yaml"
    path.write_text(f"model: {{max_sequence_length: {value}}}\nrunconfig: {{max_steps: {value}}}\n")
    with pytest.raises(ValueError, match=f"^runconfig.max_steps .* is '{value}'; .* type int"):
        read(path)


def test_a_number_of_steps_that_is_none_is_refused(folder):
    made = CliRunner().invoke(
        app, ["run", "CSX", "--num_steps", "-3", "--params", str(params(folder))]
    )
    assert made.exit_code == 2
    assert "steps is -3; it must be a positive integer: pass --num_steps" in made.output


@pytest.mark.parametrize(
    ("module", "rule"),
    [
        ("nowhere.module:Class", "No module named"),
        (f"{__name__}:plain", "must name a Flax NNX module"),
        (f"{__name__}:Noted", "state that is no parameter: .*mean"),
        (f"{__name__}:Raising", "Raising raised KeyError: 'nothing'; .* correct it"),
        (f"{__name__}:Several", r"Several returns .*one array: .* a method loss\(batch\)"),
    ],
)
def test_a_model_that_cannot_run_is_refused(folder, module, rule):
    path = params(folder)
    words = "" if "Noted" in module else "width: 3"
    path.write_text(path.read_text().replace("hidden_sizes: [8], activation_fn: swish", words))
    with pytest.raises(ValueError, match=rule):
        _ = Job(read(path), module=module).built


def test_another_models_store_is_refused_and_kept(folder, trained):
    shutil.copytree(trained.folder, folder / "run")
    path = params(folder)
    path.write_text(path.read_text().replace("[8]", "[9]"))
    before = {p: p.read_bytes() for p in (folder / "run" / "store").rglob("*") if p.is_file()}
    with pytest.raises(ValueError, match="store"):
        train(Job(read(path)))
    assert all(p.read_bytes() == content for p, content in before.items())


def test_another_net_under_the_same_weights_is_refused(folder, trained, caplog):
    shutil.copytree(trained.folder, folder / "run")
    path = params(folder)
    text = path.read_text()
    path.write_text(text.replace("activation_fn: swish", "activation_fn: relu"))
    for run in (train, evaluate, infer):
        with pytest.raises(ValueError, match=r"model.activation_fn 'swish'; now it is 'relu'"):
            run(Job(read(path), steps=14))
    path.write_text(text.replace("activation_fn: swish", "activation_fn: swish, loss: mse"))
    assert evaluate(Job(read(path)))["step"] == 12  # another word for the same net
    path.write_text(text.replace("batch_size: 16", "batch_size: 8"))
    with caplog.at_level("INFO", "wse.run"):
        train(Job(read(path), steps=14))
    assert "train_input.batch_size is 8; until here it was 16" in caplog.text
    (folder / "run" / "settings.json").write_text("{")
    with pytest.raises(ValueError, match=r"settings.json is damaged .*: delete it if"):
        evaluate(Job(read(path)))


def test_nothing_trained_is_said(folder):
    with pytest.raises(ValueError, match="run with --mode train first"):
        evaluate(Job(read(params(folder))))


CLASSES = np.arange(34) % 3


@pytest.mark.parametrize(
    ("labels", "loss", "rule"),
    [
        (
            CLASSES - 1,
            "cross_entropy",
            "from -1 to 1; .* whole numbers from 0 to 1, 1 for",
        ),
        (CLASSES.astype("f4"), "cross_entropy", "float32, 1 for each .* compares whole numbers"),
        (np.eye(3)[CLASSES], "cross_entropy", "float32, 3 for each sample"),
        (CLASSES + 10**6, "cross_entropy", "labels are up to 1000002, and each number is a class"),
        (CLASSES + 2**40, "mse", "labels of .* has whole numbers up to 1099511627778; 32 bits"),
        (CLASSES.astype(str), "mse", "labels of .* is of <U.*; it must hold real numbers"),
        (CLASSES + 0j, "mse", "labels of .* is of complex128"),
    ],
)
def test_labels_that_no_loss_compares_are_refused(tmp_path, labels, loss, rule):
    np.savez(tmp_path / "train.npz", features=np.ones((34, 6)), labels=labels)
    text = SETTINGS.format(folder=tmp_path).replace("{hidden", f"{{loss: {loss}, hidden")
    path = tmp_path / "params.yaml"
    path.write_text(text.replace("/train,", "/train.npz,"))
    made = CliRunner().invoke(app, ["run", "CSX", "--params", str(path), "--validate_only"])
    assert made.exit_code == 2, made.output
    assert re.search(rule, made.output)


def test_labels_of_an_evaluation_are_of_the_classes_that_were_trained(tmp_path):
    for name, labels in (("train", CLASSES % 2), ("eval", CLASSES)):
        np.savez(tmp_path / f"{name}.npz", features=np.ones((34, 6)), labels=labels)
    text = SETTINGS.format(folder=tmp_path).replace("{hidden", "{loss: cross_entropy, hidden")
    path = tmp_path / "params.yaml"
    path.write_text(text.replace("/train,", "/train.npz,").replace("steps: 12", "steps: 1"))
    job = Job(read(path))
    train(job)
    with pytest.raises(ValueError, match=r"labels of eval_input are .* 0 to 2; .* 0 to 1,"):
        evaluate(job)


def test_samples_that_are_not_finite_are_counted(folder):
    x = np.ones((5, 6))
    x[3, 2] = np.nan
    np.savez(folder / "bad.npz", features=x, labels=np.ones((5, 2)))
    with pytest.raises(ValueError, match="not finite in 1 samples"):
        data.load(Input(f"{folder}/bad.npz", 2))


def test_objects_in_a_file_are_not_unpickled(folder):
    np.savez(folder / "bad.npz", features=np.array([{}, {}], object))
    with pytest.raises(ValueError, match="plain arrays") as found:
        data.load(Input(f"{folder}/bad.npz", 2), labels=False)
    assert str(found.value).count("bad.npz") == 1


def test_check_and_estimate_run_nothing(folder):
    asked = ["run", "CSX", "--params", str(params(folder))]
    made = CliRunner().invoke(app, [*asked, "--validate_only"])
    assert made.exit_code in (0, 1)
    assert "dot_general" in made.output
    made = CliRunner().invoke(app, [*asked, "--compile_only", "--num_csx", "2"])
    assert made.exit_code == 0, made.output
    assert "2 x CS-2" in made.output
    assert not (folder / "run").exists()


def test_patterns_that_match_nothing_are_refused_with_the_names(folder):
    for pattern in ('["nothing*"]', "[]"):
        more = f"sparsity: {{sparsity: 0.5, param_name_patterns: {pattern}}}\n"
        asked = ["run", "CSX", "--compile_only", "--params", str(params(folder, more))]
        made = CliRunner().invoke(app, asked)
        assert made.exit_code == 2
        assert "sparsity.param_name_patterns is [" in made.output
        assert "layers" in made.output


@pytest.mark.slow
@pytest.mark.parametrize("systems", [1, 2])
def test_sparse_weights_count_in_both_estimates(folder, systems):
    asked = ["run", "CSX", "--num_csx", str(systems), "--compile_only", "--params"]
    wide = params(folder).read_text().replace("[8]", "[1024, 1024, 1024]")
    wide = wide.replace("runconfig: {", f"runconfig: {{num_csx: {systems}, ")
    shown, recorded = [], []
    for more in ("", "sparsity: {type: rigl, sparsity: 0.75}\n"):
        (folder / "wide.yaml").write_text(wide + more)
        made = CliRunner().invoke(app, [*asked, f"{folder}/wide.yaml"])
        assert made.exit_code == 0, made.output
        assert "(streaming" in made.output
        shown.append(float(re.search(r"([\d,.]+) samples/s", made.output)[1].replace(",", "")))
        recorded.append(expected(Job(read(folder / "wide.yaml")))[0])
    assert shown[1] > shown[0]
    assert recorded[1] > recorded[0]
    assert recorded == pytest.approx(shown, abs=1)


@pytest.mark.parametrize(
    ("asked", "rule"), [(["CPU"], "target is 'CPU'"), (["CSX", "--mode", "tune"], "mode is 'tune'")]
)
def test_other_targets_and_modes_are_refused(folder, asked, rule):
    made = CliRunner().invoke(app, ["run", *asked, "--params", str(params(folder))])
    assert made.exit_code == 2
    assert rule in made.output
