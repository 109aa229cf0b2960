"""The rules that are known, each with its source: which operations the wafer runs, and when.

The vendor's own list of operations says that it is preliminary and that support is given for the
way operations are used in its Model Zoo. So a model of the Model Zoo is evidence for the operations
that it is made of (status derived), and what no model uses and no page names has no rule.
"""

from functools import partial
from typing import Any

from wse.machine.support.rules import Constraint, Rule, Where

_OPS = "docs.cerebras.net, Supported PyTorch Ops (support as used in the Model Zoo)"
_LIMITS = "docs.cerebras.net, Limitations of PyTorch on Cerebras"
_FAQ = "pscedu/psc-wpdocs, neocortex/FAQ.md"
_KERNELS = "pscedu/psc-wpdocs, neocortex/developing-cerebras-library-support.md"
_NOTES = "Cerebras/modelzoo, RELEASE-NOTES.md"
_ZOO = f"Cerebras/modelzoo, R1.6 table of models, by {_OPS}"
_UNET = "Cerebras/modelzoo, vision/pytorch/unet: weight streaming since 1.7.0"
_UNET3D = "Cerebras/modelzoo, unet/configs/params_skm_tea.yaml (3-D U-Net, 160 x 512 x 512)"
_LOSS = "Cerebras/modelzoo, common/pytorch/layers/L1Loss.py"
_DECOMP = "cerebras.pytorch 2.10, decomp/_decompositions.py"
_DROPPED = "Cerebras/modelzoo, models dropped in R1.5 (LSTM, GNN, CTR, audio)"
_LSTM = f"{_DROPPED}, by {_OPS}"
_FREUND = "Freund, Cambrian-AI 2021"
_SDK = "Cerebras/csl-examples, benchmarks/fft-1d-2d and fft-3d: hand-written, outside the framework"

EVERYWHERE = (Where(),)
# Transformers and MLPs: both modes on WSE-2 since R1.6, streaming alone from R2.1; CS-3 at R2.5,
# of which its public logs are (they were once taken for R2.10).
ZOO = (
    Where("WSE-2", "pipelined", since="1.6", until="2.0"),
    Where("WSE-2", "streaming", since="1.6"),
    Where("WSE-3", "streaming", since="2.5"),
)
# The U-Net streams; the layer-pipelined one was experimental, in TensorFlow.
IMAGES = (
    Where("WSE-2", "pipelined", since="1.6", until="1.7"),
    Where("WSE-2", "streaming", since="1.7"),
    Where("WSE-3", "streaming", since="2.5"),
)
WHEEL = (Where("WSE-2", "streaming", since="2.10"), Where("WSE-3", "streaming", since="2.10"))
LOSSES = (Where("WSE-2", "streaming", since="2.0"), Where("WSE-3", "streaming", since="2.5"))
VOLUMES = (Where("WSE-2", "streaming", since="2.0", until="2.2"),)

PRODUCTS = ("dot_general",)
ARITHMETIC = ("add", "add_any", "sub", "mul", "div", "neg", "max", "integer_pow", "square")
TRANSCENDENTAL = ("exp", "log", "sqrt", "rsqrt", "pow")
REDUCTIONS = ("reduce_sum", "reduce_max")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "select_n", "is_finite")
SHAPES = (
    *("reshape", "transpose", "broadcast_in_dim", "squeeze", "expand_dims", "slice", "split"),
    *("convert_element_type", "iota", "copy", "empty2"),
)
SCATTERS = ("scatter-add", "scatter_add")
RANDOM = (
    *("random_bits", "random_seed", "random_wrap", "random_unwrap", "random_fold_in"),
    *("threefry2x32", "shift_right_logical", "bitcast_convert_type"),
)
LOOPS = ("while", "cond")
DOUBLE = frozenset({"float64"})
COMPLEX = frozenset({"complex64", "complex128"})
CONVOLUTION = ("conv_general_dilated",)


def _zoo(
    operations: tuple[str, ...],
    reason: str,
    where: tuple[Where, ...] = ZOO,
    source: str = _ZOO,
    **constraint: Any,
) -> Rule:
    """What a model of the Model Zoo is made of runs where that model does."""
    only = Constraint(**constraint)
    return Rule(operations, "native", where, reason, source, "derived", constraint=only)


