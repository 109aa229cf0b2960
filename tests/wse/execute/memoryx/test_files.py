import errno
import os
import time
from concurrent.futures import ThreadPoolExecutor
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


def test_a_full_disk_is_said_with_the_name_and_what_to_do(tmp_path):
    target = tmp_path / "table.csv"
    target.write_text("old")
    said = r"No space left.*what was there before is intact: make room.*table\.csv"
    with pytest.raises(OSError, match=said) as refused, write_aside(target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert refused.value.errno == errno.ENOSPC
    assert target.read_text() == "old"


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


def test_writers_of_one_number_do_not_meet(tmp_path):
    """Threads, as processes of containers that share a volume, have the same process number."""
    target = tmp_path / "table.csv"

    def write(text: str) -> None:
        with write_aside(target) as aside:
            aside.write_text(text * 1000)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, "abcdefgh" * 10))
    text = target.read_text()
    assert text == text[0] * 1000
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_under_the_name_is_said_and_kept(tmp_path):
    (tmp_path / "page.html").mkdir()
    rule = "page.html is a folder; name a file"
    with pytest.raises(IsADirectoryError, match=rule), write_aside(tmp_path / "page.html") as aside:
        aside.write_text("x")
    assert [x.name for x in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_killed_writers_left_is_removed_by_the_next_one(tmp_path, kind, monkeypatch):
    target = tmp_path / "table.zarr"
    left, others = tmp_path / f".table.{'0' * 16}.zarr", tmp_path / ".table.mine.zarr"
    others.mkdir()
    if kind == "folder":
        left.mkdir()
        (left / "chunk").write_text("half")
    else:
        left.write_text("half")

    def write() -> None:
        with write_aside(target) as aside:
            aside.write_text("new")

    write()
    assert left.exists()  # it may still be written to
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    write()
    assert not left.exists()
    assert others.exists()


def test_a_folder_is_put_whole_and_never_over_another(tmp_path):
    target = tmp_path / "fine.zarr"

    def write(text: str) -> None:
        with write_aside(target) as aside:
            aside.mkdir()
            (aside / "chunk").write_text(text)

    write("first")
    with pytest.raises(FileExistsError, match="is there already; remove it, or name another"):
        write("second")
    assert (target / "chunk").read_text() == "first"
    assert list(tmp_path.iterdir()) == [target]
