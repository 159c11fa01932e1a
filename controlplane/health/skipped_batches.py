"""Skipped batches: the records of a batch that cannot be processed are dropped."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import ADMIN, Actor, require
from controlplane.connections import redis_client
from controlplane.errors import Conflict, Invalid
from controlplane.events.after_commit import after_commit
from controlplane.events.publish import announce, event
from controlplane.health.stuck_batches import Losses, StuckBatch, losses_of, stuck_batch
from controlplane.models import Cluster, SkippedBatch
from controlplane.wire import attempts

_LONGEST: Final = 500


def skip(actor: Actor, cluster: Cluster, batch: int, reason: str) -> SkippedBatch:
    """Request that the next attempt at a batch reads no records; return the losses.

    A repeated request changes nothing. Tasks that move in the batch keep their state, and its
    routing version takes effect. Raises `Forbidden`, `Invalid`, `Conflict` for a batch that is not
    stuck, `Away` if the log does not respond.
    """
    require(actor, ADMIN, cluster)
    if not reason.strip() or len(reason) > _LONGEST:
        raise Invalid({"reason": [f"Enter a reason, in at most {_LONGEST} characters"]})
    known = cluster.skipped_batches.filter(batch=batch).first()
    if known is None:
        # Outside of the transaction: Redis and the log are asked.
        stuck = stuck_batch(cluster)
        if stuck is None or stuck.batch != batch:
            raise _refusal(batch, stuck)
        losses = losses_of(cluster, stuck.attempt)
        with transaction.atomic():
            # One request at a time: the second one finds the row of the first.
            Cluster.objects.select_for_update().get(pk=cluster.pk)
            known = cluster.skipped_batches.filter(batch=batch).first()
            known = known or _saved(actor, cluster, stuck, losses, reason.strip())
    if known.done_at is None:
        after_commit("notify the data plane", partial(publish_skip, cluster, batch))
    return known


def _refusal(batch: int, stuck: StuckBatch | None) -> Conflict:
    text = "no batch does" if stuck is None else f"batch {stuck.batch} does"
    return Conflict(
        "not_stuck",
        f"Batch {batch} has not failed {attempts.FAILURES} times in a row: {text}",
        {"batch": None if stuck is None else stuck.batch},
    )


def _saved(
    actor: Actor, cluster: Cluster, stuck: StuckBatch, losses: Losses, reason: str
) -> SkippedBatch:
    attempt = stuck.attempt
    row = SkippedBatch.objects.create(
        cluster=cluster, batch=stuck.batch, start=attempt.start, stop=attempt.end,
        records=dict(losses.records), total=losses.total,
        transfers=[[row.query, row.task, row.source, row.target] for row in losses.transfers],
        failures=attempt.failures, cause=stuck.cause, reason=reason, by=actor.name,
        asked_at=timezone.now(),
    )  # fmt: skip
    lost = {"batch": row.batch, "start": row.start, "stop": row.stop, "records": row.records}
    audit.record(actor, "batch.skip", f"batch {row.batch}", cluster=cluster, reason=reason,
                 after=lost | {"total": row.total})  # fmt: skip
    announce(cluster.pk, event("state", f"{actor.name} skips {_losses_text(row)}"))
    return row


def _losses_text(row: SkippedBatch) -> str:
    streams = len(row.records)
    return f"batch {row.batch}: {row.total:,} records of {streams} streams are lost"


def publish_skip(cluster: Cluster, batch: int) -> None:
    """Publish to the data plane that a batch reads no records; idempotent."""
    attempts.skip(redis_client(), cluster.slug, batch)


def publish_pending(cluster: Cluster) -> None:
    """Publish the newest pending request again, as Redis may not have stored it."""
    row = cluster.skipped_batches.filter(done_at=None).first()
    if row is not None:
        publish_skip(cluster, row.batch)


def record_done(cluster: Cluster, rows: Sequence[Mapping[str, Any]]) -> int:
    """Record the skipped batches that telemetry reports as processed; return how many.

    A batch that was processed before the request arrived has lost no records.
    """
    pending = list(cluster.skipped_batches.filter(done_at=None))
    reported = {row["batch"]: bool(row.get("skipped")) for row in rows} if pending else {}
    done = [row for row in pending if row.batch in reported]
    for row in done:
        row.done_at = timezone.now()
        if reported[row.batch]:
            text = f"Skipped {_losses_text(row)}"
        else:
            row.records, row.total = {}, 0
            text = f"Batch {row.batch} was processed with all its records; nothing is lost"
        row.save(update_fields=["done_at", "records", "total"])
        announce(cluster.pk, event("state", text))
    return len(done)
