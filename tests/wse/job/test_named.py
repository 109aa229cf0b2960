"""Models by name: trained as plain JAX trains them, counted as the estimate counts them."""

import math
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import yaml
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from wse import precision
from wse.job import Job, evaluate, infer, optimizer, read, train
from wse.job.kept import begin
from wse.job.packaged import codons, packaged, windows
from wse.job.run import averaged
from wse.models import shapes as workloads
from wse.models.trainable import losses
from wse.models.trainable.module import Module
from wse.models.trainable.which import TRAINED, which

pytestmark = pytest.mark.usefixtures("quick_compilation")
TINY = {"hidden_size": 8, "num_hidden_layers": 2, "num_heads": 2, "max_sequence_length": 8}
GPT = {"name": "GPT-2-small", "vocab_size": 256, **TINY}
BERT = {"name": "BERT-large", "vocab_size": 256, "max_position_embeddings": 8, **TINY}
GENSLM = {"name": "GenSLM-250M", **TINY, "filter_size": 16}
BLOCKS = {"hidden_size": 8, "num_hidden_layers": 2, "num_heads": 2, "filter_size": 16}
PATCHES = {"image_size": [8, 8], "patch_size": [4, 4], "num_channels": 1, "num_classes": 10}
VIT = {"name": "vit", **BLOCKS, **PATCHES}
T5 = {"name": "t5", "src_vocab_size": 260, "d_model": 8, "d_kv": 4, "d_ff": 16, "num_heads": 2,
      "encoder_num_hidden_layers": 1, "decoder_num_hidden_layers": 2}  # fmt: skip
PAIRS = {"data_dir": "package:python-topics", "batch_size": 4, "src_max_sequence_length": 16,
         "tgt_max_sequence_length": 6}  # fmt: skip
UNET = {"name": "U-Net", "size": [16, 16], "filters": [4, 8], "norm": True}
RESNET = {"name": "ResNet-50", "size": 32, "classes": 10, "width": 4, "repeats": [1, 1, 1, 1]}
RETINANET = {**RESNET, "name": "RetinaNet", "size": 128, "channels": 8}
DIGITS = "package:digits"
TEXT = "package:python-topics"


def job(folder: Path, model: dict, data: str = TEXT, **sections) -> Job:
    """A run of three steps."""
    said = {
        "train_input": {"data_dir": data, "batch_size": 4},
        "eval_input": {"data_dir": data, "batch_size": 4},
        "model": model,
        "optimizer": {"optimizer_type": "SGD", "learning_rate": 0.1},
        **sections,
    }
    config = {"max_steps": 3, "eval_steps": 2, "model_dir": str(folder / "run")}
    said["runconfig"] = {**config, **sections.get("runconfig", {})}
    path = folder / "params.yaml"
    path.write_text(yaml.safe_dump(said))
    return Job(read(path))


def plain(made: Job, steps: int = 3, half=None, scale=1.0):
    """The same training by plain JAX; in half precision, by the functions that define it."""
    update = optimizer.optimizer(made.params.optimizer, made.built.rates)
    weights, loss = made.built.params, made.built.loss
    if half is not None:
        update = precision.scaled(update, scale)
        loss = precision.mixed(loss, weights, made.batch(0), half)
    state = update.init(weights)

    def stepped(weights, state, batch):
        factor = state.scale if half else 1.0
        gradient = jax.grad(lambda w, x: factor * loss(w, x))(weights, batch)
        updates, state = update.update(gradient, state, weights)
        return optax.apply_updates(weights, updates), state

    # With each operation rounded, one program takes longer to compile than all by themselves.
    run = jax.jit(stepped) if half is None else stepped
    for step in range(steps):
        weights, state = run(weights, state, made.batch(step))
    return weights


def close(a, b, atol=2e-6):
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    assert all(np.allclose(x, y, rtol=2e-4, atol=atol) for x, y in pairs)


def weights(made: Job):
    return begin(made.executor, made.built.params, made.store)[0].params


STREAMED = {
    "gpt": (GPT, {}),
    "gpt-j, dropout, two systems": (
        {**GPT, "name": "GPT-J-6B", "head_width": 4, "rotary_dim": 2, "dropout_rate": 0.25},
        {"runconfig": {"num_csx": 2}},
    ),
    "gpt pipelined": (GPT, {"runconfig": {"execution_strategy": "pipeline"}}),
    "llama": ({**GPT, "name": "Llama-7B", "filter_size": 16, "num_kv_heads": 1}, {}),
    "vit": ({**VIT, "dropout_rate": 0.1}, {"data": DIGITS}),
    "u-net": (UNET, {"data": "package:ink"}),
    "bert, masked": ({**BERT, "pooled": False, "token_types": 0}, {}),
    "t5, dropout, two systems": (
        {**T5, "dropout_rate": 0.1},
        {"train_input": PAIRS, "eval_input": PAIRS, "runconfig": {"num_csx": 2}},
    ),
}


