"""A wafer-scale machine: training as it executes it, and what that would take on the real one.

>>> import wse
>>> round(wse.estimate(wse.workload.dense(width=512), machine=wse.CS2()).total_s, 1)
191.5
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wse import layout, mesh, precision, sparsity, support, workload, workloads, zoo
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

# Where each public name is defined: a class, a function, or (with a colon at the end) a module.
_PLACES = {
    "CG1": "machine.cluster",
    "CS1": "machine.cluster",
    "CS2": "machine.cluster",
    "CS3": "machine.cluster",
    "Cluster": "machine.cluster",
    "Estimate": "predict.estimate",
    "Executor": "execute.streaming.executor",
    "Graph": "graph.layers",
    "Layer": "graph.layers",
    "Machine": "machine.machine",
    "MemoryX": "execute.memoryx.store",
    "PipelinedExecutor": "execute.resident.executor",
    "Run": "execute.timeline",
    "Sourced": "machine.machine",
    "Work": "graph.layers",
    "calibrate": "predict.calibrate:",
    "catalog": "machine.catalog:",
    "chakra": "graph.chakra:",
    "charts": "show.charts:",
    "check": "checks",
    "collective": "machine.collective:",
    "compare": "choose",
    "constants": "machine.constants:",
    "estimate": "predict.estimate",
    "explore": "show.explorer",
    "from_torch": "models.pytorch.module",
    "inference": "predict.inference",
    "kernels": "models.to_layout:",
    "layout": "layout:",
    "local": "computer",
    "mesh": "mesh:",
    "packing": "predict.packing:",
    "pmap": "execute.pmap",
    "precision": "precision:",
    "port": "choose.page",
    "processors": "machine.processors:",
    "published": "machine.published:",
    "read_model": "models.doors.read",
    "sparsity": "sparsity:",
    "specification": "machine.specification:",
    "support": "support:",
    "sweep": "predict.sweep",
    "trace": "graph.trace",
    "traced": "models.from_graph:",
    "workload": "workload:",
    "workloads": "workloads:",
    "zoo": "zoo:",
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
    place, is_module, _ = _PLACES[name].partition(":")
    module = import_module(f"wse.{place}")
    return module if is_module else getattr(module, name)


def __dir__() -> list[str]:
    """Every public name, loaded or not."""
    return sorted(__all__)
