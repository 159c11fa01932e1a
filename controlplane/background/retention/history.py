"""Retention of what people and Weir did: proposals, snapshots, experiments, restarts, audit log."""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from controlplane.access import audit, audit_chain
from controlplane.access.roles import Automatic
from controlplane.access.routine_actions import LOGGED, PERIOD
from controlplane.models import (
    ArmedLadder,
    AuditEntry,
    Comparison,
    DisarmedLadder,
    DriverRestart,
    Execution,
    Incident,
    LabRun,
    LedgerEntry,
    Proposal,
    RoutineActions,
    RoutingVersion,
    SkippedBatch,
    Snapshot,
)
from controlplane.pagination.chunks import CHUNK
from controlplane.plans.proposal_states import ENDED

WEIR = Automatic("weir")
# Rows of one kind that one pass deletes at most, so that no pass takes long.
MOST = 20 * CHUNK
# A snapshot is stored before the proposal that refers to it.
_SNAPSHOT_PATIENCE = timedelta(hours=1)


def prune_proposals(now: datetime) -> int:
    """Delete ended proposals that were never executed; return how many.

    Executed ones stay, with their steps and their entry in the ledger.
    """
    old = Proposal.objects.filter(
        ~Exists(Execution.objects.filter(proposal=OuterRef("pk"))),
        ~Exists(LedgerEntry.objects.filter(proposal=OuterRef("pk"))),
        ~Exists(RoutingVersion.objects.filter(proposal=OuterRef("pk"))),
        state__in=ENDED,
        requested_at__lt=now - timedelta(days=settings.PROPOSAL_DAYS),
    )
    return _delete(old)


def prune_comparisons(now: datetime) -> int:
    """Delete comparisons whose candidates are all deleted; return how many."""
    old = Comparison.objects.filter(
        ~Exists(Proposal.objects.filter(comparison=OuterRef("pk"))),
        requested_at__lt=now - timedelta(days=settings.PROPOSAL_DAYS),
    )
    return _delete(old)


def prune_snapshots(now: datetime) -> int:
    """Delete snapshots that no proposal, comparison or ladder refers to; return how many."""
    unused = Snapshot.objects.filter(
        ~Exists(Proposal.objects.filter(snapshot_row=OuterRef("pk"))),
        ~Exists(Comparison.objects.filter(snapshot_row=OuterRef("pk"))),
        ~Exists(ArmedLadder.objects.filter(snapshot=OuterRef("pk"))),
        ~Exists(DisarmedLadder.objects.filter(snapshot=OuterRef("pk"))),
        taken_at__lt=now - _SNAPSHOT_PATIENCE,
    )
    return _delete(unused)


def prune_lab_runs(now: datetime) -> int:
    """Delete ended runs of the Lab; return how many."""
    before = now - timedelta(days=settings.LAB_RUN_DAYS)
    ended = LabRun.objects.exclude(state__in=(LabRun.State.QUEUED, LabRun.State.RUNNING))
    return _delete(ended.filter(requested_at__lt=before))


def prune_health(now: datetime) -> int:
    """Delete restarts, resolved incidents and skipped batches; return how many."""
    before = now - timedelta(days=settings.HEALTH_DAYS)
    return (
        _delete(DriverRestart.objects.filter(at__lt=before))
        + _delete(Incident.objects.filter(at__lt=before, state=Incident.State.RESOLVED))
        + _delete(SkippedBatch.objects.filter(done_at__lt=before))
    )


def log_routine_actions(now: datetime) -> int:
    """Write one audit entry per actor, action and period that is over; return how many."""
    written = 0
    for pk in RoutineActions.objects.filter(period__lte=now - PERIOD).values_list("pk", flat=True):
        with transaction.atomic():
            row = RoutineActions.objects.select_for_update().select_related("cluster").get(pk=pk)
            row.delete()
            if row.count <= LOGGED:
                # Each has an entry of its own.
                continue
            after = {
                "count": row.count - LOGGED,
                "first": row.first_at.isoformat(timespec="seconds"),
                "last": row.last_at.isoformat(timespec="seconds"),
                "last_object": row.last_object,
                "token": row.token,
            }
            audit.record(
                Automatic(row.actor, row.address), row.action, f"{row.count - LOGGED} more",
                cluster=row.cluster, after=after,
            )  # fmt: skip
            written += 1
    return written


def prune_audit(now: datetime) -> int:
    """Delete the oldest audit entries, so that the chain stays verifiable; return how many.

    What the log lost is an entry itself, so a pass waits until a tenth of the time is over.
    """
    if not settings.AUDIT_DAYS:
        return 0
    kept = timedelta(days=settings.AUDIT_DAYS)
    oldest = AuditEntry.objects.order_by("at").values_list("at", flat=True).first()
    if oldest is None or oldest >= now - kept * 1.1:
        return 0
    with transaction.atomic():
        return audit_chain.prune(WEIR, now - kept, MOST)


def _delete(rows: QuerySet[Any]) -> int:
    """Delete rows, a chunk per statement, at most `MOST`; return how many."""
    deleted = 0
    manager = rows.model._default_manager  # noqa: SLF001 - Django's public name
    while deleted < MOST and (pks := list(rows.order_by().values_list("pk", flat=True)[:CHUNK])):
        manager.filter(pk__in=pks).delete()
        deleted += len(pks)
    return deleted
