"""Models that `wse run` trains by name, with the weights of transformers' classes: the same logits.

The softmax of attention is in float32, whatever the rest is in.
"""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra torch is not installed: make torch runs it")
if find_spec("timm") is None:  # not imported: torchvision may need help first
    pytest.skip("the extra torch is not installed: make torch", allow_module_level=True)
from validation.wse.as_pytorch import AllDouble, livened  # noqa: E402
from validation.wse.torch_models import DECODER, TEXT, WORDS, hf  # noqa: E402
from wse.models.rebuilt import text  # noqa: E402
from wse.models.trainable.which import which  # noqa: E402

pytestmark = [pytest.mark.validation, pytest.mark.filterwarnings("ignore")]
NEAR = 1e-6
State = Mapping[str, np.ndarray]
ZOO = {"hidden_size": 32, "num_hidden_layers": 2, "num_heads": 4, "filter_size": 48}
ZOO |= {"vocab_size": WORDS, "max_position_embeddings": 32}
BARE = ("use_projection_bias_in_attention", "use_ffn_bias_in_attention", "use_ffn_bias")
LLAMA = {
    **ZOO,
    **dict.fromkeys(BARE, False),
    "nonlinearity": "swiglu",
    "norm_type": "rmsnorm",
    "position_embedding_type": "rotary",
    "rotary_dim": 8,
    "share_embedding_weights": False,
    "attention_module": "multiquery_attention",
    "extra_attention_params": {"num_kv_groups": 2},
    "layer_norm_epsilon": 1e-6,
}


def linear(state: State, name: str) -> dict[str, Any]:
    own = {"kernel": state[f"{name}.weight"].T}
    bias = state.get(f"{name}.bias")
    return own if bias is None else {**own, "bias": bias}


def norm(state: State, name: str, scale: str = "scale") -> dict[str, Any]:
    shift = state.get(f"{name}.bias")
    own = {scale: state[f"{name}.weight"]}
    return own if shift is None else {**own, "shift": shift}


def cut(p: dict[str, Any], heads: int = 0) -> dict[str, Any]:
    """Queries, keys and values of one product: of all heads, or head by head."""

    def part(x: Any, i: int) -> Any:
        parts = x.reshape(*x.shape[:-1], heads or 1, 3, -1)[..., i, :]
        return parts.reshape(*x.shape[:-1], -1)

    return {name: {k: part(x, i) for k, x in p.items()} for i, name in enumerate("qkv")}


def bloom(state: State) -> dict[str, Any]:
    def one(i: int) -> dict[str, Any]:
        b = f"transformer.h.{i}."
        qkv = cut(linear(state, f"{b}self_attention.query_key_value"), 6)
        return {
            "norm_0": norm(state, f"{b}input_layernorm"),
            "norm_1": norm(state, f"{b}post_attention_layernorm"),
            "attention": {**qkv, "attended": linear(state, f"{b}self_attention.dense")},
            "feedforward": {
                "up": linear(state, f"{b}mlp.dense_h_to_4h"),
                "down": linear(state, f"{b}mlp.dense_4h_to_h"),
            },
        }

    return {
        "words": state["transformer.word_embeddings.weight"],
        "norm_in": norm(state, "transformer.word_embeddings_layernorm"),
        "blocks": [one(0), one(1)],
        "norm_out": norm(state, "transformer.ln_f"),
    }


def mpt(state: State) -> dict[str, Any]:
    def one(i: int) -> dict[str, Any]:
        b = f"transformer.blocks.{i}."
        qkv = cut(linear(state, f"{b}attn.Wqkv"))
        return {
            "norm_0": norm(state, f"{b}norm_1", "gain"),
            "norm_1": norm(state, f"{b}norm_2", "gain"),
            "attention": {**qkv, "attended": linear(state, f"{b}attn.out_proj")},
            "feedforward": {
                "up": linear(state, f"{b}ffn.up_proj"),
                "down": linear(state, f"{b}ffn.down_proj"),
            },
        }

    return {
        "words": state["transformer.wte.weight"],
        "blocks": [one(0), one(1)],
        "norm_out": norm(state, "transformer.norm_f", "gain"),
    }


