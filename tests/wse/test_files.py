from pathlib import Path

import pytest

from wse._files import cache_folder, ensure_folder, write_aside


def test_failed_write_leaves_the_older_file_and_nothing_else(tmp_path):
    target = tmp_path / "table.csv"
    target.write_text("old")
    with pytest.raises(RuntimeError, match="half"), write_aside(target) as aside:
        aside.write_text("new, but hal")
        raise RuntimeError("half way")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_finished_write_replaces(tmp_path):
    target = tmp_path / "deep" / "table.csv"
    with write_aside(target) as aside:
        aside.write_text("new")
    assert target.read_text() == "new"


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="name a folder"):
        ensure_folder(tmp_path / "file" / "results")


def test_the_cache_is_where_the_first_of_its_names_says(monkeypatch):
    for name in ("HOME", "XDG_CACHE_HOME", "SCIML_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    assert cache_folder("wse") == Path("/home/me/.cache/wse")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder("sciml", "xla") == Path("/caches/sciml/xla")
    monkeypatch.setenv("SCIML_CACHE", "~/mine")
    assert cache_folder("sciml", "xla") == Path("/home/me/mine/sciml/xla")
