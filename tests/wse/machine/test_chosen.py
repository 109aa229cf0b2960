"""A machine as an argument: a cluster, a machine, a name or a file; nothing else."""

import pytest

import wse
from wse.machine.specification import chosen

NET = wse.workload.dense(width=64)


def test_a_name_means_what_the_function_makes(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("based_on: CS-3\nsystems: 2\n")
    assert chosen(None) == chosen("cs2") == chosen("CS-2") == wse.CS2()
    assert chosen(wse.catalog.CS3) == chosen("cs3") == wse.CS3()
    assert chosen(file) == chosen(str(file)) == wse.CS3(systems=2)
    assert chosen("CG-1").systems == 64
    four = wse.CS2(systems=4)
    assert chosen(four) is four


def test_estimates_take_names():
    assert wse.estimate(NET, machine="cs2").total_s == wse.estimate(NET).total_s
    found = wse.sweep(NET, [100], machine="cs3")
    assert found.attrs["machine"] == "CS-3"
    resident = wse.CS2(mode="pipelined")
    assert wse.inference(NET, 1, machine=resident).cluster == resident
    assert wse.inference(NET, 1, machine="cs-2").cluster.machine == wse.catalog.CS2


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("wrong", "kind", "said"),
    [
        (wse.CS2, TypeError, r"the function CS2; pass a cluster, as wse.CS2\(systems=4\)"),
        (2, TypeError, "machine is 2; pass a cluster"),
        ("cs4", ValueError, "machine is 'cs4'; known are"),
    ],
)
def test_what_is_no_machine_is_refused_in_a_line(wrong, kind, said):
    for ask in (
        lambda: wse.estimate(NET, machine=wrong),
        lambda: wse.inference(NET, 1, machine=wrong),
        lambda: wse.sweep(NET, [100], machine=wrong),
        lambda: wse.check(lambda w, x: (w * x).sum(), 1.0, 2.0, machine=wrong),
    ):
        with pytest.raises(kind, match=said):
            ask()
