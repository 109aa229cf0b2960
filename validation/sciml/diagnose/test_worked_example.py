"""The lab page on diagnostics runs as it stands, and its table tells what comes out."""

import re
from pathlib import Path

import numpy as np
import pytest

from sciml import diagnose

PAGE = Path(__file__).parents[3] / "docs" / "lab" / "diagnostics.md"
CAUGHT = 1e-3


@pytest.fixture(scope="module")
def names() -> dict:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    names: dict = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    return names


def test_the_table_of_wrong_posteriors(names):
    rows = {
        cells[0]: cells[1:]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == 6
    }
    posteriors = {"exact": names["exact"], **names["wrong"]}
    assert {*posteriors} < {*rows}
    for name, posterior in posteriors.items():
        ranks, points, informed, blind, contraction = rows[name]
        tree = names["found"].get(name)
        if tree is None:
            tree = diagnose.calibration(posterior, names["truth"], references=names["references"])
        random = float(diagnose.tarp(posterior, names["truth"]).p_value)
        for cell, p_value in (
            (ranks, float(tree.sbc.ecdf_p.min())),
            (informed, float(tree.tarp.p_value)),
            (blind, random),
        ):
            assert ("fail" in cell) == (p_value < CAUGHT)
            if found := re.search(r"p = (0\.\d+)$", cell):
                assert float(found[1]) == pytest.approx(p_value, abs=0.01)
        worst = tree.coverage.worst_points.values
        assert float(points.replace("−", "-")) == pytest.approx(
            worst[abs(worst).argmax()], abs=0.06
        )
        percent = [float(c.replace("−", "-").removesuffix(" %")) for c in contraction.split(", ")]
        np.testing.assert_allclose(percent, 100 * tree.contraction.median_contraction, atol=0.6)


def test_what_the_text_says(names):
    assert float(names["ranks"].ecdf_p.sel(parameter="misfit")) < CAUGHT
    assert 0.6 < float(names["score"].score) < 0.75
    assert (names["local"].p_value.values >= 0.05).all()
    assert np.median(names["local"].p_value) == pytest.approx(0.05)
    assert float(names["mended_tree"].checks.adjusted.min()) > 0.05
    judged = diagnose.judge(names["known"], names["fresh"])
    assert float(judged.flagged.mean()) == pytest.approx(0.05, abs=0.03)
    assert diagnose.judge(names["known"], names["fresh"] + 6.0).flagged.all()
    assert names["tree"].coverage.worst_points.sel(parameter="joint") == pytest.approx(0, abs=7)
