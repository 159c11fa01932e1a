"""Endpoints of a cluster's health: progress, stuck batch, driver restarts, incidents."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from ninja import Router, Schema
from pydantic import Field

from controlplane.api.common.security import caller, cluster_of
from controlplane.health.losses.decisions import decide
from controlplane.health.stuck_batches import StuckBatch
from controlplane.health.summary import Health, health_of, incident_by_id

router = Router(tags=["clusters"])


class ProgressOut(Schema):
    """The newest observation; unread in records, rate in records/s, drained_s until none is left.

    batch, position, total and version are those of the newest finished micro-batch.
    """

    observed_at: datetime
    batch: int | None
    position: str
    total: int
    version: int
    unread: int | None
    rate: float | None
    drained_s: float | None
    phase: str


class FailingBatchOut(Schema):
    """A batch that fails repeatedly; no record after it is read.

    failures: attempts in a row; cause: how the last one ended; records: how many the batch reads;
    skip_requested: whether an admin has requested to skip it.
    """

    batch: int
    failures: int
    cause: str
    records: int
    skip_requested: bool


class FullDiskOut(Schema):
    """A directory of Weir's on a disk that is full, and the bytes that are free there."""

    path: str
    free: int


class RestartOut(Schema):
    """An unexpected end of the driver; exit_code is negative for a signal."""

    at: datetime
    cause: str
    detail: str
    exit_code: int | None
    batch: int | None
    unread: int | None
    uptime_s: float


class IncidentOut(Schema):
    """A detected loss: what is gone, what Weir did, and the choices where somebody must decide."""

    id: int
    at: datetime
    kind: str
    state: str
    lost: list[str]
    done: list[str]
    facts: dict[str, Any]
    choices: list[str]
    decision: str
    decided_by: str
    decided_at: datetime | None


class DecisionIn(Schema):
    """What is chosen about an incident, one of its choices; the reason is kept in the audit log."""

    choice: str = Field(max_length=30)
    reason: str = Field("", max_length=2000)


class HealthOut(Schema):
    """The health of a cluster; restarts and incidents newest first, undecided incidents first."""

    state: str
    state_detail: str
    progress: ProgressOut | None
    stuck_batch: FailingBatchOut | None
    restarts_last_hour: int
    restarts: list[RestartOut]
    incidents: list[IncidentOut]
    full_disks: list[FullDiskOut]


@router.get("/{slug}/health", response=HealthOut)
def get_health(request: HttpRequest, slug: str) -> Any:
    """Return progress, the stuck batch, restarts with their causes, and incidents."""
    caller(request)
    return _health(health_of(cluster_of(request), timezone.now()))


@router.get("/{slug}/incidents/{int:pk}", response=IncidentOut)
def get_incident(request: HttpRequest, slug: str, pk: int) -> Any:
    """Return one incident."""
    caller(request)
    return incident_by_id(cluster_of(request), pk)


@router.post("/{slug}/incidents/{int:pk}/decide", response=IncidentOut)
def decide_incident(request: HttpRequest, slug: str, pk: int, body: DecisionIn) -> Any:
    """Apply one of an incident's choices. Requires the role admin."""
    actor = caller(request)
    return decide(actor, incident_by_id(cluster_of(request), pk), body.choice, body.reason)


def _health(health: Health) -> dict[str, Any]:
    return {
        "state": health.cluster.state,
        "state_detail": health.cluster.state_detail,
        "progress": health.progress,
        "stuck_batch": _stuck(health.stuck),
        "restarts_last_hour": health.last_hour,
        "restarts": health.restarts,
        "incidents": health.incidents,
        "full_disks": health.disks,
    }


def _stuck(stuck_batch: StuckBatch | None) -> dict[str, Any] | None:
    if stuck_batch is None:
        return None
    return {
        "batch": stuck_batch.batch,
        "failures": stuck_batch.attempt.failures,
        "cause": stuck_batch.cause,
        "records": stuck_batch.attempt.records,
        "skip_requested": stuck_batch.skipped is not None,
    }