_unet = partial(_zoo, where=IMAGES[1:], source=_UNET, first_rank=4)


RULES: tuple[Rule, ...] = (
    Rule(
        ("*",),
        "unsupported",
        EVERYWHERE,
        "only mixed precision: 32-bit weights, arithmetic in 32 and 16 bits",
        _LIMITS,
        "sourced",
        "train in float32: leave jax_enable_x64 off; keep float64 on the host",
        Constraint(dtypes=DOUBLE),
    ),
    Rule(
        ("*",),
        "unsupported",
        EVERYWHERE,
        "no complex number is among the precisions that exist",
        _LIMITS,
        "derived",
        "carry real and imaginary parts as two real arrays",
        Constraint(dtypes=COMPLEX),
    ),
    Rule(
        ("*",),
        "unsupported",
        (Where(until="1.6"), Where(mode="pipelined", until="1.7")),
        "bfloat16 came with release 1.7, for weight streaming; half precision was float16",
        _NOTES,
        "derived",
        "use float16 with loss scaling, or a later release",
        Constraint(dtypes=frozenset({"bfloat16"})),
    ),
    Rule(
        ("*",),
        "unsupported",
        (Where("WSE-1", "streaming"),),
        "weights are streamed to CS-2 and later systems",
        _FREUND,
        "derived",
        "pass machine=wse.CS2(), or mode='pipelined'",
    ),
    Rule(
        LOOPS,
        "unsupported",
        EVERYWHERE,
        "the graph is static: what is executed must not depend on data",
        _LIMITS,
        "sourced",
        "compute both sides and choose with jnp.where; unroll to a fixed number of turns",
    ),
    Rule(
        ("scan",),
        "unsupported",
        (Where(since="1.5"),),
        "recurrent models (LSTM) left the Model Zoo with release 1.5",
        _LSTM,
        "derived",
        "unroll a short loop; scan layers themselves, not their numbers; attend over time",
        Constraint(traits=frozenset({"carries"})),
    ),
    _zoo(PRODUCTS, "dense layers and attention"),
    _zoo(ARITHMETIC, "elementwise arithmetic of MLPs and transformers; relu is max"),
    _zoo(TRANSCENDENTAL, "softmax, norms and losses of MLPs and transformers"),
    _zoo(REDUCTIONS, "norms, softmax and losses"),
    _zoo(COMPARISONS, "masks, relu's derivative, loss scaling"),
    _zoo(SHAPES, "heads of attention, casts, positions"),
    _zoo(("gather",), "embeddings"),
    _zoo(SCATTERS, "gradients of embeddings", backward=True),
    # Since JAX 0.10 two have names of their own: they were concatenations and slices before.
    _zoo(("concatenate", "stack", "unstack"), "joined heads, prompts and skip connections"),
    _zoo(("pad",), "the derivative of a slice", backward=True),
    Rule(("tanh",), "native", EVERYWHERE, "tanh is supported in place of relu", _FAQ, "sourced"),
    _zoo(("abs", "sign"), "L1 and smooth L1 loss", LOSSES, _LOSS),
    _zoo(("erf",), "gelu of BERT and GPT"),
    _zoo(("logistic",), "binary cross-entropy of U-Net", IMAGES[1:], _UNET),
    Rule(
        RANDOM,
        "decomposed",
        ZOO,
        "dropout exists, with the wafer's own random numbers: masks differ from JAX's",
        _ZOO,
        "derived",
        "compare runs by distribution, not bit by bit",
    ),
    Rule(
        CONVOLUTION,
        "unsupported",
        (Where(mode="pipelined"), Where(until="1.7")),
        "3-D convolution is not supported",
        _FAQ,
        "sourced",
        "stream with release 2.0 to 2.2, or stack slices as channels of 2-D convolutions",
        Constraint(first_rank=5),
    ),
    _zoo(CONVOLUTION, "the 3-D U-Net of the Model Zoo", VOLUMES, _UNET3D, first_rank=5),
    Rule(
        CONVOLUTION,
        "native",
        IMAGES[:1],
        "2-D U-Net is listed as experimental, in TensorFlow",
        _KERNELS,
        "sourced",
        "prefer mode='streaming', release 1.7 or later",
        Constraint(first_rank=4, without=frozenset({"dilated", "grouped"})),
    ),
    _unet(
        CONVOLUTION,
        "2-D U-Net; after release 2.2 the Model Zoo keeps only patch convolutions (ViT)",
        without=frozenset({"dilated", "grouped"}),
    ),
    _unet(("reduce_window_max", "select_and_scatter_add"), "max pooling of U-Net"),
    Rule(
        ("acos", "asin", "atan", "cosh", "acosh", "log1p"),
        "decomposed",
        WHEEL,
        "written out in simpler operations by the vendor's compiler",
        _DECOMP,
        "sourced",
    ),
    _unet(
        ("rev",),
        "JAX flips the filter of a transposed convolution, of which U-Net has some",
        traits=frozenset({"filter"}),
    ),
    _unet(("rev",), "JAX flips the filter in the gradient of a convolution", backward=True),
    Rule(
        ("rev",),
        "decomposed",
        WHEEL,
        "reflection padding is written out in simpler operations",
        _DECOMP,
        "derived",
        constraint=Constraint(first_rank=4, without=frozenset({"filter"})),
    ),
    Rule(
        ("fft",),
        "unsupported",
        EVERYWHERE,
        "its values are complex, and no complex number is among the precisions that exist",
        f"{_LIMITS}; {_SDK}",
        "derived",
        "transform on the host before training, or multiply by sine and cosine matrices",
    ),
)

