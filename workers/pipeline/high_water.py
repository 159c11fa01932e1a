"""Batch numbers that keep growing when a checkpoint is thrown away.

Explicit stream ids `<batch>-<seq>` reject what was written before; a new checkpoint must
therefore count on behind everything that an old one may have written.
"""

from typing import Any, Final, cast

import redis

from controlplane.wire import keys

# Batches that the lost checkpoint may have written beyond its last telemetry row.
_MARGIN: Final = 1000


def first_batch(client: "redis.Redis", cluster: str) -> int:
    """Return the batch number a new checkpoint starts behind; 0 for a new cluster."""
    found = cast("list[Any]", client.xrevrange(keys.telemetry_key(cluster), count=1))
    if not found:
        return 0
    return int(found[0][0].partition(b"-")[0]) + _MARGIN
