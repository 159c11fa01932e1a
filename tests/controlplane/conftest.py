"""An operator and a small cluster; every test has an empty real Redis."""

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from tests.support import cluster as made
from tests.support.prepared import prepared


@pytest.fixture
def sf(operator: Actor) -> Cluster:
    """Four nodes, six streams, no query."""
    return prepared("small", lambda: made.small_cluster(operator), operator.user.pk)
