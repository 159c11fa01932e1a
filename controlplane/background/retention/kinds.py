"""The declaration of everything that grows with time, with what limits it.

Housekeeping, the page System, API, command line and docs/operations/limits.md are derived from it.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.conf import settings

from controlplane import watch
from controlplane.access import idempotency
from controlplane.access.logins import second_factor
from controlplane.alerts import listing as alerts
from controlplane.background.retention import history
from controlplane.clusters import scenarios
from controlplane.integrations import attached_jobs, deliveries
from controlplane.planners.admission import cluster_forecast
from controlplane.planners.shedding import history as shedding_history
from controlplane.policies.exclusions import prune_exclusions
from controlplane.results import edge_periods, retention
from controlplane.telemetry import series

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RetentionKind:
    """Rows that grow: name, models, what is kept for how long, and the function that deletes.

    `bound` may name the value of a setting of Django as {}; `setting` is the setting, `variable`
    its environment variable, "" for a fixed bound. `always`: what is never deleted. `tables`: of
    results, which are no models.
    `prune` deletes what is kept no longer at a moment, in batches.
    """

    name: str
    models: tuple[str, ...]
    bound: str
    prune: Callable[[datetime], Any]
    setting: str = ""
    variable: str = ""
    always: str = ""
    tables: tuple[str, ...] = ()

    @property
    def kept(self) -> str:
        """Return what is kept, with the value of the setting."""
        return self.bound.format(f"{getattr(settings, self.setting):,}" if self.setting else "")


KINDS: Final = (
    RetentionKind("measured series", ("SeriesPeriod",),
        "every batch for an hour, 10 s for a day, 60 s and 5 min for 30 days; arrivals of streams "
        "in 10 s for 2 hours, 5 min for 2 days, 1 h for 90 days; key skew in 10 s for a day, "
        "5 min for 3 days, 1 h for 30 days", series.prune),
    RetentionKind("forecasts of streams", ("StoredForecast",),
        "one per cluster, a day after its last computation", cluster_forecast.prune),
    RetentionKind("shedding episodes", ("SheddingInterval",), "90 days",
        shedding_history.prune_intervals),
    RetentionKind("counts of edges", ("EdgePeriod",),
        "twice the longest retention of a query, and a number of rows per cluster",
        edge_periods.prune),
    RetentionKind("ended queries", ("Query", "Task", "QueryStream", "Sink", "RefusedResult"),
        "{} hours after their end, or the retention of their results", history.prune_queries,
        "QUERY_RETENTION_HOURS", "WEIR_QUERY_RETENTION_HOURS", "live queries"),
    RetentionKind("windows of results", (), "the retention of each query",
        retention.prune_windows, tables=("results_window",)),
    RetentionKind("index of files", (), "while their stream reads files",
        lambda now: retention.prune_files(), tables=("results_file",)),
    RetentionKind("routing versions", ("RoutingVersion",), "the newest 10,000 of each cluster",
        lambda now: history.prune_routing(), always="those of proposals, and unpublished ones"),
    RetentionKind("sessions", ("LoginSession", "FailedAttempts"), "30 days after their end",
        history.prune_sessions, always="open sessions"),
    RetentionKind("second factors", ("SecondFactor", "RecoveryCode"),
        "ten minutes without the first code; codes until they are used",
        second_factor.housekeep, always="confirmed factors, until they are removed"),
    RetentionKind("attached jobs", ("AttachedJob", "AttachedQuery", "AttachedProgress"),
        "progress for a day, jobs for 7 days after their last report",
        attached_jobs.prune),
    RetentionKind("answers to repeated requests", ("KeptAnswer",),
        f"24 hours; {idempotency.MAX_ANSWERS:,} and 16 MiB of each user", idempotency.prune),
    RetentionKind("messages to webhooks", ("Delivery",), "7 days", deliveries.prune,
        always="waiting messages"),
    RetentionKind("exclusions", ("Exclusion",), "until they expire", prune_exclusions),
    RetentionKind("decisions of monitors", ("Decision",), "30 days", watch.prune),
    RetentionKind("alerts", ("Alert",), "90 days after they are cleared", alerts.prune,
        always="open alerts"),
    RetentionKind("scenarios", ("Scenario",), "90 days after they ended", scenarios.prune,
        always="those in effect"),
    RetentionKind("proposals", ("Proposal", "ProposalComment"), "{} days after the request",
        history.prune_proposals,
        "PROPOSAL_DAYS", "WEIR_PROPOSAL_DAYS",
        "executed proposals with their steps and the ledger, and open ones"),
    RetentionKind("comparisons", ("Comparison",), "as long as one of its proposals",
        history.prune_comparisons, "PROPOSAL_DAYS", "WEIR_PROPOSAL_DAYS"),
    RetentionKind("snapshots", ("Snapshot",),
        "as long as a proposal, comparison or shedding plan refers to it",
        history.prune_snapshots),
    RetentionKind("runs of the Lab", ("LabRun",), "{} days", history.prune_lab_runs,
        "LAB_RUN_DAYS", "WEIR_LAB_RUN_DAYS", "queued and running ones"),
    RetentionKind("restarts and incidents", ("DriverRestart", "Incident", "SkippedBatch"),
        "{} days", history.prune_health, "HEALTH_DAYS", "WEIR_HEALTH_DAYS",
        "incidents that wait for a decision"),
    RetentionKind("bulk actions on queries", ("BulkAction",), "{} hours after their end",
        history.prune_bulk_actions, "QUERY_RETENTION_HOURS", "WEIR_QUERY_RETENTION_HOURS",
        "running ones"),
    RetentionKind("routine actions", ("RoutineActions",),
        "an hour; then one audit entry per equal actions and hour", history.log_routine_actions),
    RetentionKind("audit log", ("AuditEntry",), "{} days, 0 for ever", history.prune_audit,
        "AUDIT_DAYS", "WEIR_AUDIT_DAYS", "the hash of the last deleted entry"),
)  # fmt: skip


def prune_all(now: datetime) -> list[str]:
    """Delete what is kept no longer; return the names of the kinds that failed.

    An error in one kind does not affect the others.
    """
    failed = []
    for kind in KINDS:
        try:
            kind.prune(now)
        except Exception:
            # The next pass retries.
            logger.exception("Housekeeping of %s failed", kind.name)
            failed.append(kind.name)
    return failed


@dataclass(frozen=True, slots=True)
class OtherGrowth:
    """Something outside the database that grows, where, and what limits it."""

    name: str
    place: str
    bound: str


OTHERS: Final = (
    OtherGrowth("records of streams", "Redis log:*, index",
        "read records are trimmed; unread ones up to the cluster's limit of MiB"),
    OtherGrowth("parts of split queries", "Redis parts:*", "the last few batches"),
    OtherGrowth("telemetry and progress", "Redis telemetry, progress, measures:*, keys:*",
        "a number of entries per stream; samples of keys for ten minutes"),
    OtherGrowth("routing", "Redis route:*", "the deltas since the last snapshots"),
    OtherGrowth("dead letters", "Redis dead:*", "a number and 16 MiB per cluster"),
    OtherGrowth("state in transfer", "Redis transfer:*, transfers*", "until the next batch"),
    OtherGrowth("faults of nodes", "Redis faults", "one per node of a scenario; they expire"),
    OtherGrowth("sequences of producers", "Redis producer:*", "expire without records"),
    OtherGrowth("tasks", "Redis weir:celery:*",
        "beat sends none to a queue of 500; workers discard expired ones"),
    OtherGrowth("channels", "Redis weir:channels*", "500 messages each, for 30 s"),
    OtherGrowth("heartbeats", "Redis weir:beats", "processes silent for a day are deleted"),
    OtherGrowth("skipped entries", "Redis skipped", "a count and the last reason per place"),
    OtherGrowth("Redis", "memory", "WEIR_REDIS_MEMORY_MB; a full Redis refuses writes"),
    OtherGrowth("logs", "<data>/logs", "20 MB each, and one older file of each"),
    OtherGrowth("append-only file", "<data>/redis", "Redis rewrites it when it has doubled"),
    OtherGrowth("checkpoints", "<data>/checkpoints", "Spark keeps the last batches"),
    OtherGrowth("request metrics", "<data>/request-metrics", "a file per web process and type"),
    OtherGrowth("caches of processes", "memory",
        "each has a number of entries; workers restart beyond 1 GB"),
)  # fmt: skip
