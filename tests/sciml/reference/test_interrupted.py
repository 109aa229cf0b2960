"""Samplers that are stopped or killed go on where they were, to the same numbers."""

import functools
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from numpyro import distributions as dist

from sciml.ode import Gaussian, Static
from sciml.reference import Chains, Population, nuts, smc
from sciml.train import loop
from sciml.train.pace import Pace

pytestmark = pytest.mark.usefixtures("quick_compilation")
FEW = Population(particles=32, moves=5)
SHORT = Chains(chains=2, warmup=12, draws=10, starts=Population(particles=32, moves=3))
SETTINGS = {smc: FEW, nuts: SHORT}
SEEN = np.array([0.3, 1.2])


def bent(theta):
    """Return two features of two parameters."""
    return jnp.stack([theta[0], theta[1] + theta[0] ** 2])


def task(solution=bent, **changes) -> Static:
    """Return a small task with a bent posterior."""
    prior = {"first": dist.Normal(0.0, 1.0), "second": dist.Uniform(-2.0, 2.0)}
    made = Static("bent", prior, 2, Gaussian(sd=0.1), solution=solution)
    return replace(made, **changes)


def same(one: xr.Dataset, other: xr.Dataset) -> None:
    """Assert that two results are alike, but for the time that they were made."""
    xr.testing.assert_identical(one.drop_attrs(deep=False), other.drop_attrs(deep=False))
    for name in {*one.attrs} - {"created"}:
        assert one.attrs[name] == other.attrs[name], name


@pytest.fixture
def steadily(monkeypatch):
    """Have each turn be a call of its own, and each call be kept."""
    monkeypatch.setattr(loop, "CALL_S", 0.0)
    monkeypatch.setattr(loop, "CHECKPOINT_S", -1.0)


@pytest.mark.slow
@pytest.mark.usefixtures("steadily", "heeding")
@pytest.mark.parametrize(("sampler", "stops"), [(smc, (3, 9)), (nuts, (4, 20, 9))])
def test_what_was_stopped_goes_on_to_the_same_numbers(sampler, stops, tmp_path, monkeypatch):
    known = sampler(task(), SEEN, settings=SETTINGS[sampler])
    calls = 0
    count = Pace.__call__

    def stopped(self, *given):
        nonlocal calls
        calls += 1
        if calls == at:
            signal.raise_signal(signal.SIGINT)
        return count(self, *given)

    monkeypatch.setattr(Pace, "__call__", stopped)
    for at in stops:
        calls = 0
        with pytest.raises(KeyboardInterrupt):
            sampler(task(), SEEN, settings=SETTINGS[sampler], folder=tmp_path)
        assert calls == at  # what it was at is kept, and nothing begun after
    at = 0
    same(sampler(task(), SEEN, settings=SETTINGS[sampler], folder=tmp_path), known)
    calls = 0
    same(sampler(task(), SEEN, settings=SETTINGS[sampler], folder=str(tmp_path)), known)
    assert not calls


CHANGES = {
    "seed": ({}, {"seed": 1}),
    "observation": ({}, {"observation": SEEN + 1e-6}),
    "noise": ({}, {"noise": Gaussian(sd=0.2)}),
    "prior": ({"prior": {"first": dist.Normal(0.0, 2.0), "second": dist.Uniform(-2.0, 2.0)}}, {}),
    "settings": ({}, {"settings": replace(FEW, moves=6)}),
    "likelihood": ({"solution": lambda theta: jnp.stack([theta[0], theta[1] + theta[0] ** 3])}, {}),
    "system": ({"name": "other"}, {}),
}


def test_a_folder_of_another_run_is_refused(tmp_path):
    smc(task(), SEEN, settings=FEW, folder=tmp_path)
    for name, (changes, options) in CHANGES.items():
        given = {"observation": SEEN, "settings": FEW, **options}
        with pytest.raises(ValueError, match=rf"another run: .*{name} was .*folder=") as refused:
            smc(task(**changes), folder=tmp_path, **given)
        assert "\n" not in str(refused.value)


def test_the_same_numbers_in_another_precision_or_with_labels_go_on(tmp_path):
    """Of one float32 and of float64, bare and as a part of a data set."""
    numbers = np.float32([0.25, 1.25])
    known = smc(task(), numbers, settings=FEW, folder=tmp_path).posterior
    for given in (numbers.astype(float), xr.DataArray(numbers, dims="feature")):
        found = smc(task(), given, settings=FEW, folder=tmp_path).posterior
        np.testing.assert_array_equal(found, known)


def test_a_damaged_file_is_put_aside_and_a_file_is_no_folder(tmp_path, caplog):
    known = smc(task(), SEEN, settings=FEW, folder=tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:500])
    same(smc(task(), SEEN, settings=FEW, folder=tmp_path), known)
    assert "starting anew" in caplog.text
    with pytest.raises(NotADirectoryError, match="name a folder"):
        smc(task(), SEEN, settings=FEW, folder=file)


SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
import jax.numpy as jnp
from numpyro.distributions import Normal
from sciml.ode import Gaussian, Static
from sciml.reference import Chains, Population, nuts, smc
from sciml.train import loop
loop.CALL_S, loop.CHECKPOINT_S = 0.0, -1.0
if __name__ == "__main__":
    problem = Static(
        "bent", {"a": Normal(0.0, 1.0), "b": Normal(0.0, 2.0)}, 2, Gaussian(sd=0.1),
        solution=lambda p: jnp.stack([p[0], p[1] + p[0] ** 2]),
    )
    seen = jnp.array([0.3, 1.2])
    few = Population(particles=100, moves=5)
    folder = sys.argv[2] if len(sys.argv) > 2 else None
    sampler, settings = {
        "smc": (smc, few),
        "nuts": (nuts, Chains(chains=2, warmup=20, draws=20, starts=few)),
    }[sys.argv[1]]
    found = sampler(problem, seen, settings=settings, folder=folder)
    sys.stdout.buffer.write(found.posterior.values.tobytes())
"""


@functools.cache
def whole(sampler: str) -> bytes:
    """Return what the script writes where nobody stops it."""
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), sampler]
    return subprocess.run(command, check=True, capture_output=True).stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(
    ("sampler", "number"),
    [
        ("smc", signal.SIGKILL),
        ("smc", signal.SIGINT),
        ("nuts", signal.SIGKILL),
        ("nuts", signal.SIGTERM),
    ],
)
def test_a_killed_process_goes_on(sampler, number, tmp_path):
    script, folder = tmp_path / "run.py", tmp_path / "kept"
    script.write_text(textwrap.dedent(SCRIPT))
    command = [sys.executable, str(script), sampler]
    last = {"smc": "population", "nuts": "chains"}[sampler]
    run = subprocess.Popen([*command, folder], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    file = folder / f"{last}.checkpoint"
    while run.poll() is None and not file.exists():
        time.sleep(0.002)  # and no processor is kept busy
    run.send_signal(number)
    said = run.communicate()[1].decode()
    assert (
        run.returncode
        in {
            signal.SIGKILL: [-signal.SIGKILL],
            signal.SIGTERM: [143],
            signal.SIGINT: [1, 130, -signal.SIGINT],
        }[number]
    ), said
    before = file.read_bytes()
    resumed = subprocess.run([*command, folder], check=True, capture_output=True).stdout
    assert resumed == whole(sampler)
    assert file.read_bytes() != before  # it was not at its end
    assert {path.suffix for path in folder.iterdir() if not path.name.startswith(".")} == {
        ".checkpoint"
    }
