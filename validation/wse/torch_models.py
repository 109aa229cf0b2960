"""31 models of torchvision, timm and transformers, and of our own hand, small and untrained."""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn


def load_torchvision() -> None:
    """Import torchvision also where its compiled part is for graphics cards and PyTorch is not.

    What it then says of the shapes of its own operations, as nms, is left out. No model here has
    such an operation.
    """
    library = Path(find_spec("torchvision").origin).with_name("_C.so")
    try:
        torch.ops.load_library(library)
    except OSError:
        name = "torchvision._meta_registrations"
        sys.modules.setdefault(name, ModuleType(name))


load_torchvision()
import timm  # noqa: E402
import transformers as hf  # noqa: E402
from torchvision import models as tv  # noqa: E402
from torchvision.models import resnet, video  # noqa: E402

WORDS = 99
TEXT: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": WORDS,
    "max_position_embeddings": 32,
}
DECODER = TEXT | {"num_key_value_heads": 2, "use_cache": False}
SIGHT = {k: v for k, v in TEXT.items() if "vocab" not in k and "position" not in k}
SIGHT |= {"image_size": 32, "patch_size": 8}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "vocab_size": WORDS}


class UNet(nn.Module):
    """Down, up, and across; transposed convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.down = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, 2, padding=1)
        self.up = nn.ConvTranspose2d(16, 8, 3, 2, padding=1, output_padding=1)
        self.norm, self.out = nn.GroupNorm(4, 16), nn.Conv2d(16, 2, 1)

    def forward(self, x):
        h = torch.relu(self.into(x))
        both = torch.cat([h, self.up(torch.relu(self.down(h)))], 1)
        return self.out(self.norm(both))


class GraphAttention(nn.Module):
    """Each node a mean of its neighbours, by weights that are a softmax over its edges."""

    def __init__(self) -> None:
        super().__init__()
        self.value, self.score, self.out = nn.Linear(8, 6), nn.Linear(12, 1), nn.Linear(6, 3)

    def forward(self, x, edges):
        h, (source, target) = self.value(x), edges
        score = torch.tanh(self.score(torch.cat([h[source], h[target]], 1)))[:, 0]
        most = torch.full((len(x),), -torch.inf, dtype=x.dtype)
        most = most.scatter_reduce(0, target, score, "amax", include_self=False)
        share = (score - most[target]).exp()
        total = torch.zeros(len(x), dtype=x.dtype).index_add(0, target, share)
        pairs = h[source] * (share / total[target])[:, None]
        return self.out(torch.zeros_like(h).index_add(0, target, pairs))


class Language(nn.Module):
    """An LSTM over words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 8, padding_idx=0)
        self.memory, self.out = nn.LSTM(8, 12, 2, batch_first=True), nn.Linear(12, WORDS)

    def forward(self, tokens):
        return self.out(self.memory(self.words(tokens))[0])


def image(*size: int) -> tuple[Any, ...]:
    return (torch.randn(2, *(size or (3, 32, 32))),)


def tokens(count: int = 12) -> tuple[Any, ...]:
    return (torch.randint(0, WORDS, (2, count)),)


def pair() -> tuple[Any, ...]:
    return (*tokens(), torch.ones(2, 12, dtype=torch.long), *tokens(7))


def made(name: str, side: int = 32, **settings: Any) -> Callable[[], Any]:
    """A model of timm by its name."""
    return lambda: (timm.create_model(name, pretrained=False, **settings), image(3, side, side))


def told(name: str, enter: Callable[[], Any], **settings: Any) -> Callable[[], Any]:
    """A model of transformers from a configuration."""
    kind, _, part = name.partition(".")
    return lambda: (getattr(hf, kind + part)(getattr(hf, f"{kind}Config")(**settings)), enter())


def residual(block: Any, layers: list[int], **settings: Any) -> Callable[[], Any]:
    return lambda: (resnet.ResNet(block, layers, num_classes=5, **settings), image())


def mixture(way: str) -> Any:
    """Mixtral, its experts computed in one of the ways of transformers."""
    config = hf.MixtralConfig(**DECODER, num_local_experts=4, num_experts_per_tok=2)
    module = hf.MixtralForCausalLM(config)
    module.set_experts_implementation(way)
    return module, tokens()


def segmented() -> Any:
    """Dilated, pooled, and its answer resized to the image."""
    deeplab = tv.segmentation.deeplabv3
    body = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU())
    body = tv._utils.IntermediateLayerGetter(body, return_layers={"1": "out"})
    head = nn.Sequential(deeplab.ASPP(8, [2, 3], 8), nn.Conv2d(8, 3, 1))
    return deeplab.DeepLabV3(body, head), image()


