"""What tests, doctests and validation share: reference data, where results go, what runs last."""

import os
from collections.abc import Iterator
from pathlib import Path

import jaxtyping
import pytest

ROOT = Path(__file__).parent

# Studies that several tests and notebooks need are computed once, here, not in a user's results/.
os.environ.setdefault("SCIML_RESULTS", str(ROOT / ".cache" / "results-test"))
os.environ.setdefault("SCIML_SCALE", "fast")
os.environ.setdefault("MPLBACKEND", "Agg")

# What is quick and says most comes first; each of these is slower than all before it.
LAST = ("validation/", "test_notebooks.py::test_runs", "test_docs.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slow kinds last, in the order of `LAST`."""
    items.sort(
        key=lambda item: max((i + 1 for i, k in enumerate(LAST) if k in item.nodeid), default=0)
    )


@pytest.fixture
def untyped() -> Iterator[None]:
    """Switch shape and type checks off, as users run: they meet the errors written for them."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="module")
def quick_compilation() -> Iterator[None]:
    """Compile without trying hard: for tests that compare executors, not speeds."""
    import jax

    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference data that SCIML_SHARED names."""
    folder = os.environ.get("SCIML_SHARED")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the reference data: set SCIML_SHARED to their folder")
    return Path(folder)
