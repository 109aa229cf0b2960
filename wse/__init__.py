"""A wafer-scale machine: training as it executes it, and what that would take on the real one.

>>> import wse
>>> round(wse.estimate(wse.workload.dense(width=512), machine=wse.CS2()).total_s, 1)
191.5
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wse import job, layout, mesh, precision, sparsity, support, workload, workloads, zoo
    from wse.checks import check
    from wse.choose import compare
    from wse.choose.page import port
    from wse.computer import local
    from wse.execute.memoryx.store import MemoryX
    from wse.execute.pmap import pmap
    from wse.execute.resident.executor import PipelinedExecutor
    from wse.execute.streaming.executor import Executor
    from wse.execute.timeline import Run
    from wse.graph import chakra
    from wse.graph.layers import Graph, Layer, Work
    from wse.graph.trace import trace
    from wse.machine import catalog, collective, constants, processors, published, specification
    from wse.machine.cluster import CG1, CS1, CS2, CS3, Cluster
    from wse.machine.machine import Machine, Sourced
    from wse.models import from_graph as traced
    from wse.models import to_layout as kernels
    from wse.models.doors.read import read_model
    from wse.models.pytorch.module import from_torch
    from wse.predict import calibrate, packing
    from wse.predict.estimate import Estimate, estimate
    from wse.predict.inference import inference
    from wse.predict.sweep import sweep
    from wse.show import charts
    from wse.show.explorer import explore

# What of wse each module defines; then the modules that are public by their own name or another.
_DEFINED = {
    "checks": ("check",),
    "choose": ("compare",),
    "choose.page": ("port",),
    "computer": ("local",),
    "execute.memoryx.store": ("MemoryX",),
    "execute.pmap": ("pmap",),
    "execute.resident.executor": ("PipelinedExecutor",),
    "execute.streaming.executor": ("Executor",),
    "execute.timeline": ("Run",),
    "graph.layers": ("Graph", "Layer", "Work"),
    "graph.trace": ("trace",),
    "machine.cluster": ("CG1", "CS1", "CS2", "CS3", "Cluster"),
    "machine.machine": ("Machine", "Sourced"),
    "models.doors.read": ("read_model",),
    "models.pytorch.module": ("from_torch",),
    "predict.estimate": ("Estimate", "estimate"),
    "predict.inference": ("inference",),
    "predict.sweep": ("sweep",),
    "show.explorer": ("explore",),
}
_MODULES = """
graph.chakra job layout machine.catalog machine.collective machine.constants machine.processors
machine.published machine.specification mesh precision predict.calibrate predict.packing show.charts
sparsity support workload workloads zoo
"""
_PLACES = {
    **{name: place for place, names in _DEFINED.items() for name in names},
    **{place.rpartition(".")[2]: place for place in _MODULES.split()},
    **{"kernels": "models.to_layout", "traced": "models.from_graph"},
}

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
    "chakra",
    "charts",
    "check",
    "collective",
    "compare",
    "constants",
    "estimate",
    "explore",
    "from_torch",
    "inference",
    "job",
    "kernels",
    "layout",
    "local",
    "mesh",
    "packing",
    "pmap",
    "port",
    "precision",
    "processors",
    "published",
    "read_model",
    "sparsity",
    "specification",
    "support",
    "sweep",
    "trace",
    "traced",
    "workload",
    "workloads",
    "zoo",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in _PLACES:
        raise AttributeError(f"wse has no {name!r}; it has {', '.join(__all__)}")
    module = import_module(f"wse.{_PLACES[name]}")
    return getattr(module, name) if name in _DEFINED.get(_PLACES[name], ()) else module


def __dir__() -> list[str]:
    """Every public name, loaded or not."""
    return sorted(__all__)
