"""Settings of a wrong kind are refused in one line; whole numbers of NumPy's are numbers."""

import numpy as np
import pytest

import wse
from wse.workload import dense

pytestmark = pytest.mark.usefixtures("untyped")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: wse.CS2(systems="4"), "systems is '4'"),
        (lambda: wse.CS2(systems=True), "systems is True"),
        (lambda: wse.CS2(sparsity=0.5), r"sparsity is 0.5; .* pass wse.sparsity.Static\(0.9\)"),
        (lambda: wse.estimate(dense(), samples="10"), "samples is '10'"),
        (lambda: wse.estimate(dense(), batch=2.5), "batch is 2.5"),
        (lambda: dense(width="8"), "width is '8'"),
        (lambda: dense(width=2.5), "width is 2.5"),
        (lambda: wse.check(dense(), release=2.0), "release is 2.0; .* text"),
        (lambda: wse.sparsity.Static("a"), r"sparsity is 'a'; .* in \[0, 1\)"),
    ],
)
def test_what_is_no_such_setting_is_named(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_whole_numbers_of_numpy_are_taken():
    asked = {"samples": np.int64(1200), "batch": np.int32(12)}
    found = wse.estimate(dense(width=np.int64(64)), machine=wse.CS2(np.int8(2)), **asked)
    same = wse.estimate(dense(width=64), machine=wse.CS2(2), samples=1200, batch=12)
    assert str(found) == str(same)
