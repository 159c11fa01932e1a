"""What the tests of sources share."""

from collections.abc import Iterator

import pytest

from tests.workers.pipeline.sources.planners import forget_planners


@pytest.fixture(autouse=True)
def no_watchers_are_left() -> Iterator[None]:
    """Let each test have watchers of its own, which log nothing into later ones."""
    forget_planners()
    yield
    forget_planners()
