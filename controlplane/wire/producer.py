"""The door for producers: append records to a cluster's streams.

    from controlplane.wire.producer import Producer

    producer = Producer("redis://localhost:6379/0", "sf")
    producer.append({stream_id: record_batch})

Stream ids come from the HTTP API (`GET /api/v1/clusters/<slug>/streams`), the schema of a record
from `controlplane.wire.blocks.SCHEMA`. An append that returns is in the log; one that raises is
not, in no stream.
"""

from collections.abc import Mapping
from types import TracebackType

import pyarrow as pa
import redis

from controlplane.wire import blocks, log


class Producer:
    """Appends Arrow record batches to the streams of one cluster."""

    def __init__(self, redis_url: str, cluster: str, limit: int = log.DEFAULT_LIMIT) -> None:
        self.cluster = cluster
        self.limit = limit
        self._client = redis.Redis.from_url(redis_url)

    def append(self, batches: Mapping[int, pa.RecordBatch]) -> str | None:
        """Append one block per stream, all at one position, and return the position.

        An empty mapping appends nothing and returns None. Raises `BadBlock` on a record batch
        of another schema, `LogFull` when the pipeline is too far behind, and
        `redis.RedisError` when the log cannot be reached (append again then).
        """
        if not batches:
            return None
        encoded: dict[int, log.Block] = {}
        for stream, batch in batches.items():
            blocks.check_block(stream, batch)
            newest = blocks.newest_event_ms(batch)
            encoded[stream] = log.Block(batch.num_rows, blocks.encode_block(batch), newest)
        return log.append(self._client, self.cluster, encoded, self.limit)

    def close(self) -> None:
        """Give the connection back."""
        self._client.close()

    def __enter__(self) -> "Producer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
