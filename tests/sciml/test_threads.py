"""Calls side by side: their order, their errors, one thread for what is not a processor."""

import threading

import pytest

from sciml import _session


@pytest.mark.parametrize("count", [0, 1, 2, 7])
@pytest.mark.parametrize("cores", [1, 3])
def test_results_come_in_the_order_of_the_items(count, cores, monkeypatch):
    monkeypatch.setattr(_session, "usable_cores", lambda: cores)
    assert list(_session.each(lambda i: i**2, range(count))) == [i**2 for i in range(count)]


def test_the_first_call_is_alone_and_the_others_are_side_by_side(monkeypatch):
    monkeypatch.setattr(_session, "usable_cores", lambda: 2)
    met = threading.Barrier(2, timeout=10)
    began = []

    def call(item):
        began.append(item)
        if item:
            met.wait()  # two are here at once, or this fails
        else:
            assert began == [0]

    assert len(list(_session.each(call, range(5)))) == 5


def test_with_everything_compiled_no_call_is_alone(monkeypatch):
    monkeypatch.setattr(_session, "usable_cores", lambda: 2)
    met = threading.Barrier(2, timeout=10)
    assert len(list(_session.each(lambda _: met.wait(), range(2), compiled=True))) == 2


def test_an_accelerator_has_one_thread(monkeypatch):
    monkeypatch.setattr("jax.default_backend", lambda: "gpu")
    names = set(_session.each(lambda _: threading.current_thread().name, range(4)))
    assert names == {threading.current_thread().name}


def test_an_error_is_that_of_the_call():
    with pytest.raises(ZeroDivisionError):
        list(_session.each(lambda i: 1 / (3 - i), range(5)))
