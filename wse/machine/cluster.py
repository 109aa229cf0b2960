"""Machines put to work: how many, and in which mode."""

# pyright: reportUnknownArgumentType=false

from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib import import_module
from inspect import signature
from typing import Any

from wse._numbers import check_kinds, is_whole, one_of, positive
from wse.machine import catalog
from wse.machine.installation import Store, Tree
from wse.machine.machine import Machine

EXECUTORS = {
    "streaming": ("wse.execute.streaming.executor", "Executor"),
    "pipelined": ("wse.execute.resident.executor", "PipelinedExecutor"),
}
MODES = tuple(EXECUTORS)
OWN = ("loss", "params", "batch", "optimizer", "cluster")  # what the cluster hands on itself


@dataclass(frozen=True)
class Cluster:
    """Systems of one kind and the mode in which they execute a model.

    Attributes:
        machine: the specification of one system.
        systems: how many work on one model.
        mode: "pipelined": the whole model stays on the wafer and samples flow through it;
            "streaming": weights come and go layer by layer. None: what each use does best, which
            is "streaming" of an executor.
        fabric: rows and columns of devices over which an executor lays the arrays of one system.
        host_budget_bytes: the most that an executor's weight store may hold in the host's memory.
        sparsity: which weights an executor trains; None: all.
        precision: the arithmetic that an executor emulates; None: that of the arrays.
        store: the weight store; None: the smallest of the wafer's that holds the model.
        tree: the links between store and systems; None: the wafer's.

    Raises:
        ValueError: a number of systems, rows, columns or bytes that is not a positive integer, or
            another mode.

    >>> import wse
    >>> wse.CS2(systems=4, mode="streaming")
    Cluster(4 x CS-2, mode='streaming')
    """

    machine: Machine
    systems: int = 1
    mode: str | None = None
    fabric: tuple[int, int] = (1, 1)
    host_budget_bytes: int | None = None
    sparsity: Any = None
    precision: Any = None
    store: Store | None = None
    tree: Tree | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "systems", positive("systems", self.systems))
        if self.sparsity is not None and getattr(self.sparsity, "rule", None) is None:
            raise ValueError(
                f"sparsity is {self.sparsity!r}; it must be a method: pass wse.sparsity.Static(0.9)"
            )
        if self.mode is not None:
            one_of("mode", self.mode, MODES)
        shape: Any = self.fabric
        if not (isinstance(shape, tuple) and len(shape) == 2 and all(map(is_whole, shape))):
            raise ValueError(
                f"fabric is {shape!r}; it must be two positive integers, rows and columns: "
                "pass fabric=(2, 2)"
            )
        if self.host_budget_bytes is not None:
            remedy = "pass host_budget_bytes=2**30, or None"
            positive("host_budget_bytes", self.host_budget_bytes, remedy)
        check_kinds(self)

    def __repr__(self) -> str:
        """One line: how many of which machine, and what differs from the defaults."""
        told = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in ("machine", "systems", "mode")
            and getattr(self, field.name) != field.default
        }
        mode = (f"mode={self.mode!r}",) if self.mode else ()
        words = (*mode, *(f"{name}={value!r}" for name, value in told.items()))
        return f"Cluster({', '.join((f'{self.systems} x {self.machine.name}', *words))})"

    def _repr_html_(self) -> str:
        """The machine's numbers under that line, for a notebook."""
        return self.machine.table(repr(self))

    def executor(
        self,
        loss: Callable[..., Any],
        params: Any,
        batch: Any,
        optimizer: Any = None,
        **options: Any,
    ) -> Any:
        """Run a training function with the machine's own execution, on the devices present.

        Args:
            loss: `loss(params, batch)`, any JAX function that returns a scalar.
            params: a tree of floating-point arrays.
            batch: a tree of arrays; `systems` divides its samples.
            optimizer: any optax optimizer; needed for training steps.
            **options: `has_aux`, `batch_size`, `keep_residuals`; streaming, `folder`; pipelined,
                `micro_batches`; as `wse.Executor` and `wse.PipelinedExecutor` know them.

        Returns:
            One of these, with `value_and_grad`, `init`, `train_step`.

        Raises:
            ValueError: what `wse.trace` refuses, or a batch that the systems do not divide.
            TypeError: an option that the mode does not know.
        """
        # By name: estimates, which know clusters too, compute without JAX.
        module, name = EXECUTORS[self.mode or "streaming"]
        made = getattr(import_module(module), name)
        known = [x for x in signature(made).parameters if x not in OWN]
        if wrong := [name for name in options if name not in known]:
            raise TypeError(
                f"{wrong[0]}={options[wrong[0]]!r} is no option of {name}; it must be one of "
                f"{', '.join(known)}: micro_batches needs mode='pipelined', what is the machine's, "
                "as precision, is said to wse.CS2"
            )
        return made(loss, params, batch, optimizer, cluster=self, **options)


def CS2(
    systems: int = 1,
    mode: str | None = None,
    *,
    fabric: tuple[int, int] = (1, 1),
    host_budget_bytes: int | None = None,
    sparsity: Any = None,
    precision: Any = None,
) -> Cluster:
    """CS-2 systems with the published numbers of `wse.catalog.CS2`.

    Args:
        systems: how many.
        mode: how they execute: "streaming" or "pipelined"; None: what each use can do.
        fabric: rows and columns of devices over which an executor lays the arrays of one system.
        host_budget_bytes: the most that an executor's weight store may hold in the host's memory.
        sparsity: which weights an executor trains; None: all.
        precision: the arithmetic that an executor emulates; None: that of the arrays.

    Raises:
        ValueError: what `Cluster` refuses.

    >>> CS2().machine.cores.value
    850000
    """
    return Cluster(
        catalog.CS2,
        systems,
        mode,
        fabric=fabric,
        host_budget_bytes=host_budget_bytes,
        sparsity=sparsity,
        precision=precision,
    )


def CS1(systems: int = 1, mode: str | None = None, **options: Any) -> Cluster:
    """CS-1 systems, as `CS2` makes them of `wse.catalog.CS2`.

    >>> CS1()
    Cluster(1 x CS-1)
    """
    return Cluster(catalog.CS1, systems, mode, **options)


def CS3(systems: int = 1, mode: str | None = None, **options: Any) -> Cluster:
    """CS-3 systems, as `CS2` makes them of `wse.catalog.CS2`.

    >>> CS3(systems=4)
    Cluster(4 x CS-3)
    """
    return Cluster(catalog.CS3, systems, mode, **options)


def CG1(systems: int = 64, mode: str | None = None, **options: Any) -> Cluster:
    """The CS-2 systems of Condor Galaxy 1 with its memory for parameters; fewer for a part of it.

    >>> CG1().systems * CG1().machine.cores.value
    54400000
    """
    return Cluster(catalog.CG1.machine, systems, mode, store=catalog.CG1_STORE, **options)
