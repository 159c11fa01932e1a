import pytest

from algorithms.placement.offline import heaps
from algorithms.warm_up import warm_up


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    """Compile before the first test: hypothesis holds every example to a deadline."""
    warm_up()
    pool, root = heaps.push(heaps.new_pool(1), heaps.NONE, 1.0, 1, 0)
    heaps.pop(pool, root)
