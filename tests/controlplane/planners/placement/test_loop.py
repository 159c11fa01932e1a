"""The lower bound of the replication factor is computed seldom, and from what runs."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Task
from controlplane.planners.placement.loop import Replication, replication_of, replication_reading
from controlplane.watch.reading import LoopReading
from tests.support.execution import scattered
from tests.support.watching import NOW, looked, sample

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


def read(**changed: Any) -> LoopReading:
    """Return the reading with a bound that needs no database."""
    return replication_reading(looked(**changed), lambda *_: Replication(1, NOW, 1.8, 1.25))


def test_replication_is_compared_with_its_bound() -> None:
    """1.5 times a bound of 1.25; below 1.5 the bound need not be known."""
    found = read(samples=[sample(at, rf=1.9) for at in range(5)])
    assert found.number == 1.9
    assert found.limit == pytest.approx(1.875)
    assert found.trouble
    assert not read(samples=[sample(at, rf=1.8) for at in range(5)]).trouble
    assert read().limit == 1.5


def test_split_queries_do_not_count_for_replication() -> None:
    """They are delivered everywhere wherever the others are: only the others' factor counts."""
    found = read(samples=[sample(at, rf=4.0) for at in range(5)], split_queries=3)
    assert (found.number, found.trouble) == (1.8, False)


def test_nothing_measured_is_nothing_known() -> None:
    assert read(samples=[]).number is None
