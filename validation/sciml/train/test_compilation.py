"""Compiled programs are kept between processes; one cut short is compiled again only once."""

import os
import subprocess
import sys
from pathlib import Path

SET = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")
PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
import sciml
from sciml.train import Recipe
from sciml.train.loop import train

found = []
jax.monitoring.register_event_listener(lambda name, **_: found.append(name))
x = sciml.simulate(sciml.ode.fitzhugh_nagumo(), 8).observation.values[:, ::100] + 0.0
kept = found.count("/jax/compilation_cache/cache_hits")

def loss(w, batch, key):
    return ((batch["x"] @ w - batch["y"]) ** 2).mean()

start = jnp.zeros(x.shape[1])
done = train(loss, start, {"x": x, "y": x.sum(1)}, epochs=2, recipe=Recipe(batch=4))
print(kept, np.asarray(done.params).tobytes().hex())
"""


def trained(cache: Path) -> tuple[bool, str]:
    """Whether a solver was compiled before, and weights, by a process that warnings end."""
    own = {k: v for k, v in os.environ.items() if k not in SET}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env={**own, "SCIML_CACHE": str(cache)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    kept, weights = done.stdout.split()
    return int(kept) > 0, weights


def test_solvers_and_trainings_are_kept_and_an_entry_that_was_cut_short_is_replaced(tmp_path: Path):
    kept, weights = trained(tmp_path)
    assert not kept
    entries = sorted((tmp_path / "sciml" / "xla").glob("*/*-cache"))
    whole = [entry.read_bytes() for entry in entries]
    assert whole
    assert trained(tmp_path) == (True, weights)
    for entry, content in zip(entries, whole, strict=True):
        entry.write_bytes(half(content))
    assert trained(tmp_path)[1] == weights
    # The order of a distribution's numbers differs between processes, and with it some programs.
    left = [x for x, content in zip(entries, whole, strict=True) if half(content) == read(x)]
    assert not left


def test_a_folder_that_cannot_be_written_is_left_alone(tmp_path: Path):
    """As the home of many a container; JAX warned of it, and warnings end these processes."""
    (tmp_path / "file").touch()
    assert trained(tmp_path / "file")[1]


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def read(entry: Path) -> bytes | None:
    return entry.read_bytes() if entry.exists() else None