SLOW = (
    "genslm",
    "u-net",
    "llama",
    "gpt pipelined",
    "vit",
    "gpt-j, dropout, two systems",
    "bert, masked",
    "t5, dropout, two systems",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=pytest.mark.slow if x in SLOW else ()) for x in STREAMED]
)
def test_training_is_that_of_plain_jax(tmp_path, name):
    model, sections = STREAMED[name]
    made = job(tmp_path, model, **sections)
    train(made)
    close(weights(made), plain(made))
    assert evaluate(made)["loss"] < 2 * math.log(256)


@pytest.mark.slow
def test_an_interrupted_run_ends_at_the_same_bits(tmp_path):
    model = {**GPT, "dropout_rate": 0.1}
    (tmp_path / "whole").mkdir(), (tmp_path / "parts").mkdir()
    whole, parts = job(tmp_path / "whole", model), job(tmp_path / "parts", model)
    train(whole)
    train(Job(parts.params, steps=1))
    train(parts)
    same = zip(jax.tree.leaves(weights(whole)), jax.tree.leaves(weights(parts)), strict=True)
    assert all(np.array_equal(a, b) for a, b in same)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "half", "scale"),
    [("float16", precision.FLOAT16, 128.0), ("cbfloat16", precision.CBFLOAT16, "dynamic")],
)
def test_half_precision_with_loss_scaling_is_that_of_plain_jax(tmp_path, kind, half, scale):
    made = job(tmp_path, GPT, precision={"fp16_type": kind, "loss_scaling_factor": scale})
    train(made)
    scale = precision.Dynamic() if scale == "dynamic" else scale
    close(weights(made), plain(made, half=half, scale=scale))


def small(name: str) -> dict:
    return {"num_hidden_layers": 2} if workloads.entry(name).family == "transformer" else {}


@pytest.mark.parametrize(
    "name", [name for name, x in workloads.entries().items() if x.family in TRAINED]
)
def test_every_name_has_the_parameters_of_its_estimate(name):
    found = which({"name": name, **small(name)}, {})
    made = nnx.eval_shape(lambda: Module(found, rngs=nnx.Rngs(0)))
    count = sum(math.prod(x.shape) for x in jax.tree.leaves(nnx.state(made, nnx.Param)))
    assert count == found.workload.parameters == workloads.get(name, **small(name)).parameters


def test_words_of_width_are_those_that_a_file_writes_out():
    """The vendor's 111M, whose numbers are written out, by its base of 256 and 1024."""
    long = {"hidden_size": 768, "num_hidden_layers": 10, "num_heads": 12, "filter_size": 3072}
    common = {"name": "gpt3", **long, "embeddings_scale": 10.0, "scale_qk_dot_by_d": True}
    common["embedding_initializer"] = {"name": "truncated_normal", "std": 0.08}
    common |= {"loss_scaling": "batch_size", "loss_weight": 1 / 2048}

    def first(std):
        return {"name": "truncated_normal", "std": std, "a": -2 * std, "b": 2 * std}

    old = {**common, "output_logits_scale": 1 / 3}
    old |= {"initializer": first(0.046188021535170064)}
    old |= {"output_layer_initializer": first(0.010327955589886445)}
    new = {**common, "mup_base_hidden_size": 256, "mup_base_filter_size": 1024}
    new |= {"initializer": first(0.08), "output_layer_initializer": first(0.08)}
    by_hand, by_base = (which(x, {}).shape.manner for x in (old, new))
    for name in ("first_std", "output_std", "embedding_std", "logit_scale", "token_weight"):
        assert getattr(by_base, name) == pytest.approx(getattr(by_hand, name), rel=1e-6)
    assert by_base.rates == pytest.approx((1 / 3, 1 / 3))
    assert by_base.scores_by_width


