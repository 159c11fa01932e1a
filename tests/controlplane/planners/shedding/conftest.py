"""A busy cluster: measured rates and costs, queries of several kinds."""

from datetime import datetime

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from tests.support.shedding import busy_cluster


@pytest.fixture
def busy(operator: Actor, sf: Cluster, now: datetime) -> Cluster:
    """See `busy_cluster`."""
    return busy_cluster(operator, sf, now)
