"""The table of the page on nets for wind states their sizes."""

import re
from pathlib import Path
from typing import Any

import jax
import pytest
from flax import nnx

from sciml.models import REFINEMENTS

PAGE = (Path(__file__).parents[3] / "docs" / "wind-models.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in REFINEMENTS if name != "LocallyScaled"])
def test_weights_and_reach_are_those_of_the_table(name):
    kind: Any = REFINEMENTS[name]
    config = kind(factor=4)
    net = nnx.eval_shape(lambda: config.build(nnx.Rngs(0)))
    weights = sum(leaf.size for leaf in jax.tree.leaves(nnx.state(net, nnx.Param)))
    row = re.findall(rf"^\| `{name}` .*$", PAGE, re.MULTILINE)[0]  # of the first table
    _, _, _, stated, reach, _, _ = row.split("|")
    assert int(stated.replace(",", "")) == weights
    assert re.search(rf"\b{config.reach}\b", reach)