@pytest.mark.slow
def test_rates_scale_the_products_of_blocks_alone(tmp_path):
    said = {"optimizer_type": "SGD", "learning_rate": 0.1}
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    whole = job(tmp_path / "a", GPT, optimizer=said)
    third = job(
        tmp_path / "b", GPT, optimizer={**said, "adjust_learning_rate": {"decoder_kernel": 0.5}}
    )
    first = whole.built.params
    moved = [jax.tree.map(jnp.subtract, plain(x, 1), first) for x in (whole, third)]
    paths = jax.tree.leaves_with_path(moved[0])
    for (path, a), b in zip(paths, jax.tree.leaves(moved[1]), strict=True):
        name = jax.tree_util.keystr(path)
        factor = 0.5 if "blocks" in name and "kernel" in name else 1.0
        assert np.allclose(factor * a, b, rtol=1e-3, atol=1e-7), name
    train(third)
    close(weights(third), plain(third))


def test_first_weights_have_the_spreads_that_are_said():
    found = which({**GPT, "hidden_size": 128, "initializer_range": 0.05}, {})
    made = Module(found, rngs=nnx.Rngs(0)).weights
    spread = 0.8796  # of a normal distribution within two of its spreads
    block = made["blocks"][0]
    assert float(jnp.std(block["attention"]["q"]["kernel"][...])) == pytest.approx(
        0.05 * spread, rel=0.05
    )
    ends = float(jnp.std(block["feedforward"]["down"]["kernel"][...]))
    assert ends == pytest.approx(0.05 * spread / 2, rel=0.05)
    assert float(jnp.max(jnp.abs(made["words"][...]))) <= 0.1


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_chance_of_a_sample_is_its_own(seed):
    """Permuted samples with their keys lose the same numbers."""
    found = which({**GPT, "dropout_rate": 0.5}, {})
    net = Module(found, rngs=nnx.Rngs(0))
    draw = np.random.default_rng(seed)
    tokens = draw.integers(256, size=(3, 8))
    keys, order = draw.integers(2**32, size=(3, 2), dtype=np.uint32), draw.permutation(3)
    one = net.said({"features": tokens, "keys": keys})["words"]
    other = net.said({"features": tokens[order], "keys": keys[order]})["words"]
    assert np.allclose(one[order], other, atol=1e-6)
    assert not np.allclose(one, net.said({"features": tokens})["words"], atol=1e-3)


def test_losses_are_the_closed_forms():
    draw = np.random.default_rng(0)
    logits = draw.normal(size=(2, 3, 5)).astype("f4")
    labels = np.array([[0, -1, 4], [2, 2, -1]])
    logits, labels = jnp.asarray(logits), jnp.asarray(labels)
    chances = np.log(np.exp(logits).sum(-1, keepdims=True)) - logits
    each = [chances[i, j, labels[i, j]] for i, j in np.argwhere(labels >= 0)]
    assert float(losses.worded(logits, labels)) == pytest.approx(np.mean(each), rel=1e-6)
    weighed = losses.worded(logits, labels, 0.25)
    assert float(weighed) == pytest.approx(np.sum(each) * 0.25 / 2, rel=1e-6)


def test_causal_tokens_do_not_see_those_behind():
    net = Module(which(GPT, {}), rngs=nnx.Rngs(0))
    tokens = np.arange(8)[None]
    changed = np.where(tokens == 5, 77, tokens)
    one, other = net(tokens), net(changed)
    assert np.allclose(one[:, :5], other[:, :5], atol=1e-6)
    assert not np.allclose(one[:, 5:], other[:, 5:], atol=1e-6)


