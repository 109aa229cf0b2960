"""The lists of requirements agree: pyproject.toml, environment.yml, constraints.txt."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from datetime import date
from importlib.metadata import distributions, entry_points, version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

import sciml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

# What conda-forge calls a distribution, or an extra of one, where its name is another.
CONDA_NAMES = {
    "eccodes": "python-eccodes",
    "matplotlib": "matplotlib-base",
    "pyright[nodejs]": "pyright",
    "torch": "pytorch",
}
# Extras that conda users do not get from environment.yml: benchmarks' peers, what drives a
# browser, another jaxlib, and what conda-forge has not.
NOT_IN_CONDA = {"bench", "torch", "browser", "gpu", "genes"}


def wanted(extras: set[str]) -> dict[str, SpecifierSet]:
    """Return name → versions of the dependencies and of some extras, as pyproject.toml has them."""
    lists = [PROJECT["dependencies"]]
    lists += [names for extra, names in PROJECT["optional-dependencies"].items() if extra in extras]
    requirements = [Requirement(line) for names in lists for line in names]
    found: dict[str, SpecifierSet] = {}
    for requirement in requirements:  # an extra may narrow what the packages allow
        name = full_name(requirement)
        found[name] = found.get(name, SpecifierSet()) & requirement.specifier
    return found


def full_name(requirement: Requirement) -> str:
    extras = ",".join(sorted(requirement.extras))
    return f"{requirement.name}[{extras}]" if extras else requirement.name


def conda() -> dict[str, SpecifierSet]:
    """Return name → versions, as environment.yml has them."""
    lines = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    pairs = [re.fullmatch(r"([a-z0-9-]+) ?(.*)", line) for line in lines if isinstance(line, str)]
    return {pair[1]: SpecifierSet(pair[2]) for pair in pairs if pair}


def pins() -> dict[str, Version]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if not line.startswith("#")]
    return {name: Version(version) for name, version in pairs}


def test_the_conda_environment_equals_the_project():
    extras = PROJECT["optional-dependencies"].keys() - NOT_IN_CONDA
    expected = {CONDA_NAMES.get(name, name): spec for name, spec in wanted(extras).items()}
    expected |= {"python": SpecifierSet(PROJECT["requires-python"])}
    found = conda()
    for helper in ("nodejs", "pip"):  # pyright runs on node; pip installs the project itself
        found.pop(helper)
    assert found == expected


def test_the_pins_cover_the_project_and_satisfy_it():
    pinned = pins()
    for name, versions in wanted(PROJECT["optional-dependencies"].keys() - {"gpu"}).items():
        assert pinned[Requirement(name).name] in versions, name


def test_the_pins_name_no_address_and_no_local_build():
    text = (ROOT / "constraints.txt").read_text()
    assert re.search(r"://| @ |^-", text, re.MULTILINE) is None
    assert [name for name, version in pins().items() if version.local] == []


def test_the_citation_names_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation.keys() >= {"cff-version", "message", "title", "authors"}
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert date.fromisoformat(str(citation["date-released"])).year >= 2026
    assert PROJECT["urls"]["Published study"].rpartition("/")[2] in str(citation["references"])


@pytest.mark.parametrize("name", PROJECT["scripts"])
def test_a_command_is_there(name: str):
    (script,) = entry_points(group="console_scripts", name=name)
    assert callable(script.load())


def test_the_packages_know_their_version():
    assert sciml.__version__ == PROJECT["version"] == version("sciml-wse")


def test_the_wheel_holds_what_the_packages_need(tmp_path: Path):
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    command += ["--directory", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.iterdir()
    names = zipfile.ZipFile(wheel).namelist()
    assert {"sciml/py.typed", "wse/py.typed"} <= {*names}
    recipes = {f"sciml/datasets/{path.name}" for path in (ROOT / "datasets").glob("*.yaml")}
    assert recipes
    assert recipes <= {*names}
    assert [name for name in names if not name.startswith(("sciml/", "wse/", "sciml_wse-"))] == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/install.md", ".ci/run"])
def test_every_make_command_in_a_page_exists(page: str):
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    text = (ROOT / page).read_text()
    named = re.findall(r"(?:`|\$ |^)make ([a-z]+)", text, re.MULTILINE)
    assert {*named} <= {*targets}


STUB = '#!/bin/sh\necho "$(basename "$0") $*" >>called\ntest "$(basename "$0") $*" != "$FAILS"\n'
STEPS = ("python3 .ci/house.py", "make .venv/.test", "make test", "make validate", "unpinned ")


@pytest.mark.parametrize("fails", [*STEPS, "make .venv-torch/.made", ""])
def test_continuous_integration_runs_each_step_and_fails_where_one_does(tmp_path: Path, fails: str):
    (tmp_path / ".ci").mkdir()
    (tmp_path / "bin").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    for name in ("bin/make", "bin/python3", ".ci/unpinned"):
        (tmp_path / name).write_text(STUB)
        (tmp_path / name).chmod(0o755)
    env = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "FAILS": fails}
    done = subprocess.run([tmp_path / ".ci" / "run"], env=env, capture_output=True, text=True)
    assert (done.returncode != 0) == (fails in STEPS), done.stderr
    called = (tmp_path / "called").read_text().splitlines()
    made = STEPS[: STEPS.index(fails) + 1] if fails in STEPS else STEPS
    in_order = [*STEPS[:4]]  # the rest runs beside them
    assert [x for x in called if x in in_order] == [x for x in made if x in in_order]
    assert fails in in_order or STEPS[4] in called


def test_what_is_pinned_runs_on_the_oldest_python_that_is_promised():
    """A pin that asks for a later patch of it makes `make test` fail to install there."""
    (oldest,) = (bound.version for bound in SpecifierSet(PROJECT["requires-python"]))
    if not oldest.startswith(".".join(map(str, sys.version_info[:2]))):
        pytest.skip(f"what is pinned is installed on Python {oldest}")
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {line.partition("==")[0] for line in lines if "==" in line}
    asked = {d.name: d.metadata.get("Requires-Python", "") for d in distributions()}
    asked = {re.sub(r"[-_.]+", "-", name).lower(): python for name, python in asked.items()}
    assert len(pinned & set(asked)) > 100
    refused = {n: asked[n] for n in pinned & set(asked) if oldest not in SpecifierSet(asked[n])}
    assert not refused
