import pytest

from wse._files import ensure_folder, write_aside


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
