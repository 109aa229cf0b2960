"""The code of the README works as it stands."""

import re
from pathlib import Path

import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_ten_lines_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    names: dict = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["fit"].parameter_count == 243_970
    assert names["fit"].collapsed == ()
    assert int(names["answer"].flagged.sum()) <= 1  # 5 % of proper observations are, by chance
    assert float(abs(names["answer"].estimate - names["seen"].parameters).max()) < 0.2
    assert (tmp_path / "run.fit").exists()
    plt.close("all")
