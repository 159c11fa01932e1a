import pytest

from algorithms.placement.offline import Mms, heaps
from tests.algorithms.placement.instances import chain


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    """Compile before the first test: hypothesis holds every example to a deadline."""
    Mms().solve(chain())
    pool, root = heaps.push(heaps.new_pool(1), heaps.NONE, 1.0, 1, 0)
    heaps.pop(pool, root)
