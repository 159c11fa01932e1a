"""Retention of what people and Weir did: queries, proposals, experiments, restarts, audit log."""

from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Exists, OuterRef

from controlplane.access import audit, audit_chain, failed_attempts
from controlplane.access.audit import LOGGED, PERIOD
from controlplane.access.logins import login_sessions
from controlplane.access.roles import Automatic
from controlplane.models import (
    ArmedLadder,
    AuditEntry,
    BulkAction,
    Cluster,
    Comparison,
    DisarmedLadder,
    DriverRestart,
    Execution,
    Incident,
    LabRun,
    LedgerEntry,
    Proposal,
    Query,
    RoutineActions,
    RoutingVersion,
    SkippedBatch,
    Snapshot,
)
from controlplane.pagination.chunks import CHUNK, delete_in_chunks
from controlplane.plans.proposal_states import ENDED

WEIR = Automatic("weir")
# Rows of one kind that one pass deletes at most, so that no pass takes long.
MOST = 20 * CHUNK
# Versions kept per cluster, besides those of executions.
KEPT_VERSIONS = 10_000
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
    return delete_in_chunks(old, MOST)


def prune_comparisons(now: datetime) -> int:
    """Delete comparisons whose candidates are all deleted; return how many."""
    old = Comparison.objects.filter(
        ~Exists(Proposal.objects.filter(comparison=OuterRef("pk"))),
        requested_at__lt=now - timedelta(days=settings.PROPOSAL_DAYS),
    )
    return delete_in_chunks(old, MOST)


def prune_snapshots(now: datetime) -> int:
    """Delete snapshots that no proposal, comparison or ladder refers to; return how many."""
    unused = Snapshot.objects.filter(
        ~Exists(Proposal.objects.filter(snapshot_row=OuterRef("pk"))),
        ~Exists(Comparison.objects.filter(snapshot_row=OuterRef("pk"))),
        ~Exists(ArmedLadder.objects.filter(snapshot=OuterRef("pk"))),
        ~Exists(DisarmedLadder.objects.filter(snapshot=OuterRef("pk"))),
        taken_at__lt=now - _SNAPSHOT_PATIENCE,
    )
    return delete_in_chunks(unused, MOST)


def prune_lab_runs(now: datetime) -> int:
    """Delete ended runs of the Lab; return how many."""
    before = now - timedelta(days=settings.LAB_RUN_DAYS)
    ended = LabRun.objects.exclude(state__in=(LabRun.State.QUEUED, LabRun.State.RUNNING))
    return delete_in_chunks(ended.filter(requested_at__lt=before), MOST)


def prune_health(now: datetime) -> int:
    """Delete restarts, resolved incidents and skipped batches; return how many."""
    before = now - timedelta(days=settings.HEALTH_DAYS)
    return sum(
        delete_in_chunks(old, MOST)
        for old in (
            DriverRestart.objects.filter(at__lt=before),
            Incident.objects.filter(at__lt=before, state=Incident.State.RESOLVED),
            SkippedBatch.objects.filter(done_at__lt=before),
        )
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


def prune_queries(now: datetime) -> int:
    """Delete the queries that ended WEIR_QUERY_RETENTION_HOURS ago; return how many.

    Queries with a longer retention of results are kept as long.
    """
    least = timedelta(hours=settings.QUERY_RETENTION_HOURS)
    over = Query.objects.filter(state__in=(Query.State.ENDED, Query.State.FAILED))
    old = over.filter(ended_at__lt=now - least).order_by()
    deleted = 0
    for seconds in list(old.values_list("retention_s", flat=True).distinct()):
        before = now - max(least, timedelta(seconds=seconds))
        expired = old.filter(retention_s=seconds, ended_at__lt=before)
        deleted += delete_in_chunks(expired)
    return deleted


def prune_bulk_actions(now: datetime) -> int:
    """Delete bulk actions that finished WEIR_QUERY_RETENTION_HOURS ago; return how many."""
    before = now - timedelta(hours=settings.QUERY_RETENTION_HOURS)
    return BulkAction.objects.filter(finished_at__lt=before).order_by().delete()[0]


def prune_routing() -> int:
    """Delete old published versions, except those of proposals; return how many."""
    deleted = 0
    for cluster in Cluster.objects.all():
        old = RoutingVersion.objects.filter(
            cluster=cluster,
            version__lte=cluster.routing_version - KEPT_VERSIONS,
            proposal=None,
            published_at__isnull=False,
        )
        deleted += old.order_by().delete()[0]
    return deleted


def prune_sessions(now: datetime) -> int:
    """Delete expired sessions, and counts of failed attempts; return how many."""
    deleted = failed_attempts.housekeep(now, WEIR) + login_sessions.housekeep(now)
    return deleted + Session.objects.filter(expire_date__lt=now).delete()[0]
