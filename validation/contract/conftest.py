"""The table of models, what plain JAX gives on each, and which of them take minutes."""

from functools import cache, cached_property
from pathlib import Path
from runpy import run_path
from typing import Any

import jax
import pytest

TABLE = run_path(str(Path(__file__).with_name("models.py")))
SMALL: tuple[str, ...] = tuple(TABLE["MODELS"])
LARGE: tuple[str, ...] = tuple(TABLE["LARGE"])
# What is costly to compile is left to `make contract` where another model shows the same.
QUICK = {
    "case": SMALL,
    "kept_case": tuple(x for x in SMALL if x not in ("unet 3-D", "ResNet-18", "scanned")),
    "piped_case": ("dense", "unet", "nnx_scanned"),
    "rounding_case": ("published dense, 32 units", "unet"),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on every model; of those that are not quick, only if the contract is asked for."""
    for fixture in set(QUICK).intersection(metafunc.fixturenames):
        late = [name for name in (*SMALL, *LARGE) if name not in QUICK[fixture]]
        marked = [pytest.param(name, marks=pytest.mark.contract) for name in late]
        metafunc.parametrize(fixture, [*QUICK[fixture], *marked], indirect=True)


@pytest.fixture(autouse=True, scope="module")
def always_quick(quick_compilation):
    """What is compared here does not depend on how hard XLA tries."""


class Made:
    """A model by its name, with what plain JAX gives on it, computed when it is asked for."""

    def __init__(self, name: str) -> None:
        case = {**TABLE["MODELS"], **TABLE["LARGE"]}[name]()
        self.loss, self.params, self.batch = case.loss, case.params, case.batch
        self.has_aux: bool = case.has_aux
        self.program = jax.jit(jax.value_and_grad(case.loss, has_aux=case.has_aux))

    @cached_property
    def plain(self) -> tuple[Any, Any]:
        """Loss and gradients in float64."""
        return self.program(self.params, self.batch)


made = cache(Made)


@pytest.fixture
def case(request: pytest.FixtureRequest) -> Any:
    """A model, in float64."""
    with jax.enable_x64(True):
        yield made(request.param)


kept_case = piped_case = rounding_case = case
