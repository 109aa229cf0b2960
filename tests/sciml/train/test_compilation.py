"""Compiled programs are kept between processes; one cut short is compiled again only once."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
from sciml.train import Recipe
from sciml.train.loop import train

def loss(w, batch, key):
    return ((batch["x"] @ w - batch["y"]) ** 2).mean()

x = np.arange(24, dtype="f4").reshape(8, 3) / 24
done = train(loss, jnp.zeros(3), {"x": x, "y": x.sum(1)}, epochs=2, recipe=Recipe(batch=4))
print(np.asarray(done.params).tobytes().hex())
"""


def trained(cache: Path) -> str:
    """The weights of a training by a process of its own; warnings end it."""
    own = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env={**own, "SCIML_CACHE": str(cache)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_entry_that_was_cut_short_is_replaced(tmp_path: Path):
    weights = trained(tmp_path)
    entries = sorted((tmp_path / "sciml" / "xla").glob("*-cache"))
    whole = [entry.read_bytes() for entry in entries]
    assert whole
    for entry, content in zip(entries, whole, strict=True):
        entry.write_bytes(content[: len(content) // 2])
    assert trained(tmp_path) == weights
    assert all(
        len(entry.read_bytes()) > len(content) // 2
        for entry, content in zip(entries, whole, strict=True)
    )
