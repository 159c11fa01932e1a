"""Whether Redis has all writes of batches, after it was away.

A restart may lose the newest writes, but no write before one that Redis has. So the telemetry row,
which is the last write of a batch, shows that Redis has all of it. During a batch, the last write
of each part is a mark in the activity hash; a part during which Redis restarted is written again.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import redis

from controlplane.wire import dead_letters, keys
from controlplane.wire.generation import read_generation
from workers.pipeline.exchange.envelope import BatchHeader
from workers.pipeline.reports.telemetry_row import newest_telemetry
from workers.pipeline.spark.query_runs import WritesLost
from workers.pipeline.split_nodes.offset import Offset
from workers.pipeline.split_nodes.projection import DeadLetterBuffer

# So long the agent has to repair a Redis that lost batches under a running driver.
REPAIR_S: Final = 10.0
_POLL_S: Final = 0.25


class BatchesLost(Exception):
    """Redis has lost finished batches: the agent must compare the stores before the next one."""


def server_of(client: "redis.Redis") -> str:
    """Return the id of the running Redis, another one after each restart."""
    return str(dict(client.info("server"))["run_id"])


def mark_part(client: "redis.Redis", cluster: str, batch: int, part: str, server: str) -> None:
    """Mark a part of a batch as written; `server`: the id before its first write.

    Raises `WritesLost` if Redis has restarted since.
    """
    client.hset(keys.activity_key(cluster), part, batch)
    if server_of(client) != server:
        raise WritesLost(f"Redis restarted while {part} of batch {batch} was written")


def keep_letters(
    client: "redis.Redis", cluster: str, header: BatchHeader, dead: DeadLetterBuffer
) -> None:
    """Store the dead letters of a split node, as a part of the batch. Raises `WritesLost`."""
    if dead.counts:
        server = server_of(client)
        dead_letters.keep(client, cluster, dead.letters)
        mark_part(client, cluster, header.batch, f"split:{header.split}", server)


def parts_of_splits(sources: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the parts of split nodes that stored dead letters, by their reports."""
    return [f"split:{source['split']}" for source in sources if source.get("dead")]


def check_parts(client: "redis.Redis", cluster: str, batch: int, parts: Sequence[str]) -> None:
    """Raise `WritesLost` unless Redis has all writes of these parts of a batch."""
    written: Any = client.hmget(keys.activity_key(cluster), parts)
    lost = [name for name, mark in zip(parts, written, strict=True) if mark != b"%d" % batch]
    if lost:
        raise WritesLost(f"Redis has lost what {', '.join(lost)} of batch {batch} wrote")


def check_batch(client: "redis.Redis", cluster: str, end: Offset) -> None:
    """Return once Redis has all up to the end of a batch, or the agent has repaired the loss.

    Raises `BatchesLost` after `REPAIR_S`.
    """
    deadline = time.monotonic() + REPAIR_S
    # The offset before the first batch of a checkpoint is the end of no batch.
    while end.clock_ms:
        rows = newest_telemetry(client, cluster, 1)
        newest = max(rows[0]["batch"] if rows else 0, read_generation(client, cluster).floor)
        if newest >= end.batch:
            return
        if time.monotonic() > deadline:
            raise BatchesLost(f"Redis has batches up to {newest}, and {end.batch} was finished")
        time.sleep(_POLL_S)
