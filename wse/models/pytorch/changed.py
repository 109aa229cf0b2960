"""Changes in place behind a gradient's back: PyTorch keeps the gradient of what was there."""

# torch is an extra, and what a graph holds has no static type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from collections.abc import Iterator
from typing import Any

from wse.models.pytorch.frames import line
from wse.models.pytorch.refused import Refused

REGION = "wrap_with_set_grad_enabled"


def refuse_changed(program: Any) -> None:
    """Refuse them in an exported program, before it is decomposed.

    Raises:
        Refused: in place, a change of what is detached, or under no_grad of what has a gradient.
    """
    trained = {name for name, x in program.named_parameters() if x.requires_grad}
    specs = program.graph_signature.input_specs
    moving = {spec.arg.name for spec in specs if spec.target in trained}
    entering = [(node, node.name in moving, False) for node in _placeholders(program.graph_module)]
    _refuse_in(program.graph_module, entering, True)


def _placeholders(module: Any) -> list[Any]:
    return [node for node in module.graph.nodes if node.op == "placeholder"]


def _refuse_in(module: Any, entering: list[tuple[Any, bool, bool]], enabled: bool) -> bool:
    """Look through a graph for changes in place.

    Args:
        module: holds the graph, and those of its regions.
        entering: its placeholders; whether a gradient passes each, and whether it is detached.
        enabled: whether gradients are taken.

    Returns:
        Whether a gradient passes anything here.
    """
    import torch

    moving = {node for node, moves, _ in entering if moves}
    held = {node for node, _, detached in entering if detached}
    lies: dict[Any, Any] = {}  # where the numbers of a view are
    for node in module.graph.nodes:
        if node.op != "call_function":
            continue
        if getattr(node.target, "__name__", "") == REGION:
            inner = getattr(module, node.args[1].target)
            given = [(x in moving, lies.get(x, x) in held) for x in node.args[2:]]
            pairs = zip(_placeholders(inner), given, strict=True)
            if _refuse_in(inner, [(x, *two) for x, two in pairs], node.args[0]):
                moving.add(node)
            continue
        for name, changed in _changed(node):
            root = lies.get(changed, changed)
            if root in held or (not enabled and root in moving):
                how = "what it detached" if root in held else "under no_grad what has a gradient"
                raise Refused(
                    f"operation {name} changes in place {how}{line(node)}; PyTorch then keeps the "
                    f"gradient of what was there: {_remedy(name)}"
                )
            moving.update({root} if enabled and moving.intersection(node.all_input_nodes) else ())
        if node.target is torch.ops.aten.detach.default:
            held.add(node)
        elif (base := _base(node)) is not None:
            lies[node] = lies.get(base, base)
        if node not in held and moving.intersection(node.all_input_nodes):
            moving.update({node} if enabled else ())
    return enabled and bool(moving)


def _remedy(name: str) -> str:
    return "set max_norm=None" if "renorm" in name else "change a copy, as .detach().clone()"


def _changed(node: Any) -> Iterator[tuple[str, Any]]:
    """What an operation writes to, and its name."""
    schema = getattr(node.target, "_schema", None)
    for i, argument in enumerate(schema.arguments if schema else ()):
        if argument.alias_info is not None and argument.alias_info.is_write:
            given = node.args[i] if i < len(node.args) else node.kwargs.get(argument.name)
            for one in given if isinstance(given, list | tuple) else [given]:
                yield str(node.target), one


def _base(node: Any) -> Any:
    """What the result of an operation is a view of, or nothing."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:  # of several views one is taken
        return node.args[0] if "getitem" in str(node.target) else None
    pairs = zip(schema.arguments, node.args, strict=False)
    bases = [x for argument, x in pairs if argument.alias_info is not None]
    if not bases or not any(x.alias_info is not None for x in schema.returns):
        return None
    kinds = [getattr(x.meta.get("val"), "dtype", None) for x in (node, bases[0])]
    return bases[0] if None in kinds or kinds[0] == kinds[1] else None
