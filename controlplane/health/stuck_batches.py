"""Stuck batches: a batch that fails repeatedly, the losses of skipping it, and the skip."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from redis import RedisError

from controlplane.access import audit
from controlplane.access.roles import ADMIN, Actor, require
from controlplane.connections import redis_client
from controlplane.errors import Away, Conflict, Invalid
from controlplane.events.after_commit import after_commit
from controlplane.events.publish import announce, event
from controlplane.models import Cluster, SkippedBatch
from controlplane.topology.event_time import log_of
from controlplane.wire import attempts, keys
from controlplane.wire.errors import LogUnavailable, RoutingMissing
from controlplane.wire.routing.publication import read_table
from controlplane.wire.routing.state_transfer import TaskTransfer, task_transfers

logger = logging.getLogger(__name__)
_AGAIN_S: Final = 5


@dataclass(frozen=True)
class StuckBatch:
    """A batch that has failed at least three times in a row and is not processed.

    `attempt`: the data plane's record of it; `cause`: how the newest attempt ended, by the agent;
    `skipped`: the request to skip it, None without one.
    """

    attempt: attempts.BatchAttempt
    cause: str
    skipped: SkippedBatch | None

    @property
    def batch(self) -> int:
        """Return the batch's number."""
        return self.attempt.batch


@dataclass(frozen=True)
class Losses:
    """The losses of skipping a batch: records by stream name; the state of moving tasks is kept."""

    records: Mapping[str, int]
    transfers: list[TaskTransfer]

    @property
    def total(self) -> int:
        """Return the number of records over all streams."""
        return sum(self.records.values())


def stuck_batch(cluster: Cluster) -> StuckBatch | None:
    """Return the batch that fails repeatedly, None without one or if Redis does not respond."""
    try:
        attempt = attempts.newest(redis_client(), cluster.slug)
        if attempt is None or not attempt.is_stuck or _newest_done(cluster) >= attempt.batch:
            return None
    except RedisError as error:
        logger.info("cannot read the attempts of %s: %s", cluster.slug, error)
        return None
    skipped = cluster.skipped_batches.filter(batch=attempt.batch).first()
    # The agent has no number of a cluster's first batch.
    last = cluster.restarts.filter(Q(batch=attempt.batch) | Q(batch=None)).first()
    return StuckBatch(attempt, last.detail if last else "", skipped)


def _newest_done(cluster: Cluster) -> int:
    """Return the number of the newest batch that has been processed, -1 for none."""
    key = keys.telemetry_key(cluster.slug)
    rows = cast("list[tuple[bytes, object]]", redis_client().xrevrange(key, count=1))
    return int(rows[0][0].partition(b"-")[0]) if rows else -1


def losses_of(cluster: Cluster, attempt: attempts.BatchAttempt) -> Losses:
    """Return the losses of skipping a batch, counted in the log. Raises `Away`."""
    names = dict(cluster.streams.values_list("pk", "name"))
    try:
        log = log_of(cluster)
        counts = {
            # One stream at a time: a batch may be large.
            name: sum(
                entry.records
                for entry in log.read_streams([stream], attempt.start, attempt.end).get(stream, ())
            )
            for stream, name in names.items()
        }
        moved = _transfers(cluster, attempt)
    except (LogUnavailable, RedisError) as error:
        text = f"{error}. What would be lost is not known"
        raise Away("log_away", text, _AGAIN_S) from error
    return Losses({name: count for name, count in sorted(counts.items()) if count}, moved)


def _transfers(cluster: Cluster, attempt: attempts.BatchAttempt) -> list[TaskTransfer]:
    """Return the tasks that transfer their state in a batch or in the one before."""
    client, found_transfers = redis_client(), []
    for before in (attempt.arriving, attempt.leaving):
        if before < 0:
            continue
        try:
            old = read_table(client, cluster.slug, before)
            found_transfers += list(
                task_transfers(old, read_table(client, cluster.slug, attempt.version, old))
            )
        except RoutingMissing:
            logger.warning("routing %s of %s is not in Redis", before, cluster.slug)
    return found_transfers


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
