"""What takes minutes is run where it is asked for."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker of what only `make contract` and `make torch` run."""
    config.addinivalue_line(
        "markers", "contract: the whole contract of executors and modules, minutes"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes minutes, unless markers are asked for."""
    if not config.option.markexpr:
        for item in items:
            if item.get_closest_marker("contract"):
                item.add_marker(pytest.mark.skip(reason="takes minutes: make contract, make torch"))
