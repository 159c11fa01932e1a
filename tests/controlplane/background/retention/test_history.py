"""Retention of history: what is old goes, what others refer to stays."""

from datetime import timedelta

import pytest
from django.apps import apps
from django.utils import timezone

from controlplane.access import audit, audit_chain
from controlplane.access.audit import LOGGED, PERIOD
from controlplane.access.roles import Actor
from controlplane.background.retention import history
from controlplane.background.retention.kinds import KINDS, prune_all
from controlplane.models import (
    AuditEntry,
    Cluster,
    Comparison,
    Execution,
    LabRun,
    Proposal,
    RoutineActions,
    Snapshot,
)
from tests.support import cluster as made

pytestmark = pytest.mark.django_db
NOW = timezone.now()
OLD = NOW - timedelta(days=400)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(slug="sf", name="SF")


def _snapshot(digest: str) -> Snapshot:
    return Snapshot.objects.create(digest=digest, data=b"", size=0, taken_at=OLD)


def _proposal(cluster: Cluster, snapshot: Snapshot, state: str = "rejected", **more: object) -> int:
    row = Proposal.objects.create(
        cluster=cluster, planner="placement", state=state, snapshot_row=snapshot,
        **{"requested_at": OLD, **more},
    )  # fmt: skip
    return int(row.pk)


def test_executed_open_and_recent_proposals_stay_with_their_snapshots(cluster: Cluster) -> None:
    for name in ("old", "executed", "new"):
        _snapshot(name)
    comparison = Comparison.objects.create(cluster=cluster, requested_at=OLD, requested_by="a")
    old = _proposal(cluster, Snapshot(digest="old"), comparison=comparison)
    executed = _proposal(cluster, Snapshot(digest="executed"), "done")
    Execution.objects.create(proposal_id=executed, cluster=cluster, started_at=OLD)
    ready = _proposal(cluster, Snapshot(digest="executed"), "ready")
    new = _proposal(cluster, Snapshot(digest="new"), requested_at=NOW)
    assert prune_all(NOW) == []
    assert set(Proposal.objects.values_list("pk", flat=True)) == {executed, ready, new}
    assert old not in {executed, ready, new}
    assert set(Snapshot.objects.values_list("digest", flat=True)) == {"executed", "new"}
    assert not Comparison.objects.exists()


def test_ended_runs_of_the_lab_are_deleted(cluster: Cluster) -> None:
    for state in ("done", "running"):
        LabRun.objects.create(planner="placement", experiment="x", state=state, requested_at=OLD)
    assert history.prune_lab_runs(NOW) == 1
    assert LabRun.objects.get().state == "running"


def test_a_token_s_routine_actions_become_one_entry_per_hour(cluster: Cluster) -> None:
    person = made.actor("operator", "ann")
    program = Actor(person.user, "192.0.2.1", token=7)
    for number in range(LOGGED + 5):
        for actor in (program, person):
            audit.record(actor, "query.submit", f"q{number}", cluster=cluster)
        # Decisions have an entry each, whoever takes them.
        audit.record(program, "proposal.approve", f"p{number}", cluster=cluster)
    entries = AuditEntry.objects.filter(action="query.submit")
    assert entries.count() == LOGGED + (LOGGED + 5)
    assert AuditEntry.objects.filter(action="proposal.approve").count() == LOGGED + 5
    assert history.log_routine_actions(timezone.now()) == 0
    assert history.log_routine_actions(timezone.now() + PERIOD) == 1
    summary = entries.order_by("-pk")[0]
    assert (summary.actor, summary.address, summary.cluster) == ("ann", "192.0.2.1", cluster)
    assert (summary.after["count"], summary.after["last_object"]) == (5, f"q{LOGGED + 4}")
    assert not RoutineActions.objects.exists()


def test_a_pruned_audit_log_can_be_verified() -> None:
    ann = made.actor("admin", "ann")
    for number in range(3):
        audit.record(ann, "x.y", f"{number}")
    history.prune_audit(timezone.now())
    assert AuditEntry.objects.filter(action="x.y").count() == 3
    later = timezone.now() + timedelta(days=500)
    assert history.prune_audit(later) >= 3
    assert not AuditEntry.objects.filter(action="x.y").exists()
    fault = audit_chain.verify().fault
    # Tests may create tables without migrations, and so without triggers.
    assert fault is None or fault.code == "triggers"


def test_every_kind_of_row_is_declared_or_bounded_by_what_people_create() -> None:
    """A new model needs a retention, or its place in the list of what people configure."""
    configured = {
        "ApiToken", "Grant", "ExternalIdentity", "InitialPassword", "Cluster", "Node", "Stream",
        "Policy", "Blackout", "Webhook", "ArmedLadder", "DisarmedLadder", "ClusterHealth", "Drop",
        "Redirection", "AuditChain", "DeletedCluster", "ReachableMeasures", "Visit",
        # At most 50 of a user per list.
        "SavedView", "TourProgress",
        # One for each file of the directory that clusters follow.
        "FollowedFile",
        # Deleted with the execution's proposal, which stays.
        "Execution", "Step", "LedgerEntry",
    }  # fmt: skip
    declared = {name for kind in KINDS for name in kind.models}
    own = {model.__name__ for model in apps.get_app_config("controlplane").get_models()}
    assert own - declared - configured == set()
    assert declared - own == set()
