"""How fast a cluster's links, store and inputs are: plain numbers for the equations."""

from dataclasses import dataclass, replace

from wse.machine import catalog
from wse.machine.cluster import Cluster
from wse.machine.constants import STREAMING, Streaming, at_end
from wse.machine.installation import Store, Tree
from wse.models.shapes.workload import Workload


@dataclass(frozen=True)
class Rates:
    """Plain numbers, in SI units, that the equations need besides the layers."""

    link_bytes_per_s: float
    level_s: float
    update_per_s: float
    input_s_per_sample: float
    sram_bytes: float
    constants: Streaming


def surroundings(workload: Workload, cluster: Cluster) -> tuple[Store, Tree]:
    """The weight store and the tree of a cluster; the smallest store of the wafer's that holds all.

    Raises:
        ValueError: a wafer without weight streaming, or a model that no store holds.
    """
    wafer = cluster.machine.wafer
    stores = (cluster.store,) if cluster.store else catalog.STORES.get(wafer, ())
    tree = cluster.tree or catalog.TREES.get(wafer)
    if not stores or tree is None:
        raise ValueError(
            f"machine is {cluster.machine.name} with {wafer}; weights are streamed to WSE-2 and "
            "WSE-3 only: pass machine=wse.CS2(), or a store and a tree of your own"
        )
    for store in stores:
        if workload.parameters <= store.most_parameters:
            return store, tree
    largest = stores[-1]
    need_bytes = workload.parameters * largest.bytes_per_parameter.value
    raise ValueError(
        f"{workload.name} has {workload.parameters:.3g} parameters, with their optimizer's state "
        f"{need_bytes / 1e12:.3g} TB; {largest.name} holds {largest.capacity_bytes.value / 1e12:g} "
        "TB: make the model smaller, or give the cluster a larger store"
    )


def rates(
    workload: Workload,
    cluster: Cluster,
    constants: Streaming = STREAMING,
    fast: bool | None = None,
) -> Rates:
    """The numbers of a machine, its store and its tree, for one workload's samples.

    They stand at the fast or the slow end of their intervals, or as they are. What fits, on the
    wafer and in the store, is asked of them as they are: only seconds vary.
    """
    store, tree = surroundings(workload, cluster)
    if fast is not None:
        store, tree = at_end(store, fast), at_end(tree, fast)
        constants = replace(at_end(constants, fast), usable_sram=constants.usable_sram)
    system_bytes_per_s = cluster.machine.host_bits_per_s.value / 8
    enter_bytes_per_s = min(constants.input_bytes_per_s.value, system_bytes_per_s)
    return Rates(
        link_bytes_per_s=min(store.bytes_per_s.value, system_bytes_per_s),
        level_s=tree.level_latency_s.value,
        update_per_s=store.optimizer_params_per_s.value,
        input_s_per_sample=workload.inputs * constants.input_value_bytes.value / enter_bytes_per_s,
        sram_bytes=cluster.machine.sram_bytes.value * constants.usable_sram.value,
        constants=constants,
    )
