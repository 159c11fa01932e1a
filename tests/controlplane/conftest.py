"""An operator and a small cluster; every test has an empty real Redis."""

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from tests.support import cluster as made


@pytest.fixture
def operator(db: None, redis_url: str) -> Actor:
    """A person who may change things."""
    return made.actor("operator")


@pytest.fixture
def approver(db: None, redis_url: str) -> Actor:
    """A person who may approve plans."""
    return made.actor("approver")


@pytest.fixture
def viewer(db: None, redis_url: str) -> Actor:
    """A person who may look."""
    return made.actor("viewer")


@pytest.fixture
def sf(operator: Actor) -> Cluster:
    """Four nodes, six streams, no query."""
    return made.small_cluster(operator)
