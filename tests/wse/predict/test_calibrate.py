"""The catalogue's constants are what the published rows give, with the errors told of them."""

import csv
import os
from dataclasses import astuple
from pathlib import Path

import pytest

from wse.machine.catalog import PIPELINED
from wse.machine.constants import SETUP
from wse.machine.published import TABLE4
from wse.predict import calibrate


def test_the_catalogue_holds_the_fitted_constants() -> None:
    a, b = calibrate.train().constants
    assert float(f"{a:.4e}") == PIPELINED.input_s_per_sample.value
    assert float(f"{b:.4e}") == PIPELINED.unit_s_per_sample.value
    floor, place = calibrate.setup().constants
    named = SETUP.front_s, SETUP.pipelined_job_s, SETUP.pipelined_program_s, PIPELINED.setup_rest_s
    assert round(floor, 2) == round(sum(part.value for part in named), 2)
    assert round(place, 4) == PIPELINED.setup_s_per_mparam_1p5.value


def test_fitted_constants_are_called_calibrated() -> None:
    fitted = (
        PIPELINED.input_s_per_sample,
        PIPELINED.unit_s_per_sample,
        PIPELINED.setup_rest_s,
        PIPELINED.setup_s_per_mparam_1p5,
    )
    assert {constant.status for constant in fitted} == {"calibrated"}


def test_training_errors() -> None:
    fit = calibrate.train()
    assert [round(x, 1) for x in fit.in_sample_percent] == [-4.7, 5.5, -1.3, 0.0]
    assert [round(x, 1) for x in fit.leave_one_out_percent] == [-8.2, 9.5, -1.7, -0.3]
    assert round(fit.in_sample_mape_percent, 1) == 2.9
    assert round(fit.leave_one_out_mape_percent, 1) == 4.9


def test_setup_errors() -> None:
    fit = calibrate.setup()
    assert [round(x, 1) for x in fit.in_sample_percent] == [-0.4, 0.2, 0.2, 0.0]
    assert [round(x, 1) for x in fit.leave_one_out_percent] == [-0.6, 0.3, 0.3, -3.8]
    assert fit.leave_one_out_mape_percent < 2


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(ValueError, match=r"2 published rows; .* at least three"):
        calibrate.train(TABLE4[:2])


def test_published_rows_add_up() -> None:
    for row in TABLE4:
        assert row.cs2_setup_s + row.cs2_train_s == pytest.approx(row.cs2_total_s, abs=0.051)


def test_published_rows_equal_the_collected_table() -> None:
    shared = os.environ.get("SCIML_SHARED")
    if not shared:
        pytest.skip("SCIML_SHARED is not set: the published table is not at hand")
    with (Path(shared) / "data" / "wse" / "table4.csv").open(newline="") as file:
        rows = [tuple(map(float, row)) for row in list(csv.reader(file))[1:]]
    assert rows == [astuple(row) for row in TABLE4]
