"""Models that answer a text: what is hidden of it, how far words stand apart, what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from hypothesis import given, settings
from hypothesis import strategies as st

from wse.job import fitting, spans
from wse.models.rebuilt import translation
from wse.models.rebuilt.blocks import buckets
from wse.models.trainable.module import Module
from wse.models.trainable.which import which

WORDS = 60
T5 = {"name": "t5", "src_vocab_size": WORDS, "d_model": 8, "d_kv": 3, "d_ff": 16, "num_heads": 2,
      "encoder_num_hidden_layers": 1, "decoder_num_hidden_layers": 1}  # fmt: skip
LONG = {"src_max_sequence_length": 16, "tgt_max_sequence_length": 6}
GATED = {"encoder_nonlinearity": "geglu", "decoder_nonlinearity": "geglu"}
KINDS = {
    "first": {},
    "gated, untied": {**GATED, "share_embedding_weights": False,
                      "share_encoder_decoder_embedding": False, "tgt_vocab_size": 50},
    "norms behind": {"use_pre_encoder_decoder_layer_norm": False, "norm_type": "layernorm",
                     "position_embedding_type": "learned_absolute", "extra_ids": 7},
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_the_parameters_of_its_estimate_and_learns_them_all(kind):
    found = which({**T5, **KINDS[kind]}, LONG)
    net = Module(found, rngs=nnx.Rngs(0))
    structure, params = nnx.split(net, nnx.Param)
    leaves = jax.tree.leaves(params)
    assert sum(x.size for x in leaves) == found.workload.parameters
    draw = np.random.default_rng(0)
    batch = {"features": draw.integers(50, size=(2, 16)), "labels": draw.integers(50, size=(2, 6))}
    gradient = jax.jit(jax.grad(lambda p: nnx.merge(structure, p).loss(batch)))(params)
    assert all(jnp.any(x != 0) for x in jax.tree.leaves(gradient))


def jitted(net):
    structure, params = nnx.split(net)

    @jax.jit
    def run(text, labels):
        return nnx.merge(structure, params).said({"features": text, "labels": labels})["words"]

    return run


def test_words_behind_in_the_answer_are_not_seen_and_the_text_is():
    net = Module(which(T5, LONG), rngs=nnx.Rngs(0))
    text, labels = np.arange(16)[None], np.arange(6)[None]
    said = jitted(net)

    one = said(text, labels)
    other = said(text, np.where(labels == 3, 40, labels))  # which stands before the place of 4
    assert np.allclose(one[:, :4], other[:, :4], atol=1e-6)
    assert not np.allclose(one[:, 4:], other[:, 4:], atol=1e-5)
    assert not np.allclose(one[:, 0], said(np.where(text == 15, 40, text), labels)[:, 0], atol=1e-6)


def test_an_answer_is_its_likeliest_words():
    net = Module(which(T5, LONG), rngs=nnx.Rngs(3))
    text = np.arange(32).reshape(2, 16)
    structure, params = nnx.split(net)
    logits = jax.jit(lambda x: nnx.merge(structure, params)(x))(text)
    words = jnp.argmax(logits, axis=-1)
    assert np.allclose(logits, jitted(net)(text, words), atol=1e-5)
    assert translation.before(jnp.array([[5, 6, -1]])).tolist() == [[0, 5, 6]]


def test_distances_are_in_the_buckets_of_the_paper():
    """32 buckets to 128: of `mesh_tensorflow`, `_relative_position_bucket`, in whole numbers."""
    both, one = buckets(200, 32, 128, both=True), buckets(200, 32, 128, both=False)
    middle = 199
    far = [1, 7, 8, 11, 12, 15, 16, 22, 23, 31, 32, 45, 46, 63, 64, 90, 91, 199]
    known = [1, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15]
    assert both[middle - np.array(far)].tolist() == known
    assert both[middle + np.array(far)].tolist() == [16 + x for x in known]
    assert one[middle:].max() == 0
    assert one[middle - np.array([1, 15, 16, 18, 19, 127, 128])].tolist() == [
        1, 15, 16, 16, 17, 31, 31,
    ]  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(st.integers(4, 60), st.integers(3, 30), st.integers(0, 10**6))
def test_hidden_parts_and_what_is_left_are_the_text(source, target, seed):
    long = spans.longest(source, target)
    if not long:
        return
    text = np.random.default_rng(seed).integers(2, 100, size=(2, long))
    found = spans.hidden(text, source, target, 200, np.random.default_rng(seed))
    for row, left, answer in zip(text, found["features"], found["labels"], strict=True):
        parts, marks = {}, []
        for word in answer[answer >= 0]:
            if word >= 100 or word == spans.END:
                marks.append(word)
            parts.setdefault(marks[-1], []).append(word)
        assert marks == [*range(199, 199 - spans.parts(long)[1], -1), spans.END]
        whole = [x for word in left for x in (parts[word][1:] if word >= 100 else [word])]
        assert whole[: long + 1] == [*row, spans.END]
        assert not any(whole[long + 1 :])


REFUSED = {
    "label_smoothing": (0.1, "label_smoothing is 0.1; that is not trained here"),
    "use_transformer_initialization": (True, "use_transformer_initialization is True"),
    "use_pre_encoder_decoder_dropout": (True, "use_pre_encoder_decoder_dropout is True"),
    "mlm_loss_scaling": ("precomputed_num_masked", "mlm_loss_scaling is 'precomputed_num_masked'"),
    "dropout_rate": (1.0, "dropout_rate is 1.0; it must be at least 0 and below 1"),
    "mup_base_hidden_size": (8, "mup_base_hidden_size is 8; that is not trained here"),
    "d_modell": (8, "has the key 'd_modell', which is not known: did you mean 'd_model'"),
}


@pytest.mark.parametrize("key", REFUSED)
def test_words_that_are_computed_in_another_way_are_refused(key):
    value, rule = REFUSED[key]
    assert which({**T5, "label_smoothing": 0.0, "use_cache": True}, LONG) is not None
    with pytest.raises(ValueError, match=rule):
        which({**T5, key: value}, LONG)


def test_lengths_of_another_kind_of_model_are_refused():
    with pytest.raises(ValueError, match="t5 takes src_ and tgt_max_sequence_length: rename it"):
        which(T5, {"max_sequence_length": 8})
    gpt = {"name": "GPT-2-small", "hidden_size": 8, "num_heads": 2}
    with pytest.raises(ValueError, match="tgt_max_sequence_length: 4, and GPT-2-small takes max_"):
        which(gpt, {"tgt_max_sequence_length": 4})


@pytest.mark.parametrize(
    ("features", "labels", "rule"),
    [
        (np.zeros((5, 11), int), np.zeros((5, 6), int), r"of \(samples, 16\), or 17 with no"),
        (np.zeros((5, 16)), np.zeros((5, 6), int), "features are float64"),
        (np.full((5, 16), WORDS), np.zeros((5, 6), int), "the vocabulary of the text is 60"),
        (np.zeros((5, 16), int), np.zeros((5, 5), int), r"labels are of \(5, 5\); t5 compares"),
        (np.zeros((5, 16), int), None, "labels are of None"),
        (np.full((5, 17), WORDS - 1), None, "less its last 1, which mark hidden parts, is 59"),
    ],
)
def test_texts_and_answers_that_a_model_does_not_take_are_refused(features, labels, rule):
    found = which(T5, LONG)
    assert fitting.text_length(found) == 17
    fitting.fitted(found, np.zeros((5, 16), int), np.full((5, 6), -1), {}, True)
    with pytest.raises(ValueError, match=rule):
        fitting.fitted(found, features, labels, {}, True)


def test_first_logits_are_of_a_spread_near_one():
    net = Module(which({**T5, "d_model": 64, "d_kv": 16}, LONG), rngs=nnx.Rngs(0))
    words = np.random.default_rng(0).integers(WORDS, size=(2, 16))
    assert 0.3 < float(jnp.std(jitted(net)(words, words[:, :6]))) < 3
