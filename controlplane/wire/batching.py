"""A producer that gathers records into larger appends, in the background.

    from controlplane.wire.batching import BatchingProducer

    with BatchingProducer("redis://localhost:6379/0", "sf") as producer:
        acknowledged = producer.send(stream_id, records)
        acknowledged.add_done_callback(...)

One append at a time is in progress. Each has its own idempotency token, and is repeated with it
until the log has acknowledged it. So acknowledged records are in the log exactly once, in the order
of `send`, whatever connections and servers fail.
"""

import time
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from threading import Condition, Event, Thread
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa

from controlplane.wire.errors import BufferFull, LogFull, LogUnavailable, Undelivered, WireError
from controlplane.wire.log import open_log, schema_client
from controlplane.wire.log.values import (
    DEFAULT_LIMITS,
    AppendPosition,
    BacklogLimits,
    Block,
    IdempotencyToken,
)
from controlplane.wire.producer import SchemaRegistry, conform, to_block, with_lateness
from controlplane.wire.records import record_codec
from controlplane.wire.schema import StreamSchema

_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 2.0
_JOIN_TIMEOUT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class _Pending:
    """The records of one call of `send`; the future returns their position."""

    stream: int
    batch: pa.RecordBatch
    schema: StreamSchema
    sent_at: float
    future: "Future[AppendPosition]" = field(default_factory=Future)


