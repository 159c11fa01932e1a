"""The producer: appends records to a cluster's streams.

    from controlplane.wire.producer import Producer

    producer = Producer("redis://localhost:6379/0", "sf")
    producer.append({stream_id: records})

It logs in to the log itself, so it is for programs of the site; others append over HTTP
(docs/producers.md). Stream ids come from the HTTP API (`GET /api/v1/clusters/<slug>/streams`).
Records are a list of dictionaries, a data frame of pandas, an Arrow table or record batch, by the
names of the stream's columns. An append is atomic over all streams: it is in the log if it returns,
and not if it raises. After `LogUnavailable` this is unknown, and the same append with the same
token is safe.
`controlplane.wire.batching` collects records and repeats appends.
"""

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from itertools import count
from typing import Any, cast
from uuid import uuid4

import pyarrow as pa
import redis

from controlplane.wire import keys
from controlplane.wire.errors import BadBlock, LogUnavailable, UnknownSchema
from controlplane.wire.log import open_log, schema_client
from controlplane.wire.log.values import (
    DEFAULT_BYTES,
    DEFAULT_LIMIT,
    AppendPosition,
    BacklogLimits,
    Block,
    IdempotencyToken,
    LogBacklog,
)
from controlplane.wire.records import record_codec
from controlplane.wire.records.record_codec import to_record_batch
from controlplane.wire.schema import StreamSchema


class SchemaRegistry:
    """The schemas of one cluster's streams, each read once and again on `refresh`.

    The control plane writes each stream's schema to one hash per cluster when it publishes the
    routing version with the schema.
    """

    def __init__(
        self,
        client: "redis.Redis | None",
        cluster: str,
        given: Mapping[int, StreamSchema] | None = None,
    ) -> None:
        """Read from the hash of `client` (None: nowhere); `given` schemas take precedence."""
        self._client = client
        self._cluster = cluster
        self._given = dict(given or {})
        self._known: dict[int, StreamSchema] = {}

    def of(self, stream: int) -> StreamSchema:
        """Return the schema of a stream. Raises `UnknownSchema` or `LogUnavailable`."""
        result = self._given.get(stream) or self._known.get(stream)
        return result or self.refresh(stream)

    def refresh(self, stream: int) -> StreamSchema:
        """Return the schema as it is published now; raises as `of`."""
        if stream in self._given:
            return self._given[stream]
        text = self._published(stream)
        if text is None:
            raise UnknownSchema(self._cluster, stream)
        result = self._known[stream] = StreamSchema.from_text(text)
        return result

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()

    def _published(self, stream: int) -> bytes | None:
        if self._client is None:
            return None
        try:
            result = self._client.hget(keys.schemas_key(self._cluster), str(stream))
        except redis.RedisError as error:
            raise LogUnavailable(str(error)) from error
        return cast("bytes | None", result)


class Producer(AbstractContextManager["Producer"]):
    """A thread-safe producer for the streams of a cluster."""

    def __init__(
        self,
        url: str,
        cluster: str,
        limit: int = DEFAULT_LIMIT,
        max_bytes: int = DEFAULT_BYTES,
        *,
        schemas: Mapping[int, StreamSchema] | None = None,
        site: str = "",
    ) -> None:
        """Append to the log at `url` (redis://… or kafka://…).

        Appends are rejected while `limit` records or `max_bytes` bytes are unread. `schemas`: of
        streams by id; others are read from the site's Redis, which is at `site` if the log is
        elsewhere. Raises `BadLogUrl`.
        """
        self.cluster = cluster
        self.limits = BacklogLimits(limit, max_bytes)
        self._log = open_log(url, cluster)
        self._schemas = SchemaRegistry(schema_client(site or url), cluster, schemas)
        self._id = uuid4().hex
        self._sequences = count()

    def append(
        self,
        records: Mapping[int, Any],
        token: IdempotencyToken | None = None,
        schemas: Mapping[int, StreamSchema] | None = None,
    ) -> AppendPosition | None:
        """Append records of one or more streams, all at one position, and return the position.

        The position is a text; its `late` and `ahead` have what the log knew of lateness.

        An empty mapping appends nothing and returns None. With a `token` that was used before,
        nothing is appended and the first position returned; without one, each call is a separate
        append. `schemas`: newer schemas of these streams than the producer has.

        Raises `BadBlock` for records that do not match their schema, `UnknownSchema`, `LogFull` if
        the backlog is at its limit, `AppendTooLarge`, `StaleIdempotencyToken`,
        `IdempotencyTokenReused` if other records had the token, and `LogUnavailable`: then append
        again with the token of the error.
        """
        if not records:
            return None
        conformed = {
            stream: self.conform(stream, given, (schemas or {}).get(stream))
            for stream, given in records.items()
        }
        encoded = {stream: to_block(*pair) for stream, pair in conformed.items()}
        token = token or IdempotencyToken(self._id, next(self._sequences))
        try:
            return with_lateness(self._log.append(encoded, token, self.limits), encoded, conformed)
        except LogUnavailable as error:
            error.token = token
            raise

    def conform(
        self, stream: int, records: Any, schema: StreamSchema | None = None
    ) -> tuple[pa.RecordBatch, StreamSchema]:
        """Return records converted to the stream's schema, and the schema; raises as `append`."""
        return conform(self._schemas, stream, records, schema)

    def waiting(self) -> LogBacklog:
        """Return the unread backlog. Raises `LogUnavailable`."""
        return self._log.waiting()

    def close(self) -> None:
        """Close the connections."""
        self._log.close()
        self._schemas.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def conform(
    schemas: SchemaRegistry, stream: int, records: Any, schema: StreamSchema | None = None
) -> tuple[pa.RecordBatch, StreamSchema]:
    """Return records converted to the stream's schema, and the schema.

    If records do not match the cached schema, the published one is read again.
    """
    known = schema or schemas.of(stream)
    try:
        return to_record_batch(stream, records, known), known
    except BadBlock:
        newer = known if schema is not None else schemas.refresh(stream)
        if newer == known:
            raise
    return to_record_batch(stream, records, newer), newer


def to_block(batch: pa.RecordBatch, schema: StreamSchema) -> Block:
    """Return a record batch of a schema as a block of its stream."""
    newest_ms, range_ms = record_codec.block_times(batch, schema, time.time_ns() // 1_000_000)
    data = record_codec.encode_block(batch, schema.event_time)
    future_ms, delay_ms = round(schema.max_future_s * 1000), round(schema.watermark_delay_s * 1000)
    return Block(batch.num_rows, data, newest_ms, future_ms, delay_ms, range_ms)


def with_lateness(
    position: AppendPosition,
    blocks: Mapping[int, Block],
    records: Mapping[int, tuple[pa.RecordBatch, StreamSchema]],
) -> AppendPosition:
    """Return the position of blocks with the `late` of some of their records, and `ahead`."""
    if position.watermarks is None:
        return position
    result, late = AppendPosition(position), dict.fromkeys(records, 0)
    result.watermarks, result.late, ahead = position.watermarks, late, {}
    for stream, (batch, schema) in records.items():
        block, (before, after) = blocks[stream], position.watermarks[stream]
        if block.range_ms is None:
            continue
        oldest, newest = block.range_ms
        if oldest < before - block.delay_ms:
            times = record_codec.times_ms(batch.column(schema.event_time))
            late[stream] = int((times < before - block.delay_ms).sum())
        if newest > after + block.delay_ms:
            ahead[stream] = newest
    result.ahead = ahead
    return result
