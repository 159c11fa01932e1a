"""Endpoints of a cluster's health: progress, stuck batch, driver restarts, incidents."""

from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from ninja import Router, Schema
from pydantic import Field

from controlplane.api.common.derived import below, columns_of
from controlplane.api.common.security import caller, cluster_of, viewed_cluster
from controlplane.health.disks import FullDisk
from controlplane.health.losses.decisions import decide
from controlplane.health.stuck_batches import StuckBatch
from controlplane.health.summary import health_of, incident_by_id
from controlplane.models import ClusterHealth, DriverRestart, Incident

router = Router(tags=["clusters"])


class ProgressOut(
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

    @staticmethod
    def resolve_skip_requested(batch: StuckBatch) -> bool:
        """Return True if there is a request."""
        return batch.skipped is not None


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


class DecisionIn(Schema):
    """What is chosen about an incident, one of its choices; the reason is kept in the audit log."""

    choice: str = Field(max_length=30)
    reason: str = Field("", max_length=2000)


class HealthOut(Schema):
    """The health of a cluster; restarts and incidents newest first, undecided incidents first."""

    state: str = below("cluster.state")
    state_detail: str = below("cluster.state_detail")
    progress: ProgressOut | None
    stuck_batch: FailingBatchOut | None = below("stuck")
    restarts_last_hour: int = below("last_hour")
    restarts: list[RestartOut]
    incidents: list[IncidentOut]
    full_disks: list[FullDisk] = below("disks")


@router.get("/{slug}/health", response=HealthOut)
def get_health(request: HttpRequest, slug: str) -> Any:
    """Return progress, the stuck batch, restarts with their causes, and incidents."""
    return health_of(viewed_cluster(request), timezone.now())


@router.get("/{slug}/incidents/{int:pk}", response=IncidentOut)
def get_incident(request: HttpRequest, slug: str, pk: int) -> Any:
    """Return one incident."""
    return incident_by_id(viewed_cluster(request), pk)


@router.post("/{slug}/incidents/{int:pk}/decide", response=IncidentOut)
def decide_incident(request: HttpRequest, slug: str, pk: int, body: DecisionIn) -> Any:
    """Apply one of an incident's choices. Requires the role admin."""
    actor = caller(request)
    return decide(actor, incident_by_id(cluster_of(request), pk), body.choice, body.reason)
