"""The page of a new cluster leads to its first results, and does not call its start a fault."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import Actor
from controlplane.alerts.statuses import cluster_statuses
from controlplane.models import Cluster, ClusterHealth, Query
from dashboard.clusters.first_steps import first_steps
from dashboard.clusters.headline import headline_of
from tests.support.cluster import placed, small_cluster

pytestmark = pytest.mark.django_db
DAY_S = 86_400


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
    assert html.lower().count("no data") == 1


@pytest.mark.parametrize(
    ("state", "stopped_s", "chip"),
    [("stopped", 42, "0:42)"), ("starting", 42, "0:42)"), ("stopped", -5, "0:00)"),
     ("stopped", 3 * DAY_S, "")],
)  # fmt: skip
def test_a_start_of_weeks_ago_is_not_the_present_one(
    operator: Actor, state: str, stopped_s: int, chip: str
) -> None:
    """The site was started anew: what the agent wrote last is later than the person's start."""
    cluster, now = small_cluster(operator), timezone.now() + timedelta(days=14)
    audit.record(operator, "cluster.start", "sf", cluster=cluster)
    state_at = now - timedelta(seconds=stopped_s)
    rows = Cluster.objects.filter(pk=cluster.pk)
    rows.update(desired="running", state=state, state_at=state_at)
    (row,) = cluster_statuses({cluster.pk}, now)
    assert headline_of(row).chip == (f"starting (Spark, {chip}" if chip else "starting")
