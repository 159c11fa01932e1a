"""The door for producers: append records to a cluster's streams.

    from controlplane.wire.producer import Producer

    producer = Producer("redis://localhost:6379/0", "sf")
    producer.append({stream_id: records})

Stream ids come from the HTTP API (`GET /api/v1/clusters/<slug>/streams`). Records are a list of
dictionaries, a data frame of pandas, an Arrow table or record batch, by the names of the stream's
columns. An append that returns is in the log; one that raises is not, in no stream; after
`LogUnavailable` it is unknown, and the same append under the same stamp is safe.
`controlplane.wire.batching` gathers records and sees to all that.
"""

import time
from collections.abc import Mapping
from itertools import count
from types import TracebackType
from typing import Any
from uuid import uuid4

import pyarrow as pa

from controlplane.wire import log
from controlplane.wire.errors import BadBlock, LogUnavailable
from controlplane.wire.records import record_codec
from controlplane.wire.records.conversion import to_record_batch
from controlplane.wire.records.schema_registry import SchemaRegistry
from controlplane.wire.schema import StreamSchema


class Producer:
    """Appends records to the streams of one cluster; threads may share it."""

    def __init__(
        self,
        url: str,
        cluster: str,
        limit: int = log.DEFAULT_LIMIT,
        max_bytes: int = log.DEFAULT_BYTES,
        *,
        schemas: Mapping[int, StreamSchema] | None = None,
        site: str = "",
    ) -> None:
        """Append to the log at `url` (redis://… or kafka://…).

        Appends are refused while `limit` records or `max_bytes` bytes wait to be read. `schemas`:
        those of streams, by id; of others they are read from the site's Redis, at `site` where the
        log is elsewhere. Raises `BadLogUrl`.
        """
        self.cluster = cluster
        self.limits = log.Limits(limit, max_bytes)
        self._log = log.open_log(url, cluster)
        self._schemas = SchemaRegistry(log.schema_client(site or url), cluster, schemas)
        self._id = uuid4().hex
        self._sequences = count()

    def append(
        self,
        records: Mapping[int, Any],
        token: log.IdempotencyToken | None = None,
        schemas: Mapping[int, StreamSchema] | None = None,
    ) -> str | None:
        """Append records of one or more streams, all at one position, and return the position.

        An empty mapping appends nothing and returns None. With a `token` that was appended
        before, nothing is added and the first position returned; without one, each call is an
        append of its own. `schemas`: of these streams, where the caller knows them better.

        Raises `BadBlock` on records that are not of their stream's schema, `UnknownSchema`,
        `LogFull` when the pipeline is too far behind, `AppendTooLarge`, `StaleIdempotencyToken`,
        `IdempotencyTokenReused` when other records had the stamp, and `LogUnavailable` when the log
        cannot be reached: append again then, with the stamp that the error has.
        """
        if not records:
            return None
        encoded = {
            stream: to_block(*self.conform(stream, given, (schemas or {}).get(stream)))
            for stream, given in records.items()
        }
        token = token or log.IdempotencyToken(self._id, next(self._sequences))
        try:
            return self._log.append(encoded, token, self.limits)
        except LogUnavailable as error:
            error.token = token
            raise

    def conform(
        self, stream: int, records: Any, schema: StreamSchema | None = None
    ) -> tuple[pa.RecordBatch, StreamSchema]:
        """Return records as the stream's schema has them, and the schema; raises as `append`."""
        return conform(self._schemas, stream, records, schema)

    def waiting(self) -> log.LogBacklog:
        """Return the backlog that the pipeline has not read. Raises `LogUnavailable`."""
        return self._log.waiting()

    def close(self) -> None:
        """Close the connections."""
        self._log.close()
        self._schemas.close()

    def __enter__(self) -> "Producer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def conform(
    schemas: SchemaRegistry, stream: int, records: Any, schema: StreamSchema | None = None
) -> tuple[pa.RecordBatch, StreamSchema]:
    """Return records as the stream's schema has them, and the schema.

    Records that do not fit the schema as it is known are tried with the one that is published now.
    """
    known = schema or schemas.of(stream)
    try:
        return to_record_batch(stream, records, known), known
    except BadBlock:
        newer = known if schema is not None else schemas.refresh(stream)
        if newer == known:
            raise
    return to_record_batch(stream, records, newer), newer


def to_block(batch: pa.RecordBatch, schema: StreamSchema) -> log.Block:
    """Return a record batch of a schema as a block of its stream."""
    newest_ms = record_codec.newest_event_ms(batch, schema, time.time_ns() // 1_000_000)
    data = record_codec.encode_block(batch, schema.event_time)
    return log.Block(batch.num_rows, data, newest_ms, round(schema.max_future_s * 1000))
