"""Studies of sparse weights and half precision: run, kept, drawn; steps equal to the machine's."""

from pathlib import Path

import jax
import numpy as np
import pytest

import sciml
import wse
from sciml.figure import panels
from sciml.models import Dense
from sciml.studies import PUBLISHED, STUDIES
from sciml.studies.inverse import recovery_runs
from sciml.studies.inverse.numerics import HalfRun, SparseRun, by_precision, by_sparsity
from sciml.studies.inverse.plain import PlainJax
from sciml.studies.inverse.recovery_runs import gathered, judged
from wse.precision import Precision
from wse.sparsity import RigL

pytestmark = [
    pytest.mark.usefixtures("quick_compilation"),
    pytest.mark.filterwarnings("ignore::sciml.estimator.CollapseWarning"),
]
SMALL = {"width": 8, "samples": 200, "epochs": 3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def results(folder, quick_compilation):
    sparse = [SparseRun("dense", 0.0, **SMALL), SparseRun("RigL", 0.5, **SMALL)]
    half = [HalfRun("float32", **SMALL), HalfRun("cbfloat16", "dynamic", **SMALL)]
    return {"sparsity": gathered(sparse, folder), "precision": gathered(half, folder)}


def test_they_are_registered_and_not_among_the_published():
    for name in ("sparsity", "precision"):
        assert STUDIES[name] not in PUBLISHED
        assert STUDIES[name].about.endswith(".")
    assert {run.sparsity for run in by_sparsity("full")} == {0, 0.5, 0.75, 0.9, 0.95}
    assert {run.precision for run in by_precision("fast")} == {"float32", *wse.precision.FORMATS}


def test_runs_are_kept_by_what_decides_them(results, folder, monkeypatch):
    monkeypatch.setattr("sciml.studies.inverse.numerics.fit", None)
    again = judged(SparseRun("RigL", 0.5, **SMALL), folder)
    np.testing.assert_array_equal(again.mse, results["sparsity"].mse[1])
    with pytest.raises(TypeError):  # another sparsity is another run
        judged(SparseRun("RigL", 0.6, **SMALL), folder)


@pytest.mark.parametrize("name", ["sparsity", "precision"])
def test_they_are_tabled_and_drawn(results, name):
    tables = STUDIES[name].tables(results[name])
    assert len(tables[name]) == 2
    assert np.isfinite(tables[name]["mse"]).all()
    _, axes = panels(1, 2, (7.0, 2.5))
    draw = {"sparsity": sciml.studies.inverse.numerics.draw_sparsity}.get(
        name, sciml.studies.inverse.numerics.draw_precision
    )
    draw(tables[name], axes)
    assert axes[0].get_yscale() == ("log" if name == "sparsity" else "linear")
    assert axes[1].get_xlabel() or axes[1].get_ylabel()


@pytest.mark.parametrize(
    ("options", "bound"),
    [
        ({"sparsity": RigL(0.5, steps=6, every=2)}, 2e-5),
        ({"precision": Precision("bfloat16")}, 1e-3),
    ],
    ids=["sparse", "half"],
)
def test_plain_steps_train_the_weights_of_the_emulated_machine(options, bound):
    """In float32; a difference in the last bit may round to another half-precision number."""
    data = recovery_runs.clean_set(200, 0)
    how = {"epochs": 3, "recipe": Dense(8, 2).recipe().replace(batch=100)}
    fits = [
        sciml.fit(Dense(8, 2), data, executor=executor, **how)
        for executor in (PlainJax(**options), wse.CS2(**options))
    ]
    plain, streamed = (jax.tree.leaves(fit.params) for fit in fits)
    for a, b in zip(plain, streamed, strict=True):
        np.testing.assert_allclose(a, b, atol=bound)
        if "sparsity" in options:
            np.testing.assert_array_equal(a == 0, b == 0)


def test_the_page_says_what_the_table_of_results_says():
    import pandas as pd

    docs = Path(__file__).parents[3] / "docs"
    page = (docs / "lab" / "precision.md").read_text(encoding="utf-8")
    for row in pd.read_csv(docs / "results" / "precision.csv").to_dict("records"):
        scores = f"{row['r2']:.4f} | {row['r2_half']:.4f}"
        errors = f"{1e6 * row['median_se']:.1f} | {1e6 * row['median_se_half']:.1f}"
        assert f"| {row['precision']} | {row['scaling']} | {scores} | {errors} |" in page
