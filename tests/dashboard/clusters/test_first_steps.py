"""The page of a new cluster leads to its first results, and does not call its start a fault."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster, ClusterHealth, Query
from dashboard.clusters.first_steps import first_steps
from tests.support.cluster import placed, small_cluster

pytestmark = pytest.mark.django_db


def states(cluster: Cluster) -> list[str]:
    return [step.state for step in first_steps(Cluster.objects.get(pk=cluster.pk))]


def test_each_step_closes_by_what_was_measured(operator: Actor) -> None:
    own = Cluster.objects.create(slug="own", name="Own")
    assert states(own) == ["next", "waits", "waits", "waits"]
    cluster = small_cluster(operator)
    assert states(cluster) == ["done", "next", "waits", "waits"]
    ClusterHealth.objects.create(cluster=cluster, observed_at=timezone.now(), unread=200)
    assert states(cluster) == ["done", "next", "done", "waits"]
    placed(operator, cluster, {"q": ["s0"]})
    assert states(cluster) == ["done", "done", "done", "next"]
    Query.objects.filter(cluster=cluster).update(latency_ms=900.0)
    assert states(cluster) == []


def test_the_page_has_the_next_step_and_the_clock_of_the_start(
    operator: Actor, operating: Client
) -> None:
    cluster = small_cluster(operator)
    started = timezone.now() - timedelta(seconds=42)
    rows = Cluster.objects.filter(pk=cluster.pk)
    rows.update(desired="running", state="starting", state_at=started)
    html = operating.get(f"/clusters/{cluster.slug}/").content.decode()
    assert 'data-step="query" data-state="next"' in html
    assert "starting (Spark, 0:4" in html
    assert "The cluster is stopped" not in html
