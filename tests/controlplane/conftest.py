"""An operator and a small cluster; every test has an empty real Redis."""

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from tests.support import cluster as made
from tests.support.prepared import prepared, prepared_actor


@pytest.fixture
def operator(db: None, redis_url: str) -> Actor:
    """A person who may change things."""
    return prepared_actor("operator")


@pytest.fixture
def approver(db: None, redis_url: str) -> Actor:
    """A person who may approve plans."""
    return prepared_actor("approver")


@pytest.fixture
def viewer(db: None, redis_url: str) -> Actor:
    """A person who may look."""
    return prepared_actor("viewer")


@pytest.fixture
def sf(operator: Actor) -> Cluster:
    """Four nodes, six streams, no query."""
    return prepared("small", lambda: made.small_cluster(operator), operator.user.pk)
