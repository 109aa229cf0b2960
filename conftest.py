"""What tests, doctests and validation share: reference data, where results go, what runs first."""

import contextlib
import functools
import gc
import importlib
import os
import signal
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import hypothesis
import jaxtyping
import pytest
from beartype import BeartypeConf, beartype
from xdist.scheduler import LoadFileScheduling, LoadScopeScheduling

ROOT = Path(__file__).parent

# Studies that several tests and notebooks need are computed once, here, not in a user's results/.
os.environ.setdefault("SCIML_RESULTS", str(ROOT / ".cache" / "results-test"))
os.environ.setdefault("SCIML_SCALE", "fast")
# Generated wind, compiled programs and measured rates stay out of the user's own cache.
os.environ.setdefault("SCIML_CACHE", str(ROOT / ".cache" / "user"))
os.environ.setdefault("MPLBACKEND", "Agg")

# Most of the time of a first example is JAX's compiler, which a deadline would call unreliable.
hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")

gc.set_threshold(50_000, 20, 50)  # collect a tenth as often: see `pytest_collection_finish`
LOWERED = 50  # assumed: programs that share one context of MLIR, which keeps what they name
MAPPED = 6_000  # assumed: pieces of memory from which compiled programs are let go, 2 GB or less

# These share the runs of the studies, so one process takes them, in this order.
CHAIN = (
    "test_studies.py",
    "test_figure4.py",
    "validation/test_notebooks.py",
    "validation/browser/",
    "validation/test_docs.py",
)
# The chain is the longest piece of work that cannot be shared out; small pieces level out the end.
ORDER = (*CHAIN, "contract/", "test_types.py")


typed = beartype(conf=BeartypeConf(violation_type=jaxtyping.TypeCheckError))
shaped = jaxtyping.jaxtyped


def names_shapes(annotation: Any) -> bool:
    """Say whether an annotation holds one of jaxtyping's, or text, in which one may be."""
    if isinstance(annotation, str) or type(annotation).__module__.startswith("jaxtyping"):
        return True
    return any(map(names_shapes, get_args(annotation)))


def checked(function: Any = None, *, typechecker: Any = None) -> Any:
    """Check the types of a function as `jaxtyping.jaxtyped` does, where it names no shapes faster.

    To compare shapes, jaxtyping binds the arguments to their names at each call: of functions that
    name no shapes that took a seventh of the time of all tests.
    """
    if function is None:
        return functools.partial(checked, typechecker=typechecker)
    said = getattr(function, "__annotations__", {})
    if not isinstance(function, types.FunctionType):
        return shaped(function, typechecker=typechecker)
    if any(map(names_shapes, said.values())):
        return switched(function, functools.partial(shaped, typechecker=typechecker))
    return switched(function, typed) if said else function


def switched(function: Callable, check: Callable) -> Callable:
    """Return the checked function, or the bare one while checks are off.

    Checks are written at the first call: a process imports far more than its tests call.
    """
    strict = None

    @functools.wraps(function)
    def either(*args: Any, **kwargs: Any) -> Any:
        nonlocal strict
        if jaxtyping.config.jaxtyping_disable:
            return function(*args, **kwargs)
        if strict is None:
            with warnings.catch_warnings(action="ignore"):  # of annotations, not of what is tested
                strict = check(function)
        return strict(*args, **kwargs)

    return either


jaxtyping.jaxtyped = checked


def pytest_collect_file(file_path: Path) -> None:
    """Import the package of a module of ours first.

    Where the package imports the module, pytest would import it once more by itself, and the types
    of the two copies differ.
    """
    folder = file_path.parent
    if file_path.suffix == ".py" and {ROOT / "sciml", ROOT / "wse"} & {folder, *folder.parents}:
        importlib.import_module(".".join(folder.relative_to(ROOT).parts))


def place(nodeid: str) -> int:
    """Return the place of a test's file in `ORDER`, or the one behind all."""
    return next((i for i, name in enumerate(ORDER) if name in nodeid), len(ORDER))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the largest pieces of work first."""
    items.sort(key=lambda item: place(item.nodeid))


def pytest_collection_finish() -> None:
    """Leave what is imported by now, hundreds of thousands of objects, out of garbage collection.

    To walk through it again and again took a tenth of the time of tests that train.
    """
    share_contexts()
    gc.collect()
    gc.freeze()


def share_contexts() -> None:
    """Lower programs of JAX into contexts of MLIR that several share.

    JAX makes one for each program, in 6 ms: a twentieth of the time of all tests. Threads keep
    their own. Where a later JAX has it elsewhere, all is as users run it.
    """
    with contextlib.suppress(ImportError, AttributeError):
        mlir: Any = importlib.import_module("jax._src.interpreters.mlir")
        make, main = mlir.make_ir_context, threading.main_thread()
        shared: list[Any] = []

        def made() -> Any:
            if threading.current_thread() is not main:
                return make()
            if not shared:
                shared.extend([make()] * LOWERED)
            return shared.pop()

        mlir.make_ir_context = made


class Chained(LoadFileScheduling):
    """Hands out whole files, as `--dist loadfile` does, and the chain in one piece."""

    def _split_scope(self, nodeid: str) -> str:
        return "chain" if place(nodeid) < len(CHAIN) else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log) -> LoadScopeScheduling | None:
    """Schedule by file where that was asked for."""
    return Chained(config, log) if config.option.dist == "loadfile" else None


@pytest.fixture
def untyped() -> Iterator[None]:
    """Switch shape and type checks off, as users run: they meet the errors written for them."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def heeding() -> Iterator[None]:
    """Heed SIGINT, which a job in the background of a shell ignores."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def quick_compilation() -> Iterator[None]:
    """Compile without trying hard, as all of `make test` does."""
    import jax

    before = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
    # Programs compiled so would serve later tests too; and a process may map only 65,530 pieces of
    # memory, of which every program takes some.
    if not before or mapped() > MAPPED:
        jax.clear_caches()


@pytest.fixture
def thorough_compilation() -> Iterator[None]:
    """Compile as users do, where a program runs for longer than that takes."""
    import jax

    before = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def mapped() -> int:
    """Return how many pieces of memory this process maps; where nobody says, too many."""
    try:
        return Path("/proc/self/maps").read_bytes().count(b"\n")
    except OSError:
        return MAPPED + 1


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference data that SCIML_SHARED names."""
    folder = os.environ.get("SCIML_SHARED")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the reference data: set SCIML_SHARED to their folder")
    return Path(folder)
