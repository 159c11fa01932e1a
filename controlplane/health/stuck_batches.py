"""Stuck batches: a batch that fails repeatedly, and the losses of skipping it."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from django.db.models import Q
from redis import RedisError

from controlplane.connections import redis_client
from controlplane.errors import Away
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