class BatchingProducer(AbstractContextManager["BatchingProducer"]):
    """A producer that collects records for `linger_ms`, or up to `max_records` or `max_bytes`.

    Thread-safe. `buffer_bytes` limits unacknowledged records: beyond it, `send` blocks up to
    `max_block_s` seconds and raises `BufferFull`. Records that are not acknowledged after
    `delivery_s` seconds fail with the log's last error.
    """

    def __init__(
        self,
        url: str,
        cluster: str,
        *,
        linger_ms: float = 20.0,
        max_records: int = 10_000,
        max_bytes: int = 900_000,
        buffer_bytes: int = 64 * 1024 * 1024,
        max_block_s: float = 60.0,
        delivery_s: float = 120.0,
        limits: BacklogLimits = DEFAULT_LIMITS,
        schemas: Mapping[int, StreamSchema] | None = None,
        site: str = "",
    ) -> None:
        """Open the log at `url` (redis://… or kafka://…). Raises `BadLogUrl`.

        `schemas`, `site`: as for `Producer`.
        """
        self.cluster = cluster
        self.limits = limits
        self._log = open_log(url, cluster)
        self._schemas = SchemaRegistry(schema_client(site or url), cluster, schemas)
        self._linger_s = linger_ms / 1000
        self._max_records = min(max_records, record_codec.MAX_RECORDS)
        self._max_bytes = max_bytes
        self._buffer_bytes = buffer_bytes
        self._max_block_s = max_block_s
        self._delivery_s = delivery_s
        self._id, self._sequence = uuid4().hex, 0
        self._changed = Condition()
        self._waiting: deque[_Pending] = deque()
        self._waiting_records = self._waiting_bytes = 0
        # Bytes neither acknowledged nor failed; numbers of sends, of finished sends, and of sends
        # to flush.
        self._unacknowledged_bytes = self._sent = self._done = self._flush_until = 0
        self._closing = False
        self._aborted = Event()
        self._thread = Thread(target=self._run, name=f"weir-producer-{cluster}", daemon=True)
        self._thread.start()

    def send(self, stream: int, records: Any) -> "Future[AppendPosition]":
        """Send records to a stream; the future returns their position, or raises the error.

        `records`: dictionaries, a data frame, an Arrow table or record batch. Raises `BadBlock` if
        they do not match the stream's schema, `UnknownSchema`, `LogUnavailable` if the schema
        cannot be read, `BufferFull` if the buffer is full for `max_block_s`, and `Undelivered` if
        the producer is closed.
        """
        batch, schema = conform(self._schemas, stream, records)
        sent = _Pending(stream, batch, schema, time.monotonic())
        # It may be appended any moment, so it cannot be cancelled.
        sent.future.set_running_or_notify_cancel()
        with self._changed:
            self._changed.wait_for(lambda: self._closing or self._fits(sent), self._max_block_s)
            if self._closing:
                raise Undelivered("the producer is closed")
            if not self._fits(sent):
                raise BufferFull(batch.nbytes, self._unacknowledged_bytes, self._buffer_bytes)
            self._waiting.append(sent)
            self._waiting_records += batch.num_rows
            self._waiting_bytes += batch.nbytes
            self._unacknowledged_bytes += batch.nbytes
            self._sent += 1
            self._changed.notify_all()
        return sent.future

    def flush(self, timeout_s: float | None = None) -> bool:
        """Wait until all sent records are acknowledged or failed; return False on a timeout."""
        with self._changed:
            until = self._flush_until = self._sent
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._done >= until, timeout_s)

    def close(self, timeout_s: float | None = 30.0) -> None:
        """Flush and stop; records that are not acknowledged in time fail with `Undelivered`."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self.flush(timeout_s)
        self._aborted.set()
        self._thread.join(_JOIN_TIMEOUT_S)
        self._log.close()
        self._schemas.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fits(self, sent: _Pending) -> bool:
        return self._unacknowledged_bytes + sent.batch.nbytes <= self._buffer_bytes

    def _run(self) -> None:
        while group := self._next_group():
            outcome = self._deliver(group)
            for sent, result in zip(group, outcome, strict=True):
                if isinstance(result, AppendPosition):
                    sent.future.set_result(result)
                else:
                    sent.future.set_exception(result)
            with self._changed:
                self._unacknowledged_bytes -= sum(sent.batch.nbytes for sent in group)
                self._done += len(group)
                self._changed.notify_all()

    def _next_group(self) -> list[_Pending]:
        """Return the records of the next append, none if the producer is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            if not self._waiting:
                return []
            due = self._waiting[0].sent_at + self._linger_s
            while (left := due - time.monotonic()) > 0 and not self._is_enough():
                self._changed.wait(left)
            return self._take_group()

    def _is_enough(self) -> bool:
        if self._closing or self._flush_until > self._done:
            return True
        return self._waiting_records >= self._max_records or self._waiting_bytes >= self._max_bytes

    def _take_group(self) -> list[_Pending]:
        group = [self._waiting.popleft()]
        records, size = group[0].batch.num_rows, group[0].batch.nbytes
        schemas = {group[0].stream: group[0].schema}
        while self._waiting:
            first = self._waiting[0]
            records += first.batch.num_rows
            size += first.batch.nbytes
            # A block has one schema: another schema starts another append.
            changed = schemas.setdefault(first.stream, first.schema) != first.schema
            if changed or records > self._max_records or size > self._max_bytes:
                break
            group.append(self._waiting.popleft())
        self._waiting_records -= sum(sent.batch.num_rows for sent in group)
        self._waiting_bytes -= sum(sent.batch.nbytes for sent in group)
        return group

    def _deliver(self, group: Sequence[_Pending]) -> "Sequence[AppendPosition | Exception]":
        """Return the position of each call in the log, or the error."""
        try:
            encoded = _encoded(group)
            token = IdempotencyToken(self._id, self._sequence)
            self._sequence += 1
            position = self._append(encoded, token)
            return [
                with_lateness(position, encoded, {sent.stream: (sent.batch, sent.schema)})
                for sent in group
            ]
        except Exception as error:  # noqa: BLE001 - the future raises it
            return [error] * len(group)

    def _append(self, encoded: dict[int, Block], token: IdempotencyToken) -> AppendPosition:
        deadline = time.monotonic() + self._delivery_s
        pause, last = _FIRST_PAUSE_S, WireError("it was not appended yet")
        while not self._aborted.is_set():
            try:
                return self._log.append(encoded, token, self.limits)
            except (LogFull, LogUnavailable) as error:
                last = error
            if time.monotonic() + pause > deadline:
                raise last
            self._aborted.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        raise Undelivered(f"the producer was closed before: {last}")


def _encoded(group: Sequence[_Pending]) -> dict[int, Block]:
    by_stream: dict[int, list[_Pending]] = defaultdict(list)
    for sent in group:
        by_stream[sent.stream].append(sent)
    return {
        stream: to_block(_joined([sent.batch for sent in items]), items[0].schema)
        for stream, items in by_stream.items()
    }


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    # The stubs are older than the function.
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)  # type: ignore[attr-defined]
