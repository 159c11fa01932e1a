"""The lower bound of the replication factor is computed seldom, and from what runs."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Task
from controlplane.watch.observation import replication_of
from tests.support.execution import scattered

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_is_that_of_the_placement(operator: Actor, sf: Cluster) -> None:
    """Three streams, each delivered to all four nodes; two nodes each could do."""
    cluster = scattered(operator, sf)
    found = replication_of(cluster, timezone.now())
    assert found is not None
    assert found.factor == pytest.approx(4.0)
    assert 1.0 <= found.bound <= 2.0
    assert found.version == cluster.routing_version


def test_it_is_kept_for_the_version_and_a_minute(operator: Actor, sf: Cluster) -> None:
    cluster, now = scattered(operator, sf), timezone.now()
    first = replication_of(cluster, now)
    Task.objects.update(node=cluster.nodes.get(index=0))
    cluster.routing_version += 1
    with CaptureQueriesContext(connection) as asked:
        assert replication_of(cluster, now + timedelta(seconds=59)) is first
    assert not asked.captured_queries
    later = replication_of(cluster, now + timedelta(seconds=61))
    assert later is not None
    assert later.factor == pytest.approx(1.0), "all on one node"


def test_of_an_empty_cluster_there_is_none(operator: Actor, sf: Cluster) -> None:
    assert replication_of(sf, timezone.now()) is None