def test_a_text_alone_is_compared_with_its_next_tokens(tmp_path):
    tokens = np.random.default_rng(0).integers(256, size=(12, 9))
    np.savez(tmp_path / "a.npz", features=tokens)
    np.savez(tmp_path / "b.npz", features=tokens[:, :-1], labels=tokens[:, 1:])
    one, two = (job(tmp_path, GPT, str(tmp_path / f"{x}.npz")).batch(0) for x in "ab")
    assert one.keys() == two.keys()
    assert all(np.array_equal(one[x], two[x]) for x in one)
    assert "labels" not in packaged("python-topics", 16)
    assert windows(np.arange(9), 4)["features"].tolist() == [[0, 1, 2, 3, 4], [4, 5, 6, 7, 8]]
    assert windows(np.arange(9), 4, 0)["features"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_masked_words_are_hidden_anew_at_every_step(tmp_path):
    made = job(tmp_path, {**BERT, "pooled": False, "token_types": 0, "max_sequence_length": 40,
                          "max_position_embeddings": 40})  # fmt: skip
    first, again, other = made.batch(0), made.batch(0), made.batch(1)
    assert np.array_equal(first["features"], again["features"])
    hidden = first["labels"] >= 0
    assert (hidden.sum(axis=1) == 6).all()
    assert not np.array_equal(hidden, other["labels"] >= 0)
    whole = made.samples.batch(0)["features"]
    assert np.array_equal(whole[hidden], first["labels"][hidden])
    assert np.array_equal(whole[~hidden], first["features"][~hidden])


REFUSED = {
    "attention_sliding_window_length": (4, "attention_sliding_window_length is 4; that is not"),
    "attention_type": ("dot_product", "'scaled_dot_product' alone is trained here"),
    "scale_qk_dot_by_layer_idx": (True, "scale_qk_dot_by_layer_idx is True"),
    "label_smoothing": (0.1, "label_smoothing is 0.1"),
    "final_logit_softcapping": (30.0, "final_logit_softcapping is 30.0"),
    "position_embedding_type": ("relativ", "is 'relativ', which is not known: did you mean"),
    "dropout_rate": (1.5, "dropout_rate is 1.5; it must be at least 0 and below 1"),
    "rotary_dim": (3, "rotary_dim is 3; it must be even"),
    "loss_weight": (0.5, "loss_weight is 0.5 with loss_scaling num_tokens"),
    "output_logits_alpha": (2.0, "without mup_base_hidden_size"),
    "initializer": ({"name": "normal", "std": 1.0}, "initializer.name is 'normal'"),
    "moe": ({"num_experts": 2, "load_balancing_loss_coef": 0.1}, "moe.load_balancing_loss_coef"),
    "hiden_size": (8, "has the key 'hiden_size', which is not known: did you mean"),
}


@pytest.mark.parametrize("key", REFUSED)
def test_what_is_counted_and_not_trained_is_refused_by_name(key):
    value, rule = REFUSED[key]
    words = {"name": "gpt2", "hidden_size": 8, "num_hidden_layers": 2, "num_heads": 2,
             "filter_size": 16, "max_position_embeddings": 8}  # fmt: skip
    assert which({**words, "label_smoothing": 0.0, "use_cache": True}, {}) is not None
    with pytest.raises(ValueError, match=rule):
        which({**words, key: value}, {})


@pytest.mark.parametrize(
    ("features", "rule"),
    [
        (np.zeros((5, 7), int), r"takes whole numbers of \(samples, 8\), or 9"),
        (np.zeros((5, 9)), "features are float"),
        (np.full((5, 9), 256), "features are int64 from 256 to 256; vocab_size is 256"),
        (np.full((5, 9), -1), "from -1"),
    ],
)
def test_samples_that_a_model_does_not_take_are_refused(tmp_path, features, rule):
    np.savez(tmp_path / "a.npz", features=features)
    with pytest.raises(ValueError, match=rule):
        _ = job(tmp_path, GPT, str(tmp_path / "a.npz")).samples


@pytest.mark.slow
def test_predictions_are_logits(tmp_path):
    tokens = np.random.default_rng(0).integers(256, size=(6, 9))
    np.savez(tmp_path / "a.npz", features=tokens[:, :-1], labels=tokens[:, 1:])
    made = job(tmp_path, GPT, str(tmp_path / "a.npz"))
    train(made)
    with np.load(infer(made), allow_pickle=False) as found:
        assert np.allclose(
            found["predictions"], made.built.predict(weights(made), tokens[:, :-1]), atol=1e-4
        )


@pytest.mark.parametrize(
    "name",
    ["release_2.0.2/transformers__pytorch__gpt3__muP__params_gpt3_111M",
     "main/nlp__gpt3__Cerebras_GPT__1p3b_mup", "main/nlp__gpt3__Cerebras_GPT__111m",
     "release_2.0.2/transformers__pytorch__gptj__params_gptj_6B"],
)  # fmt: skip
def test_the_vendor_s_files_are_read_for_training(name, shared):
    """All of their words; what lacks is the data, and a computer for the size."""
    said = read(shared / "data/modelzoo" / f"{name}.yaml")
    made = Job(said)
    assert made.named.workload.parameters > 1e8
    assert made.last > 1000
    assert said.optimizer.betas == (None if "gptj" in name else (0.9, 0.95))
    assert isinstance(said.optimizer.learning_rate, tuple)
    with pytest.raises(ValueError, match="nothing to read"):
        _ = made.samples


def test_pictures_of_another_size_or_class_are_refused(tmp_path):
    for change, rule in (
        ({"image_size": [12, 8]}, r"takes images of \(samples, 12, 8, 1\)"),
        ({"num_classes": 9}, "labels are int32 from 0 to 9; the number of classes is 9"),
    ):
        with pytest.raises(ValueError, match=rule):
            _ = job(tmp_path, {**VIT, **change}, DIGITS).samples


@pytest.mark.slow
def test_a_picture_model_learns_digits(tmp_path):
    said = {"optimizer_type": "Adam", "learning_rate": 0.01}
    entered = {"data_dir": DIGITS, "batch_size": 64}
    made = job(
        tmp_path,
        VIT,
        DIGITS,
        train_input=entered,
        optimizer=said,
        runconfig={"max_steps": 60, "eval_steps": 50},
    )
    train(made)
    assert evaluate(made)["loss"] < 0.8 * math.log(10)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "data"), [(UNET, "package:ink"), (RESNET, "package:digits-32")])
