"""What PyTorch does not differentiate: what is detached, made under `no_grad`, or frozen.

A decomposed graph has lost it, so an operation of our own marks it before.
"""

# torch is an extra, and what a graph holds has no static type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

from functools import cache
from typing import Any

from wse.models.pytorch.changed import REGION, refuse_changed

NAME = "wse::detached"


@cache
def _mark() -> Any:
    """The operation that gives what it is given; it is executed on constants alone."""
    from torch import library, ops

    library.define(NAME, "(Tensor x) -> Tensor")
    library.impl(NAME, "CompositeExplicitAutograd", lambda x: x.clone())
    return ops.wse.detached.default


def mark_detached(program: Any) -> None:
    """Mark in an exported program, in place, what no gradient passes.

    Args:
        program: of `torch.export.export`, before it is decomposed.

    Raises:
        Refused: in place, a change of what is detached, or under no_grad of what has a gradient.
    """
    import torch

    refuse_changed(program)
    mark = _mark()
    graphs = [x for x in program.graph_module.modules() if isinstance(x, torch.fx.GraphModule)]
    for module in graphs:
        for node in module.graph.nodes:
            if node.target is torch.ops.aten.detach.default:
                node.target = mark
            elif getattr(node.target, "__name__", "") == REGION:
                enabled, inner = node.args[:2]
                if not enabled:
                    _mark_outputs(getattr(module, inner.target), mark)
    for module in graphs:
        module.recompile()


def _mark_outputs(module: Any, mark: Any) -> None:
    (last,) = [node for node in module.graph.nodes if node.op == "output"]
    with module.graph.inserting_before(last):
        (outputs,) = last.args
        last.args = (tuple(module.graph.call_function(mark, (x,)) for x in outputs),)
