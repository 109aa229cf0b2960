"""Schedules, arithmetic and mode of a params file: plain JAX's numbers, also when resumed."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from typer.testing import CliRunner

from tests.wse.job.test_run import close, filled, params
from wse import precision
from wse.cli.main import app
from wse.job import Job, evaluate, infer, read, train
from wse.job.kept import begin
from wse.job.optimizer import learning_rate

pytestmark = pytest.mark.usefixtures("quick_compilation")
OPTIMIZER = "optimizer: {optimizer_type: SGD, learning_rate: 0.1, momentum: 0.9}"
WARM = """optimizer:
  optimizer_type: AdamW
  betas: [0.8, 0.95]
  eps: 1e-6
  weight_decay: 0.1
  learning_rate:
    - {scheduler: Linear, initial_learning_rate: 0.0, end_learning_rate: 0.02, total_iters: 3}
    - {scheduler: CosineDecay, initial_learning_rate: 0.02, end_learning_rate: 2e-3, steps: 6}
    - {scheduler: Constant, learning_rate: 2e-3}
"""
STEPS = """optimizer:
  optimizer_type: SGD
  momentum: 0.5
  weight_decay: 0.01
  max_gradient_norm: 0.5
  learning_rate: {scheduler: PiecewiseConstant, learning_rates: [0.1, 0.05, 0.01],
    milestones: [4, 9]}
"""
PIPELINE = ("model_dir:", "execution_strategy: pipeline, model_dir:")
HALF = "precision: {fp16_type: cbfloat16, loss_scaling_factor: dynamic}\n"
SCALED = "precision: {fp16_type: float16, loss_scaling_factor: 128}\n"


def warm(step):
    """Linear to 0.02 in 3 steps, half a cosine to 0.002 in 6, constant."""
    cosine = 0.002 + 0.018 * (1 + jnp.cos(jnp.pi * (step - 3) / 6)) / 2
    return jnp.where(step < 3, 0.02 * step / 3, jnp.where(step < 9, cosine, 0.002))


def stepped(step):
    return jnp.where(step < 4, 0.1, jnp.where(step < 9, 0.05, 0.01))


def adamw():
    return optax.adamw(warm, b1=0.8, b2=0.95, eps=1e-6, weight_decay=0.1)


def sgd():
    clip, decay = optax.clip_by_global_norm(0.5), optax.add_decayed_weights(0.01)
    return optax.chain(clip, decay, optax.trace(0.5), optax.scale_by_learning_rate(stepped))


def written(folder, optimizer: str, change=None, more: str = ""):
    path = params(folder, more)
    text = path.read_text()
    assert OPTIMIZER in text
    text = text.replace(OPTIMIZER, optimizer.rstrip())
    path.write_text(text.replace(*change) if change else text)
    return path


def plain(job: Job, optimizer, scale=None, half=None):
    """The same training by plain JAX; in half precision, by the functions that define it."""
    weights, loss = job.built.params, job.built.loss
    if half is not None:
        optimizer = precision.scaled(optimizer, scale)
        loss = precision.mixed(loss, weights, job.samples.batch(0), half)
    state = optimizer.init(weights)

    @jax.jit
    def stepped(weights, state, batch):
        factor = state.scale if half else 1.0
        gradient = jax.grad(lambda w: factor * loss(w, batch))(weights)
        updates, state = optimizer.update(gradient, state, weights)
        return optax.apply_updates(weights, updates), state

    for step in range(12):
        weights, state = stepped(weights, state, job.samples.batch(step))
    return weights


def kept(job: Job):
    state, _ = begin(job.executor, job.built.params, job.store)
    return state.step, jax.tree.leaves((state.params, state.optimizer_state))


CASES = {
    "steps": (STEPS, None, "", sgd, None, None),
    "half": (WARM, None, HALF, adamw, precision.Dynamic(), precision.CBFLOAT16),
    "pipeline": (WARM, PIPELINE, SCALED, adamw, 128.0, precision.FLOAT16),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_it_is_plain_jax_and_goes_on_bit_for_bit(tmp_path, case):
    text, change, more, optimizer, scale, half = CASES[case]
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    whole = Job(read(written(filled(tmp_path / "whole"), text, change, more)))
    train(whole)
    step, expected = kept(whole)
    assert step == 12
    state, _ = begin(whole.executor, whole.built.params, whole.store)
    close(state.params, plain(whole, optimizer(), scale, half))
    path = written(filled(tmp_path / "parts"), text, change, more)
    train(Job(read(path), steps=7))
    train(Job(read(path)))
    step, found = kept(Job(read(path)))
    assert step == 12
    for a, b in zip(found, expected, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.slow
def test_a_resident_run_is_evaluated_and_continued_by_streaming(tmp_path):
    path = written(filled(tmp_path), STEPS, PIPELINE)
    with pytest.raises(ValueError, match="run with --mode train first"):
        evaluate(Job(read(path)))
    train(Job(read(path), steps=7))
    job = Job(read(path))
    assert evaluate(job)["step"] == 7
    assert infer(job).exists()
    del job
    path.write_text(path.read_text().replace("pipeline", "weight_streaming"))
    job = Job(read(path))
    train(job)
    assert kept(job)[0] == 12
    close(job.executor.init(job.built.params).params, plain(job, sgd()))


@pytest.mark.slow
def test_zeros_stay_zeros_in_both_modes(tmp_path):
    more = "sparsity: {type: static, sparsity: 0.5}\n"
    path = written(filled(tmp_path), STEPS, PIPELINE, more)
    train(Job(read(path), steps=5))
    job = Job(read(path))
    train(job)
    state, _ = begin(job.executor, job.built.params, job.store)
    first = jax.tree.leaves(state.params)[1]
    assert first.shape == (6, 8)
    assert np.mean(first == 0) == 0.5


def test_the_words_of_release_2_0_are_understood(tmp_path):
    path = written(
        filled(tmp_path),
        "optimizer: {loss_scaling_factor: dynamic}",
        ("model: {", "model: {mixed_precision: true, fp16_type: bfloat16, "),
    )
    job = Job(read(path))
    assert job.cluster.precision == precision.Precision("bfloat16", precision.Dynamic())
    path.write_text(path.read_text() + "precision: {}\n")
    with pytest.raises(ValueError, match=r"mixed_precision, .* must be said once: move all into"):
        read(path)
    path.write_text("optimizer: {loss_scaling_factor: 1.0}\n")
    assert Job(read(path), steps=1).cluster.precision is None


def test_schedules_of_the_model_zoo_are_read(tmp_path, shared):
    """GPT-J's: up in 12,800 steps, half a cosine of 1,280,000, then constant."""
    import yaml

    source = shared / "data/modelzoo/release_2.0.2/transformers__pytorch__gptj__params_gptj_6B.yaml"
    given = yaml.safe_load(source.read_text())["optimizer"]
    kept = {
        key: given[key] for key in ("eps", "weight_decay", "max_gradient_norm", "learning_rate")
    }
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump({"optimizer": {**kept, "optimizer_type": "AdamW"}}))
    rate = learning_rate(read(path).optimizer)
    assert callable(rate)
    found = [float(rate(step)) for step in (0, 6400, 12_800, 652_800, 1_292_800, 1_400_000)]
    top = 5.809e-5
    assert found == pytest.approx([0, top / 2, top, 0.55 * top, top / 10, top / 10], rel=1e-3)


