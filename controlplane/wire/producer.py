"""The door for producers: append records to a cluster's streams.

    from controlplane.wire.producer import Producer

    producer = Producer("redis://localhost:6379/0", "sf")
    producer.append({stream_id: record_batch})

Stream ids come from the HTTP API (`GET /api/v1/clusters/<slug>/streams`), the schema of a record
from `controlplane.wire.blocks.SCHEMA`. An append that returns is in the log; one that raises is
not, in no stream; after `LogAway` nobody knows, and the same append under the same stamp is safe.
`controlplane.wire.batching` gathers records and sees to all that.
"""

from collections.abc import Mapping
from itertools import count
from types import TracebackType
from uuid import uuid4

import pyarrow as pa

from controlplane.wire import blocks, log
from controlplane.wire.errors import LogAway


class Producer:
    """Appends Arrow record batches to the streams of one cluster; threads may share it."""

    def __init__(
        self,
        url: str,
        cluster: str,
        limit: int = log.DEFAULT_LIMIT,
        max_bytes: int = log.DEFAULT_BYTES,
    ) -> None:
        """Append to the log at `url` (redis://… or kafka://…).

        Appends are refused while `limit` records or `max_bytes` bytes wait to be read. Raises
        `BadLogUrl`.
        """
        self.cluster = cluster
        self.limits = log.Limits(limit, max_bytes)
        self._log = log.open_log(url, cluster)
        self._id = uuid4().hex
        self._sequences = count()

    def append(
        self, batches: Mapping[int, pa.RecordBatch], stamp: log.Stamp | None = None
    ) -> str | None:
        """Append one block per stream, all at one position, and return the position.

        An empty mapping appends nothing and returns None. With a `stamp` that was appended
        before, nothing is added and the first position returned; without one, each call is an
        append of its own. Raises `BadBlock` on a record batch of another schema, `LogFull` when
        the pipeline is too far behind, `AppendTooLarge`, `StaleStamp`, and `LogAway` when the log
        cannot be reached: append again then, with the stamp that the error has.
        """
        if not batches:
            return None
        encoded = {stream: encoded_block(stream, batch) for stream, batch in batches.items()}
        stamp = stamp or log.Stamp(self._id, next(self._sequences))
        try:
            return self._log.append(encoded, stamp, self.limits)
        except LogAway as error:
            error.stamp = stamp
            raise

    def waiting(self) -> log.Waiting:
        """Return what the pipeline has not read yet. Raises `LogAway`."""
        return self._log.waiting()

    def close(self) -> None:
        """Give the connection back."""
        self._log.close()

    def __enter__(self) -> "Producer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def encoded_block(stream: int, batch: pa.RecordBatch) -> log.Block:
    """Return a record batch as a block of a stream. Raises `BadBlock`."""
    blocks.check_block(stream, batch)
    return log.Block(batch.num_rows, blocks.encode_block(batch), blocks.newest_event_ms(batch))
