"""What the database itself holds."""

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import Actor
from controlplane.models import AuditEntry, Cluster, Node, Proposal, Query
from tests.support.texts import SUMMARY_TEXT

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def test_the_audit_log_is_append_only(operator: Actor, sf: Cluster) -> None:
    """Neither a row nor a set of rows is changed or deleted."""
    audit.record(operator, "test", "x", cluster=sf)
    entry = AuditEntry.objects.latest("id")
    for change in (entry.save, entry.delete, AuditEntry.objects.all().delete):
        with pytest.raises(TypeError):
            change()
    with pytest.raises(TypeError):
        AuditEntry.objects.update(actor="someone else")


def test_one_live_query_per_name(sf: Cluster) -> None:
    """Whatever the services check, the database holds it."""
    row = {"cluster": sf, "name": "q", "submitted_at": timezone.now()}
    row |= {"text": SUMMARY_TEXT, "window_s": 60.0}
    Query.objects.create(**row, state="ended")
    Query.objects.create(**row)
    with pytest.raises(IntegrityError), transaction.atomic():
        Query.objects.create(**row, state="running")


@pytest.mark.parametrize("second", ["executing", "paused", "rolling back"])
def test_one_execution_per_cluster(sf: Cluster, second: str) -> None:
    """Two workers cannot both win."""
    sealed = {"cluster": sf, "requested_at": timezone.now(), "seal": "s", "approved_by": "a"}
    Proposal.objects.create(**sealed, state="executing")
    with pytest.raises(IntegrityError), transaction.atomic():
        Proposal.objects.create(**sealed, state=second)


@pytest.mark.parametrize("lacking", ["seal", "approved_by"])
def test_nothing_runs_unsealed_or_unapproved(sf: Cluster, lacking: str) -> None:
    columns = {"seal": "s", "approved_by": "a"} | {lacking: ""}
    with pytest.raises(IntegrityError), transaction.atomic():
        Proposal.objects.create(
            cluster=sf, requested_at=timezone.now(), state="executing", **columns
        )


def test_a_node_without_capacity_cannot_be(sf: Cluster) -> None:
    """Shares divide by it."""
    with pytest.raises(IntegrityError), transaction.atomic():
        Node.objects.filter(cluster=sf).update(capacity=0)
