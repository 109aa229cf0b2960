"""Machines put to work: how many, and in which mode."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from wse import catalog
from wse.machine import Machine

MODES = ("streaming", "pipelined")


@dataclass(frozen=True)
class Cluster:
    """Systems of one kind and the mode in which they execute a model.

    Attributes:
        machine: the specification of one system.
        systems: how many work on one model.
        mode: "pipelined": the whole model stays on the wafer and samples flow through it;
            "streaming": weights come and go layer by layer. None: what each use can do, which is
            "pipelined" of an estimate and "streaming" of an executor.

    Raises:
        ValueError: a number of systems that is not positive, or another mode.
    """

    machine: Machine
    systems: int = 1
    mode: str | None = None

    def __post_init__(self) -> None:
        if self.systems < 1:
            raise ValueError(
                f"systems is {self.systems}; it must be a positive integer: pass systems=1"
            )
        if self.mode is not None and self.mode not in MODES:
            raise ValueError(
                f"mode is {self.mode!r}; it must be one of {', '.join(map(repr, MODES))}: pass that"
            )

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
            **options: `has_aux`, `keep_residuals`, `folder`, as `wse.executor.Executor` knows them.

        Returns:
            A `wse.Executor`, with `value_and_grad`, `init`, `train_step`.

        Raises:
            ValueError: mode is "pipelined", or what `wse.trace` refuses.
        """
        if self.mode == "pipelined":
            raise ValueError(
                "mode is 'pipelined'; only weight streaming executes so far: pass mode='streaming'"
            )
        # By name: estimates, which know clusters too, compute without JAX.
        made = import_module("wse.executor").Executor
        return made(loss, params, batch, optimizer, systems=self.systems, **options)


def CS2(systems: int = 1, mode: str | None = None) -> Cluster:
    """CS-2 systems with the published numbers of `wse.catalog.CS2`.

    Args:
        systems: how many; an estimate knows only 1 so far.
        mode: how they execute: "streaming" or "pipelined"; None: what each use can do.

    Returns:
        The cluster, frozen.

    Raises:
        ValueError: a number of systems that is not positive, or another mode.

    >>> CS2().machine.cores.value
    850000
    """
    return Cluster(catalog.CS2, systems, mode)
