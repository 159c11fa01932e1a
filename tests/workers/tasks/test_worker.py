"""A real worker on the real broker carries out what services ask for."""

import time
from collections.abc import Callable

import pytest
from django.utils import timezone

from controlplane.background import reconcile
from controlplane.connections import redis_client
from controlplane.models import Cluster, Proposal, Query, RoutingVersion
from controlplane.proposals import requests
from controlplane.topology import placement, publishing, rows
from controlplane.wire.routing.publication import latest_version, read_table
from tests.support.cluster import actor, placed, small_cluster, submit

pytestmark = pytest.mark.django_db(transaction=True)


def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


def test_a_submitted_query_is_placed_by_the_worker(celery_worker: None) -> None:
    """From the service to the task and back, through Redis."""
    by = actor()
    cluster = small_cluster(by)
    submit(by, cluster, {"q": ["s0"]})
    until(lambda: Query.objects.filter(state="running").exists())
    until(lambda: RoutingVersion.objects.filter(published_at=None).count() == 0)


def test_a_requested_proposal_is_computed_by_the_worker(celery_worker: None) -> None:
    """Nothing of it happens in the web process."""
    by = actor()
    cluster = small_cluster(by)
    placed(by, cluster, {f"q{i}": ["s0", "s1"] for i in range(8)})
    requests.request(by, cluster, "mms", {})
    until(lambda: Proposal.objects.filter(state="ready").exists())


def test_the_beat_places_what_was_committed_while_the_broker_was_away(redis_url: str) -> None:
    """A query whose message was lost waits a few seconds, not for ever."""
    by = actor()
    cluster = small_cluster(by)
    submit(by, cluster, {"q": ["s0"]})
    reconcile.reconcile_all(timezone.now())
    assert Query.objects.get().state == "running"


def test_a_redis_that_lost_everything_gets_the_whole_table(redis_url: str) -> None:
    """A pipeline that starts then finds the table of the database."""
    by = actor()
    cluster = small_cluster(by)
    placed(by, cluster, {f"q{i}": ["s0"] for i in range(3)})
    redis_client().flushdb()
    reconcile.reconcile_all(timezone.now())
    table = read_table(redis_client(), "sf", latest_version(redis_client(), "sf") or 0)
    assert table == rows.current_table(cluster.pk)
    placed(by, cluster, {"after": ["s1"]})
    newest = Cluster.objects.get().routing_version
    assert read_table(redis_client(), "sf", newest) == rows.current_table(cluster.pk)


def test_unpublished_versions_are_published_in_order(redis_url: str) -> None:
    """A database that committed while Redis was away loses no version."""
    by = actor()
    cluster = small_cluster(by)
    placed(by, cluster, {"a": ["s0"]})
    placed(by, cluster, {"b": ["s1"]})
    version = Cluster.objects.get().routing_version
    RoutingVersion.objects.filter(version__gt=1).update(published_at=None)
    redis_client().set("weir:{sf}:route:latest", 1)
    assert publishing.publish_unpublished(cluster.pk) == version - 1
    assert latest_version(redis_client(), "sf") == version
    assert placement.place_pending(cluster.pk) == placement.PlacementPass()
