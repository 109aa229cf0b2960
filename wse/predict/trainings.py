"""Published training rates of GPUs, TPUs and a CPU: what `wse.predict.roofline` is fitted to.

Every row that has no recomputation beside the batch, and the widest models, which have; sequences
of 512 to 8192 tokens.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from wse.models.shapes.convolution import resnet50
from wse.models.shapes.segmentation import unet
from wse.models.shapes.transformer import Transformer, transformer
from wse.models.shapes.workload import Workload, dense

_FOUNDRY = "mosaicml/llm-foundry, scripts/train/benchmarking/README.md"
_RESNET = "NVIDIA/DeepLearningExamples, PyTorch/Classification/ConvNets/resnet50v1.5"
_NNUNET = "NVIDIA/DeepLearningExamples, PyTorch/Segmentation/nnUNet"
_MAXTEXT = "google/maxtext, MaxText/configs/v5e: utilisation on 256 chips; of GPT-3's shapes here"
_TABLE4 = "Table 4 of the OSTI brief"


@dataclass(frozen=True)
class Run:
    """One published training.

    Attributes:
        machine: the device's name.
        make: the model.
        samples_per_s: of one device, all of its work counted.
        again: share of the forward pass that is computed again.
        source: where it was read.
        group: what is left out together when the fit is tested: one model.
    """

    machine: str
    make: Callable[[], Workload]
    samples_per_s: float
    again: float
    source: str
    group: str

    @property
    def is_convolutional(self) -> bool:
        """Whether it is of a convolutional net."""
        return self.source in (_RESNET, _NNUNET)


MPT = {  # features, blocks, heads: mosaicml/llm-foundry, scripts/train/yamls/pretrain
    "125m": (768, 12, 12),
    "350m": (1024, 24, 16),
    "760m": (1536, 24, 12),
    "1b": (2048, 24, 16),
    "3b": (2560, 32, 20),
    "7b": (4096, 32, 32),
    "13b": (5120, 40, 40),
    "30b": (7168, 48, 56),
    "70b": (8192, 80, 64),
}
GPT3 = {
    "13B": (5120, 40, 40),
    "30B": (7168, 48, 56),
    "66B": (9216, 64, 72),
    "128B": (10240, 96, 80),
}
# Of GPUs tokens a second of one device by model and tokens of a sequence; of the widest two models
# activations were computed again.
TOKENS = {
    "A100": {
        ("125m", 512): 165_681, ("125m", 2048): 142_830, ("125m", 8192): 90_392,
        ("350m", 512): 69_330, ("350m", 2048): 58_782, ("350m", 8192): 36_569,
        ("760m", 512): 29_446, ("760m", 2048): 32_434, ("760m", 8192): 20_933,
        ("1b", 512): 23_148, ("1b", 2048): 20_513, ("1b", 8192): 13_814,
        ("3b", 512): 12_127, ("3b", 2048): 10_811, ("3b", 8192): 7_695,
        ("7b", 2048): 4_641, ("13b", 2048): 2_262, ("30b", 2048): 916, ("70b", 2048): 410,
    },
    "H100": {
        ("760m", 512): 83_749, ("760m", 2048): 63_147, ("760m", 8192): 41_825,
        ("1b", 512): 52_275, ("1b", 2048): 45_455, ("1b", 8192): 29_157,
        ("3b", 512): 27_965, ("3b", 2048): 24_142, ("3b", 8192): 16_578,
        ("7b", 2048): 10_643, ("13b", 2048): 4_792, ("30b", 2048): 2_002, ("70b", 2048): 1_039,
    },
}  # fmt: skip
RECOMPUTED = ("30b", "70b")
UTILISATION = {"13B": 0.6110, "30B": 0.6686, "66B": 0.5990, "128B": 0.5606}  # of 16, 32, 64, 128 B
CPU = {32: 47_577.9, 128: 20_864.8, 512: 4_512.1, 2048: 388.2}


def language(shape: tuple[int, int, int], tokens: int, name: str = "GPT") -> Workload:
    """A GPT of so many features, blocks and heads, with a vocabulary of 50,368."""
    features, blocks, heads = shape
    made = Transformer(
        hidden_size=features,
        num_hidden_layers=blocks,
        num_heads=heads,
        vocab_size=50_368,
        max_sequence_length=tokens,
        share_embedding_weights=True,
    )
    return transformer(name, made)


@cache
def runs(machine: str) -> tuple[Run, ...]:
    """The published trainings of one device, by its name."""
    found = [
        Run(
            machine,
            lambda name=name, tokens=tokens: language(MPT[name], tokens),
            rate / tokens,
            float(name in RECOMPUTED),
            _FOUNDRY,
            name,
        )
        for (name, tokens), rate in TOKENS.get(machine, {}).items()
    ]
    return (*found, *(one for one in _others() if one.machine == machine))


def _others() -> tuple[Run, ...]:
    """The convolutional nets, the TPU's and the CPU's."""
    flat, deep = (32, 64, 128, 256, 512, 512), (32, 64, 128, 256, 320, 320)
    nets: tuple[tuple[str, Callable[[], Workload], float, str], ...] = (
        ("ResNet-50", resnet50, 2470.0, _RESNET),
        ("nnU-Net 2-D", lambda: unet(size=(192, 160), filters=flat, channels=4), 926.64, _NNUNET),
        ("nnU-Net 3-D", lambda: unet(size=(128,) * 3, filters=deep, channels=4), 9.52, _NNUNET),
    )
    dense_nets = (
        Run("Table 4 CPU", lambda width=width: dense(width=width), rate, 0.0, _TABLE4, str(width))
        for width, rate in CPU.items()
    )
    convolutional = (Run("A100", make, rate, 0.0, at, name) for name, make, rate, at in nets)
    return (*convolutional, *map(_maxtext, UTILISATION), *dense_nets)


def _maxtext(name: str) -> Run:
    work = language(GPT3[name], 2048, name)
    rate = UTILISATION[name] * 197e12 / (work.forward_flops + work.backward_flops)
    return Run("TPU v5e", lambda: work, rate, 1.0, _MAXTEXT, name)
