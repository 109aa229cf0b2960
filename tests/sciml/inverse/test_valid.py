"""`valid` of true and false, or of 0 and 1 as files have it, is one; anything else is refused."""

import numpy as np
import pytest
import xarray as xr

from sciml.baselines.labelled import valid_of
from sciml.inverse.borders import valid_samples
from sciml.ode.data.evidence import valid_in

SAYS = [True, True, False, True, False]


def samples(valid):
    rows = np.arange(10, dtype=np.float32).reshape(5, 2)
    return xr.Dataset(
        {
            "parameters": (("sample", "parameter"), rows),
            "observation": (("sample", "feature"), 1 + rows),
            "valid": ("sample", np.asarray(valid)),
        },
        {"parameter": ["a", "b"]},
    )


@pytest.mark.parametrize("dtype", [bool, int, "int8", float, object])
def test_failed_samples_are_left_out_however_it_is_written(dtype):
    """Of 1, 1, 0, 1, 0 samples 1, 1, 0, 1, 0 were trained on, as of an index."""
    data = samples(np.array(SAYS).astype(dtype))
    found, seen = valid_samples(data)
    assert found.parameters.values[:, 0].tolist() == [0.0, 2.0, 6.0]
    np.testing.assert_array_equal(seen, data.observation.values[SAYS])
    assert valid_of(data).tolist() == valid_in(data).tolist() == SAYS


@pytest.mark.parametrize(
    ("valid", "said"),
    [([1, 1, np.nan, 1, 0], "nan"), ([1, 2, 0, 1, 0], "2"), (["yes"] * 5, "yes")],
)
def test_what_says_neither_is_refused(valid, said):
    """What was missing counted as valid."""
    for use in (valid_in, valid_samples, valid_of):
        with pytest.raises(ValueError, match=f"`valid` has .*{said}.*; it must be True or False"):
            use(samples(valid))
