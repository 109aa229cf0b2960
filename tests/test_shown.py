"""What a notebook shows of an object: one line, and a table of escaped text."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import sciml
import wse
from sciml import diagnose, wind

PARAMS = {"a": np.ones((6, 8), "f4")}
BATCH = np.ones((12, 6), "f4")


def loss(params: Any, batch: Any) -> Any:
    return jnp.mean(jnp.tanh(batch @ params["a"]) ** 2)


def _executor() -> Any:
    executor = wse.CS2().executor(loss, PARAMS, BATCH, optax.sgd(1e-3))
    executor.value_and_grad(PARAMS, BATCH)
    return executor


def _streamed() -> wse.Estimate:
    return wse.estimate(wse.workload.dense(width=8), machine=wse.CS2(mode="streaming"))


MADE: dict[str, tuple[Callable[[], Any], str]] = {
    "cluster": (lambda: wse.CS2(systems=4, mode="streaming"), "4 x CS-2, mode='streaming'"),
    "machine": (lambda: wse.CS2().machine, "850,000 cores, 40 GB"),
    "workload": (lambda: wse.workload.dense(width=32), "9 layers"),
    "deep workload": (lambda: wse.workload.dense(width=8, depth=300), "301 layers"),
    "estimate": (
        lambda: wse.estimate(wse.workload.dense(width=32), machine=wse.CS2(), samples=1000),
        "on 1 x CS-2",
    ),
    "streamed": (_streamed, "on 1 x CS-2 (streaming"),
    "report": (lambda: wse.check(loss, PARAMS, BATCH), "CS-2"),
    "graph": (lambda: wse.trace(loss, PARAMS, BATCH), "1 layers"),
    "executor": (_executor, "1 layers on Cluster(1 x CS-2); trains"),
    "run": (lambda: _executor().run, "events on 1 systems"),
    "system": (sciml.ode.lotka_volterra, "alpha, beta, gamma, delta"),
    "static": (sciml.ode.slcp, "8 features"),
}
PLAIN: dict[str, tuple[Callable[[], Any], str]] = {  # one line says it all
    "alarm": (lambda: diagnose.alarm(np.eye(300, 4)), "100 simulations"),
    "patches": (lambda: wind.scattered(60, 16, 16, size=8, count=4, seed=0), "of 8 x 8 points"),
    "step": (lambda: _streamed().step, "micro_batches=1"),
}


@pytest.mark.parametrize("name", MADE)
def test_an_object_is_one_line_and_its_table_is_small(name: str) -> None:
    make, said = MADE[name]
    found = make()
    assert said in repr(found)
    assert "\n" not in repr(found)
    assert len(repr(found)) < 300
    if name != "executor":
        assert 100 < len(found._repr_html_()) < 9000


@pytest.mark.parametrize("name", PLAIN)
def test_what_has_no_table_is_one_line(name: str) -> None:
    make, said = PLAIN[name]
    found = repr(make())
    assert said in found
    assert "\n" not in found
    assert len(found) < 500


def test_names_of_a_user_are_escaped_in_tables() -> None:
    name = "<script>alert(1)</script>"
    work = dataclasses.replace(wse.workload.dense(width=8), name=name)
    machine = dataclasses.replace(wse.catalog.CS2, name=name)
    for found in (work, machine, wse.Cluster(machine)):
        assert "<script>" not in found._repr_html_()


def test_a_cluster_says_what_differs_from_its_defaults() -> None:
    assert repr(wse.CS2()) == "Cluster(1 x CS-2)"
    assert repr(wse.CS2(fabric=(2, 2))) == "Cluster(1 x CS-2, fabric=(2, 2))"