# The first ten are run by `make validate` too, where PyTorch is there.
MODELS: dict[str, Callable[[], Any]] = {
    "ResNet": residual(resnet.BasicBlock, [1, 1, 1, 1]),
    "U-Net": lambda: (UNet(), image()),
    "ViT": made("vit_tiny_patch16_224", img_size=32, embed_dim=48, depth=2, num_heads=3),
    "Swin": made(
        "swin_tiny_patch4_window7_224",
        img_size=32,
        embed_dim=24,
        depths=(2, 2),
        num_heads=(2, 4),
        window_size=4,
    ),
    "ConvNeXt": made("convnext_atto", depths=(1, 1, 1, 1), dims=(8, 8, 16, 16)),
    "BERT": told("Bert.ForMaskedLM", tokens, **TEXT),
    "GPT-2": told(
        "GPT2.LMHeadModel",
        tokens,
        n_embd=32,
        n_layer=2,
        n_head=4,
        vocab_size=WORDS,
        use_cache=False,
    ),
    "Llama": told("Llama.ForCausalLM", tokens, **DECODER),
    "graph attention": lambda: (
        GraphAttention(),
        (
            torch.randn(5, 8),
            torch.cat([torch.randint(0, 5, (2, 9)), torch.arange(5).tile(2, 1)], 1),
        ),
    ),
    "LSTM": lambda: (Language(), tokens(6)),
    # The others only by `make torch`.
    "ResNeXt": residual(resnet.Bottleneck, [1, 1, 1, 1], groups=4, width_per_group=4),
    "DenseNet": lambda: (tv.DenseNet(4, (2, 2), 8, num_classes=5), image()),
    "ShuffleNet": lambda: (tv.ShuffleNetV2([1, 1, 1], [8, 8, 16, 16, 32]), image()),
    "DeepLab": segmented,
    "MobileNetV2": lambda: (tv.MobileNetV2(width_mult=0.1), image()),
    "ResNet 3-D": lambda: (
        video.resnet.VideoResNet(
            video.resnet.BasicBlock,
            [video.resnet.Conv3DSimple] * 4,
            [1] * 4,
            video.resnet.BasicStem,
        ),
        image(3, 4, 16, 16),
    ),
    "MaxViT": lambda: (
        tv.MaxVit((32, 32), 8, 2, [8], [1], 4, stochastic_depth_prob=0.0, num_classes=5),
        image(),
    ),
    "MLP-Mixer": lambda: (
        timm.models.mlp_mixer.MlpMixer(5, 32, patch_size=8, embed_dim=32, num_blocks=2),
        image(),
    ),
    "EVA-02": made("eva02_tiny_patch14_224", 28, img_size=28, embed_dim=48, depth=2, num_heads=3),
    "BEiT": made("beit_base_patch16_224", img_size=32, embed_dim=48, depth=2, num_heads=3),
    "PoolFormer": lambda: (
        timm.models.metaformer.MetaFormer(3, 5, depths=(1, 1, 1, 1), dims=(8, 8, 16, 16)),
        image(),
    ),
    "T5": told("T5.Model", pair, **T5, use_cache=False),
    "Mistral": told("Mistral.ForCausalLM", tokens, **DECODER, sliding_window=4),
    "Qwen3": told("Qwen3.ForCausalLM", tokens, **DECODER, head_dim=8),
    "GPT-NeoX": told("GPTNeoX.Model", tokens, **TEXT, use_cache=False),
    "BLOOM": told(
        "Bloom.Model",
        tokens,
        hidden_size=32,
        n_layer=2,
        n_head=4,
        vocab_size=WORDS,
        use_cache=False,
    ),
    "Mamba": told(
        "Mamba.Model",
        lambda: tokens(6),
        hidden_size=16,
        num_hidden_layers=1,
        state_size=4,
        vocab_size=WORDS,
        use_cache=False,
    ),
    "ESM": told("Esm.Model", tokens, **TEXT, pad_token_id=1, position_embedding_type="rotary"),
    "CLIP": lambda: (
        hf.CLIPModel(hf.CLIPConfig(text_config=TEXT | {"eos_token_id": 98}, vision_config=SIGHT)),
        (*tokens(), *image()),
    ),
    # PyTorch has no grouped product in float64: so batched, and grouped beside it in float32.
    "Mixtral": lambda: mixture("batched_mm"),
    "Wav2Vec2": told(
        "Wav2Vec2.Model",
        lambda: image(800),
        **SIGHT,
        conv_dim=(16, 16),
        conv_kernel=(10, 3),
        conv_stride=(5, 2),
        num_conv_pos_embeddings=8,
        num_conv_pos_embedding_groups=2,
    ),
}
