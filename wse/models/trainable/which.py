"""Which model a params file names, by the reader that counts it for an estimate."""

# A net is any that an estimate knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from wse._document import short
from wse.models.doors import words
from wse.models.doors.families import family_of, read_family
from wse.models.doors.recipe import Stacked, answering, manner, refuse, refuse_unet
from wse.models.shapes.named import entries, entry
from wse.models.shapes.transformer import Transformer
from wse.models.shapes.workload import Workload

STACKS = ("transformer", "decoder", "parallel", "masked", "classes")
TRAINED = (*STACKS, "pair", "picture", "unet", "resnet50", "retinanet")


@dataclass(frozen=True, eq=False)
class Named:
    """A model by name.

    Attributes:
        name: what the file calls it.
        family: "transformer", "pair", "picture", "unet", "resnet50" or "retinanet".
        net: the shape that its layers were counted from, with how it is trained.
        workload: its layers.
    """

    name: str
    family: str
    net: Any
    workload: Workload

    @property
    def normed(self) -> bool:
        """Whether it has norms over the batch."""
        return self.family == "resnet50" or (self.family == "unet" and self.net.norm)

    @property
    def shape(self) -> Transformer | None:
        """The shape of a transformer, of a pair its encoder's; None of others."""
        found: Any = self.net[0] if isinstance(self.net, tuple) else self.net
        return found if isinstance(found, Transformer) else None


def which(model: Mapping[str, Any], entered: Mapping[str, Any]) -> Named | None:
    """The model that a `model` section names; None: a perceptron, or settings of one's own class.

    Args:
        model: the section: a name of `wse.workloads` with changes of its shape, or the words of the
            Model Zoo.
        entered: the input's section.

    Raises:
        ValueError: a name or word that is not known, a model that is counted and not trained, or a
            word that is computed in another way here.
    """
    if in_catalogue(model):
        found = by_name(model, entered)
        _check(found.name, found.family)
        _check_lengths(entered, found)
        return found
    kind = family_of(model, str(entered.get("data_processor", "")))
    if kind in ("", "fc_mnist"):
        return None
    name = str(model.get("name") or kind)
    _check(name, kind)
    kind, workload, net, *_ = read_family(model, entered, name)
    found = Named(name, "transformer" if kind in STACKS else kind, net, workload)
    _check_lengths(entered, found)
    return _with_manner(found, {**model, **_usual(model, kind, found.shape)}, kind)


def in_catalogue(model: Mapping[str, Any]) -> bool:
    """Whether a `model` section names a model of `wse.workloads`."""
    return str(model.get("name")).lower() in {name.lower() for name in entries()}


def by_name(model: Mapping[str, Any], entered: Mapping[str, Any]) -> Named:
    """A model of `wse.workloads` with changes of its shape, trained or not.

    Args:
        model: the section: the name, the changes, and words of training.
        entered: the input's section.

    Raises:
        ValueError: a word that is not known, or that is computed in another way here.
    """
    known = entry(str(model["name"]))
    own = Stacked.__dataclass_fields__ if known.family == "transformer" else ()
    passed = {key for key in model if words.is_among(key, words.MODEL) or key in (*own, "name")}
    changes = {key: value for key, value in model.items() if key not in passed}
    if known.family == "transformer":
        changes |= {k: v for k, v in entered.items() if k == "max_sequence_length"}
    made = known.build(**changes)
    family, net = made.origin or ("", None)
    shape = net if isinstance(net, Transformer) else None
    masked = shape is not None and (shape.head_transform or not shape.is_causal)
    return _with_manner(Named(known.name, family, net, made), model, "masked" if masked else family)


def _usual(model: Mapping[str, Any], kind: str, shape: Transformer | None) -> dict[str, Any]:
    """What the vendor's classes take of what a file does not say.

    Source: Cerebras/modelzoo, releases 2.0 to 2.4, the classes and their configurations.

    Raises:
        ValueError: an image with positions that are in two directions there.
    """
    if shape is None or kind == "pair":
        return {}
    positions = shape.position_embedding_type
    if kind == "picture" and positions not in ("learned", "none"):
        raise ValueError(
            f"model.position_embedding_type is {short(positions)}; images are trained here with "
            "learned positions alone, though others are estimated: write learned"
        )
    usual: dict[str, Any] = {}
    if kind in ("masked", "classes", "picture"):
        function = model.get("encoder_nonlinearity") or model.get("nonlinearity") or "gelu"
        usual |= dict.fromkeys(("pooler_nonlinearity", "mlm_nonlinearity"), function)
        esm = str(model.get("name")).startswith("esm2")
        usual["norm_first"] = esm or kind == "picture"
    if positions == "rotary":
        usual["rotary_dim"] = shape.hidden_size // shape.num_heads // 4
    return {key: value for key, value in usual.items() if model.get(key) is None}


def _with_manner(found: Named, model: Mapping[str, Any], kind: str) -> Named:
    shape = found.shape
    if shape is None:
        (refuse_unet if found.family == "unet" else partial(refuse, known=()))(model)
        return found
    if found.family == "pair":
        source, target, shared = found.net
        said = answering(model, shape)
        return replace(
            found, net=(replace(source, manner=said), replace(target, manner=said), shared)
        )
    causal = False if kind == "masked" else shape.causal
    shape = replace(shape, manner=manner(model, shape, kind), causal=causal)
    net: Any = (shape, *found.net[1:]) if isinstance(found.net, tuple) else shape
    return replace(found, net=net)


def _check(name: str, kind: str) -> None:
    if kind not in TRAINED:
        raise ValueError(
            f"model.name is {short(name)}, of the family {kind}, which is checked and estimated "
            f"and not trained here; trained are {', '.join(TRAINED)}: pass --validate_only or "
            "--compile_only, or --model with a module of yours"
        )


def _check_lengths(entered: Mapping[str, Any], found: Named) -> None:
    """Refuse lengths of a text and its answer that a model of one text would pass over."""
    pair = found.family == "pair"
    for key in entered:
        if key.startswith(("src_", "tgt_")) != pair and key.endswith("max_sequence_length"):
            known = "src_ and tgt_max_sequence_length" if pair else "max_sequence_length"
            raise ValueError(
                f"the input has {key}: {short(entered[key])}, and {found.name} takes {known}: "
                "rename it"
            )
