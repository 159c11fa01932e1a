"""Endpoints of a cluster's health: progress, stuck batch, driver restarts, incidents."""

from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from ninja import Router, Schema
from pydantic import Field

from controlplane.access.roles import ADMIN
from controlplane.api.common.schemas import RequestBody, below, columns_of, dataclass_schema, shown
from controlplane.api.common.security import caller, cluster_of, open_to
from controlplane.health import stuck_batches
from controlplane.health.disks import FullDisk
from controlplane.health.losses.repair import decide
from controlplane.health.stuck_batches import losses_of, stuck_batch
from controlplane.health.summary import health_of, incident_by_id
from controlplane.models import ClusterHealth, DriverRestart, Incident, SkippedBatch
from controlplane.wire.foreign.entries import SkippedEntries

router = Router(tags=["clusters"])


class ClusterProgressOut(
    columns_of(  # type: ignore[misc]
        ClusterHealth, "observed_at batch position total version unread rate drained_s phase"
    )
):
    """The newest observation; unread in records, rate in records/s, drained_s until none is left.

    batch, position, total and version are those of the newest finished micro-batch.
    """


class FailingBatchOut(Schema):
    """A batch that fails repeatedly; no record after it is read.

    failures: attempts in a row; cause: how the last one ended; records: how many the batch reads;
    skip_requested: whether an admin has requested to skip it.
    """

    batch: int
    failures: int = below("attempt.failures")
    cause: str
    records: int = below("attempt.records")
    skip_requested: bool

    resolve_skip_requested = staticmethod(lambda batch: batch.skipped is not None)


class RestartOut(columns_of(DriverRestart, "at cause detail exit_code batch unread uptime_s")):  # type: ignore[misc]
    """An unexpected end of the driver; exit_code is negative for a signal."""


class IncidentOut(
    columns_of(  # type: ignore[misc]
        Incident,
        "id at kind state decision decided_by decided_at",
        lost=list[str],
        done=list[str],
        choices=list[str],
        facts=dict[str, Any],
    )
):
    """A detected loss: what is gone, what Weir did, and the choices where somebody must decide."""

    model_config = shown("id at kind state lost")


class DecisionIn(RequestBody):
    """What is chosen about an incident, one of its choices; the reason is kept in the audit log."""

    choice: str = Field(max_length=30)
    reason: str = Field("", max_length=2000)


class HealthOut(Schema):
    """The health of a cluster; restarts and incidents newest first, undecided incidents first."""

    state: str = below("cluster.state")
    state_detail: str = below("cluster.state_detail")
    progress: ClusterProgressOut | None
    stuck_batch: FailingBatchOut | None = below("stuck")
    restarts_last_hour: int = below("last_hour")
    restarts: list[RestartOut]
    incidents: list[IncidentOut]
    full_disks: list[FullDisk] = below("disks")
    skipped: list[dataclass_schema(SkippedEntries)]  # type: ignore[valid-type]


@router.get("/{slug}/health", response=HealthOut)
def get_health(request: HttpRequest, slug: str) -> Any:
    """Return progress, the stuck batch, restarts with causes, incidents and skipped entries."""
    return health_of(cluster_of(request), timezone.now())


@router.get("/{slug}/incidents/{int:pk}", response=IncidentOut)
def get_incident(request: HttpRequest, slug: str, pk: int) -> Any:
    """Return one incident."""
    return incident_by_id(cluster_of(request), pk)


@router.post("/{slug}/incidents/{int:pk}/decide", response=IncidentOut, auth=open_to(ADMIN))
def decide_incident(request: HttpRequest, slug: str, pk: int, body: DecisionIn) -> Any:
    """Apply one of an incident's choices. Requires the role admin."""
    actor = caller(request)
    return decide(actor, incident_by_id(cluster_of(request), pk), body.choice, body.reason)


_SHOWN = 20


class StuckOut(Schema):
    """A batch that has failed `failures` times; `records` by stream would be lost, `total` in all.

    It reads the log behind position start up to stop. transfers are tasks that move in it as
    [query id, task, from node, to node]; they keep their state. cause: how the last attempt ended.
    """

    batch: int
    failures: int
    start: str
    stop: str
    records: dict[str, int]
    total: int
    transfers: list[list[int]]
    cause: str
    skip_requested: bool


class SkippedOut(
    columns_of(  # type: ignore[misc]
        SkippedBatch,
        "batch start stop total failures cause reason by asked_at done_at",
        records=dict[str, int],
        transfers=list[list[int]],
    )
):
    """A skipped batch with its losses; done_at is null until it is skipped."""


class StuckBatchOut(Schema):
    """The stuck batch, null for none, and batches skipped before."""

    stuck: StuckOut | None
    skipped: list[SkippedOut]


class SkipIn(RequestBody):
    """The batch to skip, as GET names it, and the reason for the audit log."""

    batch: int = Field(ge=0)
    reason: str = Field(min_length=1, max_length=500)


@router.get("/{slug}/stuck-batch", response=StuckBatchOut)
def get_stuck_batch(request: HttpRequest, slug: str) -> Any:
    """Return the stuck batch with the losses of skipping it."""
    cluster = cluster_of(request)
    skipped, batch = list(cluster.skipped_batches.all()[:_SHOWN]), stuck_batch(cluster)
    if batch is None:
        return {"stuck": None, "skipped": skipped}
    losses = losses_of(cluster, batch.attempt)
    moved = [[move.query, move.task, move.source, move.target] for move in losses.transfers]
    stuck = {
        **{name: getattr(batch.attempt, name) for name in ("batch", "failures", "start")},
        "stop": batch.attempt.end,
        "records": losses.records,
        "total": losses.total,
        "transfers": moved,
        "cause": batch.cause,
        "skip_requested": batch.skipped is not None,
    }
    return {"stuck": stuck, "skipped": skipped}


@router.post("/{slug}/stuck-batch/skip", response=SkippedOut, auth=open_to(ADMIN))
def skip_batch(request: HttpRequest, slug: str, body: SkipIn) -> SkippedBatch:
    """Skip a batch that has failed three times: its records are lost. Needs the role admin."""
    return stuck_batches.skip(caller(request), cluster_of(request), body.batch, body.reason)
