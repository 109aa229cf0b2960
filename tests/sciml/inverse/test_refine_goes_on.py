"""A refinement that is stopped or killed goes on, to the same numbers."""

import json
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest
import xarray as xr
from numpyro.distributions import Normal, Uniform

import sciml
from sciml.inverse.refinement.memory import packed, unpacked
from sciml.models import Gaussian
from sciml.ode import Gaussian as Error
from sciml.ode import Static
from sciml.reference import sharpness
from sciml.train import Recipe, loop

pytestmark = pytest.mark.usefixtures("quick_compilation")
OPTIONS = {"rounds": 2, "simulations": 150, "epochs": 3}


def line(sd: float = 0.1, **prior) -> Static:
    """Return a mean that is seen three times."""
    prior = {"mean": Normal(0.0, 1.0), "other": Uniform(-1.0, 1.0)} | prior
    return Static("line", prior, 2, Error(sd=sd))


@pytest.fixture(scope="module")
def fit():
    problem = line()
    data = sciml.simulate(problem, 200, noise=problem.noise)
    recipe = Recipe(batch=50)
    return sciml.fit(Gaussian(width=8, depth=1), data, epochs=2, recipe=recipe)


@pytest.fixture(scope="module")
def seen():
    return sciml.simulate(line(), 1, seed=1, noise=Error(sd=0.1))


@pytest.fixture(scope="module")
def known(fit, seen):
    return sciml.refine(fit, line(), seen, **OPTIONS)


def same(one: sciml.Fit, other: sciml.Fit) -> None:
    """Assert that two fits are alike, and what is said of their rounds."""
    jax.tree.map(np.testing.assert_array_equal, one.params, other.params)
    rounds = (json.loads(fit.attrs["refinement"])["rounds"] for fit in (one, other))
    assert next(rounds) == next(rounds)


@pytest.mark.slow
@pytest.mark.usefixtures("heeding")
def test_what_was_stopped_goes_on_to_the_same_numbers(fit, seen, known, tmp_path, monkeypatch):
    """It is stopped as it simulates, trains, and judges, in both rounds."""
    monkeypatch.setattr(loop, "CALL_S", 0.0)
    assert len(json.loads(known.attrs["refinement"])["rounds"]) == 3
    simulated, advance, calls = sharpness.simulated, loop.advance, []

    def told(what, function):
        def call(*given):
            calls.append(what)
            if len(calls) == 3:
                signal.raise_signal(signal.SIGINT)
            return function(*given)

        return call

    monkeypatch.setattr(sharpness, "simulated", told("simulations", simulated))
    monkeypatch.setattr(loop, "advance", told("epochs", advance))
    every = []
    for _ in range(9):
        calls.clear()
        try:
            found = sciml.refine(fit, line(), seen, **OPTIONS, folder=tmp_path)
        except KeyboardInterrupt:
            every += calls
            continue
        every += calls
        break
    # Of what was stopped at the third call nothing is done again but simulations, if it was these.
    assert 8 <= len(every) <= 9
    assert every.count("epochs") == 6
    same(found, known)
    calls.clear()
    same(sciml.refine(fit, line(), seen, **OPTIONS, folder=tmp_path), known)
    assert not calls
    found.save(tmp_path / "net.fit")
    same(sciml.refine(fit, line(), seen, **OPTIONS, folder=tmp_path), known)
    assert not calls


def test_a_folder_of_another_run_is_refused(fit, seen, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sharpness, "simulated", stop)
    with pytest.raises(KeyboardInterrupt):  # once the first fit is judged
        sciml.refine(fit, line(), seen, **OPTIONS, folder=tmp_path)
    for name, value in {"seed": 1, "epochs": 4, "likelihood": False}.items():
        options = OPTIONS | {name: value}
        with pytest.raises(ValueError, match=rf"another run: .*{name} was .*folder=") as refused:
            sciml.refine(fit, line(), seen, **options, folder=tmp_path)
        assert "\n" not in str(refused.value)
    other = seen.assign(observation=seen.observation + 1e-6)
    with pytest.raises(ValueError, match="another run: observation was"):
        sciml.refine(fit, line(), other, **OPTIONS, folder=tmp_path)


def test_a_prior_in_another_order_is_refused_as_such(fit, seen):
    turned = Static("line", dict(reversed(line().prior.items())), 2, Error(sd=0.1))
    with pytest.raises(ValueError, match=r"mean, other, and 'line' has other, mean; .*one order"):
        sciml.refine(fit, turned, seen)


def test_a_dataset_comes_back_as_it_was():
    data = sciml.simulate(sciml.ode.lotka_volterra(), samples=5, noise=Error(sd=0.1))
    data = data.assign_coords(
        day=("sample", np.arange(5).astype("datetime64[D]").astype("datetime64[ns]")),
        name=("sample", np.array([*"abcde"], object)),
    )
    xr.testing.assert_identical(unpacked(packed(data)), data)


SCRIPT = """
import sys
import jax, numpy as np, sciml
from numpyro.distributions import Uniform
from sciml.train import Recipe, loop
loop.CALL_S, loop.CHECKPOINT_S = 0.0, -1.0
if __name__ == "__main__":
    problem = sciml.ode.Static("line", {"mean": Uniform(-5.0, 5.0)}, 1, sciml.ode.Gaussian(sd=0.1))
    data = sciml.simulate(problem, 200, noise=problem.noise)
    fit = sciml.fit(sciml.models.Gaussian(8, 1), data, epochs=2, recipe=Recipe(batch=50))
    folder = sys.argv[1] if len(sys.argv) > 1 else None
    options = {"rounds": 2, "simulations": 200, "epochs": 30, "likelihood": False}
    sharp = sciml.refine(fit, problem, data.isel(sample=[0]), **options, folder=folder)
    for leaf in jax.tree.leaves(sharp.params):
        sys.stdout.buffer.write(np.asarray(leaf).tobytes())
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What the script writes where nobody stops it."""
    script = tmp_path_factory.mktemp("whole") / "run.py"
    script.write_text(SCRIPT)
    return subprocess.run([sys.executable, str(script)], check=True, capture_output=True).stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_process_goes_on(number, whole, tmp_path):
    script, folder = tmp_path / "run.py", tmp_path / "kept"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script)]
    run = subprocess.Popen([*command, folder], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while run.poll() is None and not (folder / "round-2.checkpoint").exists():
        time.sleep(0.002)  # and no processor is kept busy
    run.send_signal(number)
    said = run.communicate()[1].decode()
    assert run.returncode == (143 if number == signal.SIGTERM else -signal.SIGKILL), said
    assert not (folder / "round-2.verdict").exists()
    resumed = subprocess.run([*command, folder], check=True, capture_output=True).stdout
    assert resumed == whole
