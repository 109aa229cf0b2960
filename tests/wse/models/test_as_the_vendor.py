"""What `wse run` trains is what the vendor's classes compute of the same words."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wse.models.rebuilt import text
from wse.models.rebuilt.blocks import slopes
from wse.models.rebuilt.build import built
from wse.models.trainable.weights import first
from wse.models.trainable.which import which

BLOCKS = {"hidden_size": 16, "num_hidden_layers": 2, "num_heads": 2, "filter_size": 8}
GPT = {"name": "gpt2", "vocab_size": 11, "max_position_embeddings": 8, **BLOCKS}
BERT = {**GPT, "name": "bert", "disable_nsp": True}
VIT = {"name": "vit", **BLOCKS, "image_size": [4, 4], "patch_size": [2, 2]}
BARE = {"use_position_embedding": False, "share_embedding_weights": False}


def read(**model):
    """A model, weights of it that are not its first, and what it says of words."""
    found = which(model, {"max_sequence_length": 5})
    made = built(found.family, found.net, 1).params
    weights = first(made, jax.random.key(0), found.shape.manner, 2)
    weights = jax.tree.map(lambda x: x + 0.1, weights)
    words = jnp.asarray([[1, 4, 7, 2, 9]])
    return found, weights, lambda w: text.read(found.net, w, words)["words"]


def in_the_paper(n: int) -> list[float]:
    """Slopes as Press et al. have them, whole powers of two first."""
    if math.log2(n).is_integer():
        return [2 ** (-8 * (i + 1) / n) for i in range(n)]
    whole = 2 ** math.floor(math.log2(n))
    return in_the_paper(whole) + in_the_paper(2 * whole)[::2][: n - whole]


@pytest.mark.parametrize("heads", [1, 2, 6, 8, 12, 40])
def test_slopes_are_those_of_the_paper(heads):
    assert np.allclose(slopes(heads), in_the_paper(heads), rtol=1e-6)


@pytest.mark.parametrize("trained", [False, True])
def test_heads_of_no_power_of_two_fall_off_as_in_the_paper(trained):
    words = {**GPT, "hidden_size": 18, "num_heads": 3, "position_embedding_type": "alibi"}
    found = which({**words, "alibi_trainable_slopes": trained}, {"max_sequence_length": 2})
    made = first(built(found.family, found.net, 1).params, jax.random.key(0), None)
    bias = text.positions_bias(found.net, made, 2)[0, :, 1, 0]
    assert np.allclose(bias, -np.array(in_the_paper(3)), rtol=1e-6)


@pytest.mark.parametrize(
    ("norm", "blind"), [("layernorm", True), ("biasless-layernorm", True), ("rmsnorm", False)]
)
def test_norms_are_blind_to_what_all_features_share(norm, blind):
    found, weights, said = read(**GPT, **BARE, norm_type=norm)
    moved = {**weights, "words": weights["words"] + 0.5}
    assert np.allclose(said(weights), said(moved), atol=1e-4) is blind
    count = sum(x.size for x in jax.tree.leaves(weights))
    assert count == found.workload.parameters


def test_norms_of_queries_are_of_one_kind():
    wide = {**GPT, "attention_qk_norm_layer": "layernorm"}
    with pytest.raises(ValueError, match=r"attention_qk_norm_layer is 'layernorm'; .*rmsnorm"):
        which(wide, {})
    assert which({**wide, "attention_qk_norm_layer": "rmsnorm"}, {}).net.head_norms


def test_fixed_positions_turn_from_once_to_ten_thousandth():
    waves = text.waves(3, jnp.zeros((1, 3, 7)))
    slow = np.array([1, 1e-2, 1e-4])
    expected = [[f(2 * x) for x in slow for f in (np.sin, np.cos)] + [0]]
    assert np.allclose(waves[2:], expected, atol=1e-6)


def test_the_embedding_is_scaled_behind_its_norm():
    model = {**GPT, **BARE, "embedding_layer_norm": True}
    _, weights, plain = read(**model)
    _, _, scaled = read(**model, embeddings_scale=3.0)
    assert not np.allclose(plain(weights), scaled(weights), atol=1e-3)


def manner(model, **said):
    return which({**model, **said}, {}).shape.manner


@pytest.mark.parametrize(
    ("model", "first"),
    [(BERT, False), ({**BERT, "name": "esm2"}, True), (VIT, True), (GPT, True)],
)
@pytest.mark.parametrize("last", [False, True])
def test_where_norms_stand_follows_from_the_model_not_from_its_last_norm(model, first, last):
    said = {} if model is GPT else {"use_final_layer_norm": last}
    assert manner(model, **said).norm_first is first
    if model is BERT:
        assert manner(model, **said, norm_first=True).norm_first


def test_what_is_pooled_has_the_function_of_the_blocks_unless_one_is_said():
    nsp = {**BERT, "disable_nsp": False, "encoder_nonlinearity": "relu"}
    assert (manner(nsp).pooler, manner(nsp).transform) == ("relu", "relu")
    told = manner(nsp, pooler_nonlinearity="tanh", mlm_nonlinearity="gelu")
    assert (told.pooler, told.transform) == ("tanh", "gelu")
    assert manner({"name": "BERT-large", "num_hidden_layers": 1}).pooler == "tanh"
    outputs = [
        read(**nsp, pooler_nonlinearity=word, mlm_nonlinearity=word)[0].shape.manner
        for word in ("tanh", "gelu")
    ]
    assert outputs[0] != outputs[1]


def test_a_quarter_of_a_head_is_turned_unless_it_is_said():
    rotary = {**GPT, "position_embedding_type": "rotary"}
    assert manner(rotary).rope_width == 2
    assert manner(rotary, rotary_dim=8).rope_width == 8
    assert manner({**rotary, "name": "gptj"}).rope_width == 2


@pytest.mark.parametrize("kind", ["fixed", "rotary"])
def test_positions_of_images_that_are_not_computed_are_refused(kind):
    with pytest.raises(ValueError, match=rf"position_embedding_type is '{kind}'; .*write learned"):
        which({**VIT, "position_embedding_type": kind}, {})
