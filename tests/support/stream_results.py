"""Results that a sink has written to a stream, as the log has them."""

from typing import Any

from controlplane.connections import redis_client
from controlplane.models import Stream
from controlplane.wire.log.redis_log import RedisLog
from controlplane.wire.records.record_codec import decode_block


def records_of(cluster: str, name: str) -> list[dict[str, Any]]:
    """Return all records of a stream that no pipeline has read."""
    stream = Stream.objects.filter(cluster__slug=cluster, name=name).first()
    if stream is None:
        return []
    entries = RedisLog(redis_client(), cluster).newest_entries([stream.pk], 100_000)
    blocks = [decode_block(entry.block).records for entry in entries.get(stream.pk, [])]
    rows = [row for block in blocks for row in block.to_pylist()]
    # A stream has a column of this name already.
    return [{"stream": row.pop("source_stream", None), **row} for row in rows]
