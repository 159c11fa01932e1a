"""A stuck batch: the losses of skipping it, and the request to skip it."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from controlplane.api.common.derived import columns_of
from controlplane.api.common.security import caller, cluster_of, viewed_cluster
from controlplane.health import skipped_batches
from controlplane.health.stuck_batches import losses_of, stuck_batch
from controlplane.models import SkippedBatch

router = Router(tags=["clusters"])
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


class SkipIn(Schema):
    """The batch to skip, as GET names it, and the reason for the audit log."""

    batch: int = Field(ge=0)
    reason: str = Field(min_length=1, max_length=500)


@router.get("/{slug}/stuck-batch", response=StuckBatchOut)
def get_stuck_batch(request: HttpRequest, slug: str) -> Any:
    """Return the stuck batch with the losses of skipping it."""
    cluster = viewed_cluster(request)
    return {"stuck": _stuck(cluster), "skipped": list(cluster.skipped_batches.all()[:_SHOWN])}


@router.post("/{slug}/stuck-batch/skip", response=SkippedOut)
def skip_batch(request: HttpRequest, slug: str, body: SkipIn) -> SkippedBatch:
    """Skip a batch that has failed three times: its records are lost. Needs the role admin."""
    return skipped_batches.skip(caller(request), cluster_of(request), body.batch, body.reason)


def _stuck(cluster: Any) -> dict[str, Any] | None:
    batch = stuck_batch(cluster)
    if batch is None:
        return None
    losses = losses_of(cluster, batch.attempt)
    moved = [[move.query, move.task, move.source, move.target] for move in losses.transfers]
    return {
        **{name: getattr(batch.attempt, name) for name in ("batch", "failures", "start")},
        "stop": batch.attempt.end,
        "records": losses.records,
        "total": losses.total,
        "transfers": moved,
        "cause": batch.cause,
        "skip_requested": batch.skipped is not None,
    }