# Where no rule speaks, what may still help. A hint is advice, not knowledge.
_SUM_BY_INDEX = (
    "multiply by a one-hot or an adjacency matrix; graph networks left the Model Zoo with "
    "release 1.5"
)
_WAVES = (
    "of positions take it on the host and pass it in the batch; of what is learned write a series, "
    "or take tanh"
)
HINTS: dict[str, str] = {
    **dict.fromkeys(SCATTERS, _SUM_BY_INDEX),
    **dict.fromkeys(
        ("scatter-max", "scatter_max", "scatter-min", "scatter_min"),
        "mask a matrix of who belongs where with jnp.where, and take jnp.max over it",
    ),
    **dict.fromkeys(("scatter", "scatter-mul", "scatter_mul"), "choose with jnp.where and a mask"),
    **dict.fromkeys(("argmax", "argmin"), "compare with jnp.max: x == x.max() is a one-hot"),
    **dict.fromkeys(("reduce_or", "reduce_and"), "take jnp.max or -jnp.max(-x) of 0 and 1"),
    **dict.fromkeys(("cummax", "cummin", "cumprod", "cumlogsumexp"), "reduce a masked square"),
    "reduce_min": "write -jnp.max(-x)",
    "expm1": "write jnp.exp(x) - 1",
    "exp2": "write jnp.exp(0.6931472 * x)",
    "rev": "flip on the host, or multiply by a matrix that flips",
    "pure_callback": "compute it on the host, and pass the outcome in the batch",
    "io_callback": "take it out: the machine has no Python",
    "min": "write -jnp.maximum(-x, -y)",
    "abs": "write jnp.maximum(x, -x)",
    "sort": "sort the batch on the host; mask what the net computes",
    **dict.fromkeys(
        ("top_k", "approx_top_k"), "mask by a threshold; of the batch take the largest on the host"
    ),
    **dict.fromkeys(
        ("shard_map", "psum", "psum_invariant", "all_gather", "all_to_all", "ppermute"),
        "take it out: systems share a batch without being told",
    ),
    "cumsum": "multiply by a triangular matrix",
    "conv_general_dilated": (
        "write a 1-D convolution as a 2-D one of height 1, a 3-D one with its slices as channels; "
        "avoid dilation and groups"
    ),
    "dynamic_slice": "slice at fixed places, or multiply by a one-hot matrix",
    "dynamic_update_slice": "choose with jnp.where and a mask",
    "scan": "unroll it: a Python loop traces to a static graph",
    "reduce_window_sum": "use a convolution with stride in place of mean pooling",
    "pad": "let the convolution pad; elsewhere concatenate zeros",
    **dict.fromkeys(("sin", "cos"), _WAVES),
}
