"""The sequence of batch numbers, which continues after the loss of a checkpoint.

Explicit stream ids `<batch>-<seq>` reject what was written before; a new checkpoint must
therefore count on behind everything that an old one may have written.
"""

import json
from typing import Any, Final, cast

import redis

from controlplane.wire import keys
from controlplane.wire.generation import read_generation
from controlplane.wire.log import Log, LogPosition, RedisLog
from controlplane.wire.log.values import position_key

# Batches that the lost checkpoint may have written beyond its last telemetry row.
_MARGIN: Final = 1000


def first_batch(client: "redis.Redis", cluster: str) -> int:
    """Return the batch number before the first batch of a new checkpoint; 0 for a new cluster."""
    newest = _newest(client, cluster)
    known = max(int(newest.get("batch", 0)), read_generation(client, cluster).floor)
    return known + _MARGIN if known else 0


def first_position(client: "redis.Redis", cluster: str, log: Log) -> LogPosition:
    """Return the start position of a new checkpoint: the end of the newest finished batch.

    Spark marks a batch as committed when it plans the next one, so the newest finished batch may
    end behind what is marked; read again, its records would count twice. Where the log cannot say
    how many records that are, as Kafka cannot, the marked place holds.
    """
    cut = log.committed_position()
    end = _newest(client, cluster).get("end") or cut.position
    if position_key(end) <= position_key(cut.position):
        return cut
    if not isinstance(log, RedisLog):
        return cut
    result: Any = client.xrevrange(keys.index_key(cluster), end, "-", count=1)
    if not result or result[0][0].decode() != end:
        # Redis was emptied or is older: whatever it has now came later.
        return cut
    return LogPosition(end, int(result[0][1][b"total"]))


def _newest(client: "redis.Redis", cluster: str) -> dict[str, Any]:
    """Return the newest telemetry row, empty without one."""
    result = cast("list[Any]", client.xrevrange(keys.telemetry_key(cluster), count=1))
    row: dict[str, Any] = json.loads(result[0][1][b"t"]) if result else {}
    return row
