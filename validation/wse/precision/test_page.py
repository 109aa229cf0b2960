"""The pages on sparse weights and half precision run as they are printed, and their claims hold."""

import re
from pathlib import Path

import jax
import numpy as np

DOCS = Path(__file__).parents[3] / "docs"


def run(name: str) -> dict:
    space: dict = {}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(), re.S):
        exec(compile(block, name, "exec"), space)
    return space


def test_the_page_on_sparsity():
    said = run("sparsity.md")
    counts = said["density"](said["weights"], said["state"])
    last = counts.sel(parameter="3.w")
    assert float(last.density) == 1
    assert int(counts.kept.sel(parameter="0.w")) == round(0.1 * 64 * 64)
    for a, b in zip(
        jax.tree.leaves(said["weights"]), jax.tree.leaves(said["store"].params), strict=True
    ):
        np.testing.assert_array_equal(a == 0, b == 0)
        np.testing.assert_allclose(a, b, atol=1e-6)
    sent, few, whole = said["sent"], said["few"], said["whole"]
    assert sent == [few] * 3 + [whole] + [few] * 4
    assert few == 3 * round(0.1 * 64**2) * 6 + 4 * 64**2 + 4 * 4 * 64
    assert whole == 4 * 4 * (64**2 + 64)
    stem, thin, wide = said["rule"].counts(said["shapes"], 0.9)
    assert stem is None
    assert thin / 256 > wide / 4096
    assert thin + wide == round(0.1 * (256 + 4096))
    assert float(said["zeros"].share.max()) == 0
    assert {x.zeros for x in said["model"].layers} == {0}
    assert {x.zeros for x in said["half"].layers} == {0.5}
    np.testing.assert_allclose(said["value"], said["loss"](said["dense"], said["batch"]), rtol=1e-5)
    assert np.mean(said["dense"][0]["w"] == 0) == 0.75


def test_the_page_on_zeros_of_activations():
    said = run("lab/activation-zeros.md")
    first, *hidden = said["rectified"].share.values
    assert first == 0
    assert 0.35 < min(hidden) < max(hidden) < 0.65
    assert float(said["smooth"].share.max()) == 0
    assert {x.zeros for x in said["model"].layers} == {0, *hidden}
    ends = [said[name].training_interval_s for name in ("before", "after")]
    assert [f"{low:.3f}" for low, _ in ends] == ["1.032", "1.000"]
    assert ends[0][1] == ends[1][1]
    bare = said["wse"].estimate(said["graph"], batch=512, machine=said["streaming"])
    fast, slow = said["thin"].training_interval_s
    # The wait for the first products is of the step too, and a little less of them.
    assert 0 < bare.training_interval_s[0] - fast < 5e-4
    assert [f"{x:.3f}" for x in (fast, bare.training_interval_s[0])] == ["5.382", "5.382"]
    assert bare.training_interval_s[1] == slow


def test_the_page_on_precision():
    said = run("precision.md")
    assert said["halved"] == 2 * 2 * 4 * (64**2 + 64)
    assert said["limits"]["float16"] == 65504
    assert f"{said['limits']['cbfloat16']:.1e}" == "4.3e+09"
    half = said["CBFLOAT16"]
    assert f"{half.least_normal:.1e}" == "9.3e-10"
    for a, b in zip(
        jax.tree.leaves(said["weights"]), jax.tree.leaves(said["store"].params), strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-6)
    assert int(said["state"].skipped) == 0