@pytest.mark.parametrize(
    ("optimizer", "rule"),
    [
        ("learning_rate: [fast]", r"learning_rate\[0\] in .* is 'fast'; it must hold names and"),
        ("learning_rate: []", "learning_rate in .* is \\[\\]; it must be longer"),
        ("learning_rate: {scheduler: Linera}", "scheduler in .* one of .*: did you mean 'Linear'"),
        ("learning_rate: {scheduler: Linear, total_iter: 3}", "did you mean 'total_iters'"),
        ("learning_rate: {scheduler: Constant}", "a Constant learning rate lacks learning_rate;"),
        (
            "learning_rate: {scheduler: Constant, learning_rate: -1}",
            "learning_rate is -1; .* from 0",
        ),
        (
            "learning_rate: {scheduler: Constant, learning_rate: 1, end_learning_rate: 1}",
            "a Constant learning rate has end_learning_rate; it knows learning_rate: leave it out",
        ),
        (
            "learning_rate: [{scheduler: Constant, learning_rate: 1}, "
            "{scheduler: Constant, learning_rate: 2}]",
            r"learning_rate\[0\] lacks total_iters; all but the last must end",
        ),
        (
            "learning_rate: {scheduler: Constant, learning_rate: 1, steps: 1, total_iters: 1}",
            "has total_iters and steps, which are the same: keep one",
        ),
        (
            "learning_rate: {scheduler: PiecewiseConstant, learning_rates: [1, 2], "
            "milestones: [3, 2]}",
            r"2 learning_rates and milestones \[3, 2\]; these must ascend, and be one fewer",
        ),
        ("betas: [0.9]", r"betas in .* is \[0.9\]; it must be longer"),
        ("betas: [0.9, 1]", r"betas\[1\] is 1; it must be at least 0 and below 1: write"),
        ("betas: [0.9, true]", r"betas\[1\] in .* is True; it must be a plain number"),
        ("eps: 0", "eps is 0; it must be a positive number"),
        (
            "optimizer_type: SGD, betas: [0.9, 0.9]",
            r"betas is .* but SGD takes none: .*_type: Adam",
        ),
        ("optimizer_type: Lion, eps: 1e-6", "eps is 1e-06 but Lion takes none: leave it out"),
        ("optimizer_type: Adafactor, weight_decay: 0.1", "but Adafactor takes none: leave it out"),
    ],
)
def test_an_optimizer_that_cannot_be_is_one_line(tmp_path, optimizer, rule):
    path = written(filled(tmp_path), f"optimizer: {{{optimizer}}}")
    with pytest.raises(ValueError, match=rule) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_the_command_names_the_mode(tmp_path, untyped):
    asked = ["run", "CSX", "--compile_only", "--params", str(params(filled(tmp_path)))]
    made = CliRunner().invoke(app, [*asked, "--execution_strategy", "pipeline"])
    assert "(pipelined" in made.output
    made = CliRunner().invoke(app, [*asked, "--execution_strategy", "streaming"])
    assert made.exit_code == 2
    assert re.search("execution_strategy is 'streaming'; .* one of weight_streaming", made.output)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("precision: {fp16_type: cbfloat}", "one of float16, .*: did you mean 'cbfloat16'"),
        ("precision: {loss_scaling_factor: 0}", "loss_scaling_factor is 0; it must be a positive"),
        ("precision: {mixed_precision: 1}", "mixed_precision in .* is 1; it must be of type bool"),
        ("precision: {fp16: float16}", "did you mean 'fp16_type'"),
        ("runconfig: {execution_strategy: pipelined}", "did you mean 'pipeline'"),
    ],
)
def test_arithmetic_and_mode_that_cannot_be_are_one_line(tmp_path, text, rule):
    path = tmp_path / "params.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=rule) as caught:
        read(path)
    assert "\n" not in str(caught.value)