def test_an_answer_does_not_depend_on_what_lies_beside_it(tmp_path, model, data):
    """Norms over the batch take what the training samples have, not what the batch has."""
    made = job(tmp_path, model, data)
    held = averaged(made, made.built.params)["statistics"]
    x = made.batch(0)["features"]
    whole, one = (made.built.predict(made.built.params, y, held) for y in (x, x[:1]))
    assert np.allclose(whole[:1], one, rtol=1e-3, atol=1e-4)
    own = made.built.predict(made.built.params, x[:1])
    assert not np.allclose(own, one, rtol=1e-2)
    mean, variance = made.built.statistics(made.built.params, made.batch(1))[0]
    first = made.built.params["weights"]
    kernel = (first["down"][0][0] if "down" in first else first["stem"])["kernel"][...]
    wide = jax.lax.conv_general_dilated(
        jnp.asarray(made.batch(1)["features"]), kernel, (2, 2) if "stem" in first else (1, 1),
        "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )  # fmt: skip
    assert np.allclose(mean, wide.mean(axis=(0, 1, 2)), atol=1e-5)
    assert np.allclose(variance, wide.var(axis=(0, 1, 2)), rtol=1e-3, atol=1e-6)


def test_genomes_are_read_in_codons(tmp_path):
    (tmp_path / "a.fasta").write_text(">one, <1..>9\nAAAAAC\nAAGTTT\nTTNacg\n>two\nUUU\n")
    found = codons(tmp_path / "a.fasta", 2, 1)["features"]
    assert found.tolist() == [[5, 6, 7], [7, 68, 0]]
    with pytest.raises(ValueError, match="none of its 2 records has 9 codons"):
        codons(tmp_path / "a.fasta", 8, 1)


@pytest.mark.slow
def test_made_genes_stand_in_by_name_alone(tmp_path, monkeypatch):
    made = job(tmp_path, GENSLM, "package:made-genes")
    assert made.named.shape.vocab_size == 69
    first = float(made.built.loss(made.built.params, made.batch(0)))
    assert first == pytest.approx(math.log(69), rel=0.02)
    monkeypatch.setitem(sys.modules, "pyhmmer", None)  # as where it is not installed
    with pytest.raises(ValueError, match="pip install pyhmmer, write package:made-genes"):
        packaged("genes")


@pytest.mark.slow
def test_a_small_genslm_learns_which_codons_genes_have(tmp_path):
    """Of 61 codons that stand for something, a genome uses some far more often."""
    pytest.importorskip("pyhmmer", reason="the extra genes is not installed")
    tokens = packaged("genes", 32, 1)["features"]
    assert (len(tokens), tokens.min(), tokens.max()) == (878, 5, 68)
    rate = {"optimizer_type": "AdamW", "learning_rate": 0.01}
    sections = {"optimizer": rate, "runconfig": {"max_steps": 40, "eval_steps": 20}}
    sizes = {"hidden_size": 32, "max_sequence_length": 32}
    made = job(tmp_path, {**GENSLM, **sizes}, "package:genes", **sections)
    train(made)
    assert evaluate(made)["loss"] < 0.97 * math.log(64)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "data"), [(RESNET, "package:digits-32"), (RETINANET, "package:scenes")]
)
def test_a_net_of_images_has_the_gradient_of_plain_jax(tmp_path, model, data):
    """One step's: norms over four samples are so steep that rounding grows from step to step."""
    made = job(tmp_path, model, data, runconfig={"max_steps": 1})
    found = made.executor.value_and_grad(made.built.params, made.batch(0))
    known = jax.jit(jax.value_and_grad(made.built.loss))(made.built.params, made.batch(0))
    assert float(found[0]) == pytest.approx(float(known[0]), rel=1e-5)
    largest = max(float(jnp.max(jnp.abs(x))) for x in jax.tree.leaves(known[1]))
    close(found[1], known[1], atol=5e-5 * largest)
    train(made)
    assert evaluate(made)["loss"] < 10