def llama(state: State) -> dict[str, Any]:
    def one(i: int) -> dict[str, Any]:
        b = f"model.layers.{i}."
        names = {"up": "gate_proj", "gate": "up_proj", "down": "down_proj"}
        own = {x: linear(state, f"{b}self_attn.{x}_proj") for x in "qkv"}
        return {
            "norm_0": norm(state, f"{b}input_layernorm"),
            "norm_1": norm(state, f"{b}post_attention_layernorm"),
            "attention": {**own, "attended": linear(state, f"{b}self_attn.o_proj")},
            "feedforward": {k: linear(state, f"{b}mlp.{x}") for k, x in names.items()},
        }

    return {
        "words": state["model.embed_tokens.weight"],
        "blocks": [one(0), one(1)],
        "norm_out": norm(state, "model.norm"),
        "head": state["lm_head.weight"].T,
    }


def bert(state: State) -> dict[str, Any]:
    def one(i: int) -> dict[str, Any]:
        b = f"bert.encoder.layer.{i}."
        names = {"q": "query", "k": "key", "v": "value"}
        own = {k: linear(state, f"{b}attention.self.{x}") for k, x in names.items()}
        return {
            "norm_0": norm(state, f"{b}attention.output.LayerNorm"),
            "norm_1": norm(state, f"{b}output.LayerNorm"),
            "attention": {**own, "attended": linear(state, f"{b}attention.output.dense")},
            "feedforward": {
                "up": linear(state, f"{b}intermediate.dense"),
                "down": linear(state, f"{b}output.dense"),
            },
        }

    e, head = "bert.embeddings.", "cls.predictions."
    return {
        "words": state[f"{e}word_embeddings.weight"],
        "places": state[f"{e}position_embeddings.weight"],
        "types": state[f"{e}token_type_embeddings.weight"],
        "norm_in": norm(state, f"{e}LayerNorm"),
        "blocks": [one(0), one(1)],
        "transform": linear(state, f"{head}transform.dense"),
        "norm_transform": norm(state, f"{head}transform.LayerNorm"),
        "head_bias": state[f"{head}bias"],
    }


SAME: dict[str, tuple[Callable[[], Any], dict[str, Any], Callable[[State], Any]]] = {
    "BLOOM, six heads": (
        lambda: hf.BloomForCausalLM(
            hf.BloomConfig(hidden_size=48, n_layer=2, n_head=6, vocab_size=WORDS, use_cache=False)
        ),
        {**ZOO, "name": "bloom", "hidden_size": 48, "num_heads": 6, "filter_size": 192,
         "nonlinearity": "gelu_new", "position_embedding_type": "alibi",
         "embedding_layer_norm": True},
        bloom,
    ),
    "MPT": (
        lambda: hf.MptForCausalLM(
            hf.MptConfig(d_model=32, n_layers=2, n_heads=4, vocab_size=WORDS, use_cache=False)
        ),
        {**ZOO, **dict.fromkeys(BARE, False), "name": "mpt", "filter_size": 128,
         "norm_type": "biasless-layernorm", "position_embedding_type": "alibi"},
        mpt,
    ),
    "Llama": (
        lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**DECODER)), {**LLAMA, "name": "llama"}, llama,
    ),
    "BERT": (
        lambda: hf.BertForMaskedLM(hf.BertConfig(**TEXT)),
        {**ZOO, "name": "bert", "disable_nsp": True, "num_segments": 2,
         "layer_norm_epsilon": 1e-12},
        bert,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_logits_and_gradients_are_those_of_transformers(name: str) -> None:
    torch.manual_seed(0)
    make, words, tree = SAME[name]
    module = livened(make().eval()).double()
    shape = which(words, {"max_sequence_length": 12}).net
    tokens = torch.randint(3, WORDS, (2, 12))  # BERT passes no gradient to its padding, 0
    with jax.enable_x64(True), AllDouble():
        wanted = module(tokens).logits
        share = torch.randn_like(wanted)
        (wanted * share).sum().backward()
        named = dict(module.named_parameters())
        weights = jax.tree.map(jnp.asarray, tree({k: x.detach().numpy() for k, x in named.items()}))

        def weighed(weights: Any) -> Any:
            said = text.read(shape, weights, jnp.asarray(tokens.numpy()))["words"]
            return jnp.sum(said * share.numpy()), said

        gradient, said = jax.grad(weighed, has_aux=True)(weights)
    theirs = jax.tree.leaves(tree({k: x.grad.numpy() for k, x in named.items()}))
    largest = max(np.abs(x).max() for x in theirs)
    assert np.abs(said - wanted.detach().numpy()).max() < NEAR * float(wanted.abs().max())
    for ours, other in zip(jax.tree.leaves(gradient), theirs, strict=True):
        assert np.abs(ours - other).max() < NEAR * max(np.abs(other).max(), 1e-3 * largest)
