"""The sequence of batch numbers, which continues after the loss of a checkpoint.

Explicit stream ids `<batch>-<seq>` reject what was written before; a new checkpoint must
therefore count on behind everything that an old one may have written.
"""

from typing import Any, Final

import redis

from controlplane.wire import keys
from controlplane.wire.generation import read_generation
from controlplane.wire.log import Log, LogPosition, RedisLog
from controlplane.wire.log.values import position_key
from workers.pipeline.reports.telemetry_row import newest_telemetry

# Batches that the lost checkpoint may have written beyond its last telemetry row.
_MARGIN: Final = 1000


def first_batch(client: "redis.Redis", cluster: str) -> int:
    """Return the batch number before the first batch of a new checkpoint; 0 for a new cluster."""
    newest = newest_telemetry(client, cluster, 1)
    known = max(
        int(newest[0].get("batch", 0) if newest else 0), read_generation(client, cluster).floor
    )
    return known + _MARGIN if known else 0


def first_position(client: "redis.Redis", cluster: str, log: Log) -> LogPosition:
    """Return the start position of a new checkpoint: the end of the newest finished batch.

    Spark marks a batch as committed when it plans the next one, so the newest finished batch may
    end behind what is marked; read again, its records would count twice. If the log cannot find
    how many records that are, as Kafka cannot, the marked place holds.
    """
    committed = log.committed_position()
    newest = newest_telemetry(client, cluster, 1)
    end = (newest and newest[0].get("end")) or committed.position
    if position_key(end) <= position_key(committed.position):
        return committed
    if not isinstance(log, RedisLog):
        return committed
    result: Any = client.xrevrange(keys.index_key(cluster), end, "-", count=1)
    if not result or result[0][0].decode() != end:
        # Redis was emptied or is older: whatever it has now came later.
        return committed
    return LogPosition(end, int(result[0][1][b"total"]))
