"""The steps of the tour follow what has happened on the cluster."""

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import Actor
from controlplane.clusters import tour
from controlplane.clusters.tour import PageKind
from controlplane.errors import Conflict
from controlplane.models import Alert, Cluster, Execution, Proposal, Scenario
from tests.support import cluster as made

pytestmark = pytest.mark.django_db


@pytest.fixture
def by(redis_url: str) -> Actor:
    """An operator."""
    return made.actor()


@pytest.fixture
def cluster(by: Actor) -> Cluster:
    """A demo cluster."""
    result = made.small_cluster(by)
    result.demo = "sf"
    result.save(update_fields=["demo"])
    return result


def step_of(by: Actor, cluster: Cluster) -> str:
    """Return the code of the present step, "" at the end."""
    running = tour.tour_of(by, cluster)
    assert running is not None
    return "" if running.current is None else str(running.current.code)


def test_each_step_is_done_by_what_happened(by: Actor, cluster: Cluster) -> None:
    assert tour.is_offered(by, cluster)
    tour.start_tour(by, cluster)
    assert not tour.is_offered(by, cluster)
    now = timezone.now()
    assert step_of(by, cluster) == "disturb"
    Scenario.objects.create(
        cluster=cluster, kind="rush_hour", started_at=now, ends_at=now + timedelta(minutes=5),
        started_by=by.name,
    )  # fmt: skip
    assert step_of(by, cluster) == "alert"
    Alert.objects.create(
        cluster=cluster, subject="node_load", since=now, fired_at=now, evaluated_at=now,
        state="firing",
    )  # fmt: skip
    assert step_of(by, cluster) == "explain"
    tour.note_page(by, cluster, PageKind.EXPLANATION)
    assert step_of(by, cluster) == "read"
    proposal = Proposal.objects.create(
        cluster=cluster, planner="placement", algorithm="mms", requested_by=by.name,
        requested_at=now, state="ready",
    )  # fmt: skip
    running = tour.tour_of(by, cluster)
    assert running is not None
    assert running.current is not None
    assert running.current.proposal == proposal.pk
    tour.note_page(by, cluster, PageKind.PROPOSAL)
    assert step_of(by, cluster) == "approve"
    audit.record(by, "proposal.approve", str(proposal), cluster=cluster)
    row = Execution.objects.create(proposal=proposal, cluster=cluster, started_at=now)
    assert step_of(by, cluster) == "watch"
    Execution.objects.filter(pk=row.pk).update(finished_at=now)
    Proposal.objects.filter(pk=proposal.pk).update(state="done")
    assert step_of(by, cluster) == "proof"
    tour.note_page(by, cluster, PageKind.PROOF)
    assert step_of(by, cluster) == ""


def test_earlier_events_do_not_count_and_a_new_start_begins_again(
    by: Actor, cluster: Cluster
) -> None:
    now = timezone.now()
    Scenario.objects.create(
        cluster=cluster, kind="rush_hour", started_at=now - timedelta(hours=1),
        ends_at=now + timedelta(minutes=5), started_by=by.name,
    )  # fmt: skip
    tour.start_tour(by, cluster)
    assert step_of(by, cluster) == "disturb"
    tour.note_page(by, cluster, PageKind.EXPLANATION)
    assert step_of(by, cluster) == "read", "a later step includes the earlier ones"
    tour.dismiss_tour(by, cluster)
    assert tour.tour_of(by, cluster) is None
    assert not tour.is_offered(by, cluster)
    tour.start_tour(by, cluster)
    assert step_of(by, cluster) == "disturb"


def test_a_tour_is_of_demo_clusters(by: Actor, cluster: Cluster) -> None:
    tour.dismiss_tour(by, cluster)
    assert not tour.is_offered(by, cluster)
    cluster.demo = ""
    with pytest.raises(Conflict) as refusal:
        tour.start_tour(by, cluster)
    assert refusal.value.code == "not_a_demo"
    assert tour.tour_of(by, cluster) is None
