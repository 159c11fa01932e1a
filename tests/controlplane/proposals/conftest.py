"""A cluster whose queries are on nodes other than those that a planner chooses."""

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from tests.support.execution import prepared_scattered
from tests.support.policies import set_policy


@pytest.fixture
def cluster(operator: Actor, sf: Cluster) -> Cluster:
    """A cluster whose executions apply two moves per step."""
    set_policy(sf, cluster_moves=2)
    return prepared_scattered(operator, sf)
