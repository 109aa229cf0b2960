import hashlib
import logging

import pytest
import yaml

from sciml.wind import DatasetUnavailable, fetch, registered
from sciml.wind.read import retrieval as retrieval_module
from sciml.wind.read.registry import RemoteFile, registry_folder

GOOD = {"name": "a.nc", "sha256": "0" * 64, "url": "https://example.org/a.nc"}


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    """No mirror, an empty cache, and a network that must not be asked."""
    monkeypatch.delenv("SCIML_MIRROR", raising=False)
    monkeypatch.setenv("SCIML_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A data set of one file with a known content, at an address that answers nothing."""
    content = b"wind"
    file = RemoteFile("w.nc", hashlib.sha256(content).hexdigest(), "https://127.0.0.1:9/w.nc")
    source = registered("metcoop")
    known = type(source)(**{**vars(source), "files": {"test": file}})
    monkeypatch.setattr(retrieval_module, "registered", lambda _: known)
    return file, content


def test_metcoop_says_all_that_a_result_must_say():
    source = registered("metcoop")
    assert list(source.files) == ["train", "validation", "test"]
    assert set(source.variables.values()) == {"m/s"}
    assert "CC BY 4.0" in source.licence
    assert "doi:" in source.citation


@pytest.mark.parametrize("name", ["nowhere", "../metcoop", "", "metcoop.yaml"])
def test_unknown_names_are_refused(name):
    with pytest.raises(ValueError, match=r"is unknown; name one of .*metcoop"):
        registered(name)


@pytest.mark.parametrize(
    ("key", "value"),
    [("name", "../a.nc"), ("name", "/a.nc"), ("name", ".a"), ("sha256", "0"), ("url", "file:///a")],
)
def test_a_file_that_leads_astray_is_refused(key, value):
    with pytest.raises(ValueError, match=f"the {key} of a file is '{value}'; it must be"):
        RemoteFile(**(GOOD | {key: value}))


@pytest.mark.parametrize(
    "text", ["[1, 2]", "a: [", "title: x", "!!python/object/apply:os.getcwd []"]
)
def test_a_malformed_registry_file_is_refused(tmp_path, text):
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"bad\.yaml is malformed"):
        registered("bad", tmp_path)


def test_a_file_name_of_the_registry_stays_in_its_folder(tmp_path):
    content = vars(registered("metcoop")) | {"files": {"test": GOOD | {"name": "../a.nc"}}}
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(ValueError, match="plain file name"):
        registered("bad", tmp_path)


def test_the_mirror_is_searched_at_any_depth(small, monkeypatch, tmp_path):
    file, content = small
    deep = tmp_path / "mirror" / "x" / "y"
    deep.mkdir(parents=True)
    (deep / file.name).write_bytes(content)
    monkeypatch.setenv("SCIML_MIRROR", str(tmp_path / "mirror"))
    assert fetch("small") == {"test": deep / file.name}


def test_another_content_in_the_mirror_is_an_error(small, monkeypatch, tmp_path):
    file, _ = small
    (tmp_path / file.name).write_bytes(b"calm")
    monkeypatch.setenv("SCIML_MIRROR", str(tmp_path))
    with pytest.raises(ValueError, match=f"has sha256 .*; the registry says {file.sha256}"):
        fetch("small")


def test_a_mirror_that_is_no_folder_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("SCIML_MIRROR", str(tmp_path / "absent"))
    with pytest.raises(ValueError, match=r"SCIML_MIRROR is .*; it must name an existing folder"):
        fetch("metcoop")


def test_the_cache_answers_without_a_network(small, tmp_path):
    file, content = small
    cached = tmp_path / "cache" / "sciml" / "datasets" / "metcoop" / file.name
    cached.parent.mkdir(parents=True)
    cached.write_bytes(content)
    assert fetch("small") == {"test": cached}


@pytest.mark.usefixtures("small")
def test_what_cannot_be_had_names_the_remedy(tmp_path, capfd, caplog):
    with (
        caplog.at_level(logging.INFO),
        pytest.raises(DatasetUnavailable, match=r"cannot be had: .*Set SCIML_MIRROR to a folder"),
    ):
        fetch("small")
    assert "could not be fetched" in caplog.text
    assert not list((tmp_path / "cache").rglob("*.nc"))
    assert capfd.readouterr() == ("", "")


def test_every_set_says_all_and_names_no_file_twice():
    names = [path.stem for path in registry_folder().glob("*.yaml")]
    assert {"metcoop", "hrrr", "arome_france", "meteonet"} <= set(names)
    sources = [registered(name) for name in names]
    files = [file.name for source in sources for file in source.files.values()]
    assert len(files) == len(set(files))
    for source in sources:
        assert source.licence
        assert source.citation
        assert source.spacing_m > 0


def test_a_file_without_an_address_must_be_explained(tmp_path):
    bare = {key: value for key, value in GOOD.items() if key != "url"}
    content = vars(registered("metcoop")) | {"files": {"test": bare}}
    del content["obtain"]
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(ValueError, match="obtain must say where it comes from"):
        registered("bad", tmp_path)


def test_a_file_without_an_address_is_taken_from_the_cache_or_explained(monkeypatch, tmp_path):
    with pytest.raises(DatasetUnavailable, match=r"Debian package glgrib-testdata .* Put it into"):
        fetch("joachim")
    content = b"storm"
    file = RemoteFile("s.grib", hashlib.sha256(content).hexdigest(), None)
    source = registered("joachim")
    known = type(source)(**{**vars(source), "files": {"forecast": file}})
    monkeypatch.setattr(retrieval_module, "registered", lambda _: known)
    cached = tmp_path / "cache" / "sciml" / "datasets" / "joachim" / "s.grib"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(content)
    assert fetch("joachim") == {"forecast": cached}


def test_all_real_files_are_those_of_the_registry(shared, monkeypatch):
    monkeypatch.setenv("SCIML_MIRROR", str(shared / "data" / "wind"))
    names = [path.stem for path in registry_folder().glob("*.yaml")]
    assert sum(len(fetch(name)) for name in names) == 75


def test_real_files_pass_their_checksums(shared, monkeypatch):
    monkeypatch.setenv("SCIML_MIRROR", str(shared / "data" / "wind"))
    assert [path.suffix for path in fetch("metcoop").values()] == [".nc"] * 3
