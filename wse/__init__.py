"""A wafer-scale machine: training as it executes it, and what that would take on the real one.

>>> import wse
>>> round(wse.estimate(wse.workload.dense(width=512), machine=wse.CS2()).total_s, 1)
191.5
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# The function shares its module's name. Bound first, it stays: importing the module later, which
# would put the module in its place, then finds the module loaded and binds nothing.
from wse.estimate import Estimate, estimate

if TYPE_CHECKING:
    from wse import (
        calibrate,
        catalog,
        charts,
        collective,
        constants,
        layout,
        mesh,
        precision,
        published,
        sparsity,
        specification,
        workload,
        workloads,
        zoo,
    )
    from wse.cluster import CG1, CS1, CS2, CS3, Cluster
    from wse.computer import local
    from wse.executor import Executor
    from wse.explorer import explore
    from wse.forward import inference
    from wse.graph import Graph, Layer, Work
    from wse.machine import Machine, Sourced
    from wse.memoryx import MemoryX
    from wse.pipelined_executor import PipelinedExecutor
    from wse.replication import pmap
    from wse.support import check
    from wse.sweeps import sweep
    from wse.timeline import Run
    from wse.tracing import trace

__all__ = [
    "CG1",
    "CS1",
    "CS2",
    "CS3",
    "Cluster",
    "Estimate",
    "Executor",
    "Graph",
    "Layer",
    "Machine",
    "MemoryX",
    "PipelinedExecutor",
    "Run",
    "Sourced",
    "Work",
    "calibrate",
    "catalog",
    "charts",
    "check",
    "collective",
    "constants",
    "estimate",
    "explore",
    "inference",
    "layout",
    "mesh",
    "local",
    "pmap",
    "precision",
    "published",
    "sparsity",
    "specification",
    "sweep",
    "trace",
    "workload",
    "workloads",
    "zoo",
]

_MODULES = {
    "CG1": "wse.cluster",
    "CS1": "wse.cluster",
    "CS2": "wse.cluster",
    "CS3": "wse.cluster",
    "Cluster": "wse.cluster",
    "Executor": "wse.executor",
    "Graph": "wse.graph",
    "Layer": "wse.graph",
    "Machine": "wse.machine",
    "MemoryX": "wse.memoryx",
    "PipelinedExecutor": "wse.pipelined_executor",
    "Run": "wse.timeline",
    "Sourced": "wse.machine",
    "Work": "wse.graph",
    "check": "wse.support",
    "explore": "wse.explorer",
    "inference": "wse.forward",
    "local": "wse.computer",
    "pmap": "wse.replication",
    "sweep": "wse.sweeps",
    "trace": "wse.tracing",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"wse has no {name!r}; it has {', '.join(__all__)}")
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    return import_module(f"wse.{name}")


def __dir__() -> list[str]:
    """Every public name, loaded or not."""
    return sorted(__all__)
