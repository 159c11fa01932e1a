"""The Lab's figures of papers are computed by night."""

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave the tests of this folder to the part `lab`, but for those that are marked otherwise."""
    if item.get_closest_marker("nightly") is None:
        item.add_marker(pytest.mark.nightly("lab"))
