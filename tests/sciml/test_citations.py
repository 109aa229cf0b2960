import re
import subprocess
import sys
from pathlib import Path

import pytest

import sciml
from sciml.citations import ARXIV, cite, entries, places
from sciml.models import INVERSE_MAPS, Ensemble, SplineFlow
from sciml.ode import CATALOG

ROOT = Path(__file__).parents[2]


def keys(*things):
    return re.findall(r"@\w+\{(\w+)", cite(*things))


def test_every_arxiv_number_of_code_and_guides_is_in_the_bibliography():
    texts = [*(ROOT / "sciml").rglob("*.py"), *(ROOT / "wse").rglob("*.py")]
    texts += [*(ROOT / "docs").rglob("*.md"), *(ROOT / "notebooks" / "src").glob("*.py")]
    numbers = {(m[1], path.name) for path in texts for m in ARXIV.finditer(path.read_text())}
    assert len(numbers) > 30
    assert {found for found in numbers if found[0] not in places()} == set()


def test_entries_are_complete_and_their_braces_balance():
    for key, entry in entries().items():
        assert entry.count("{") == entry.count("}"), key
        assert {"author", "title", "year"} <= set(re.findall(r"(\w+) = \{", entry)), key


@pytest.mark.parametrize("name", CATALOG)
def test_every_problem_of_the_catalogue_is_cited(name):
    assert len(keys(CATALOG[name]())) > 3


@pytest.mark.slow
def test_a_fit_cites_its_net_its_optimizer_and_its_data(fitted):
    assert keys(fitted)[1:] == ["rudi2021", "kingma2015", "jax", "flax"]


@pytest.fixture(scope="module")
def fitted():
    data = sciml.simulate(sciml.ode.fitzhugh_nagumo(), samples=60, seed=0)
    net = sciml.models.Convolutional(filters=2, units=4)
    with pytest.warns(UserWarning, match="collapsed"):
        return sciml.fit(net, data, epochs=2)


def test_parts_are_cited_with_the_whole():
    found = keys(Ensemble(SplineFlow(), 2))
    assert {"lakshminarayanan2017", "durkan2019"} <= set(found)


def test_a_key_is_cited_and_another_text_refused():
    assert "@article{lorenz1963" in cite("lorenz1963")
    with pytest.raises(ValueError, match="no work 'lorenz'; the keys are"):
        cite("lorenz")


def test_most_nets_name_their_sources():
    nameless = [name for name, net in INVERSE_MAPS.items() if len(keys(net)) == 3]
    assert nameless == ["Dense", "Gaussian"]


def test_versions_are_shown(capsys):
    sciml.show_versions()
    shown = capsys.readouterr().out
    assert re.search(r"^jax +\d", shown, re.MULTILINE)
    assert re.search(r"^machine +\S", shown, re.MULTILINE)


@pytest.mark.parametrize("package", ["sciml", "wse"])
def test_the_commands_run_as_modules(package):
    made = subprocess.run(
        [sys.executable, "-m", package, "--help"], capture_output=True, text=True, check=True
    )
    assert f"Usage: {package}" in made.stdout
