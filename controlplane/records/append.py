"""Appends to a stream by HTTP requests: one append per request."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final

import pyarrow as pa
from django.conf import settings

from controlplane.access.roles import Actor, require_operator
from controlplane.catalog.computations import schema_of
from controlplane.errors import Away, Busy, Conflict, Invalid
from controlplane.models import Stream
from controlplane.records.bodies.conformance import Warned
from controlplane.telemetry.samples import moment_of
from controlplane.wire.errors import (
    AppendTooLarge,
    BadBlock,
    IdempotencyTokenReused,
    InvalidIdempotencyToken,
    LogFull,
    LogUnavailable,
    StaleIdempotencyToken,
)
from controlplane.wire.log.values import IdempotencyToken
from controlplane.wire.producer import Producer
from controlplane.wire.schema import StreamSchema

# A running pipeline frees space with every micro-batch, which takes about a second.
FULL_S: Final = 2
AWAY_S: Final = 5
_MIB: Final = 1024 * 1024


@dataclass(frozen=True)
class AppendResult:
    """The log position of appended records ("" if there are none), and their number.

    `dead_letters`: how many records of the request did not fit and were kept as dead letters.
    `late`: how many of the records are already late by the watermark delay of the stream; None if
    the log does not know it, as Kafka. `ahead`: the newest event time if it is further ahead of the
    watermark than the watermark delay: it does not advance the watermark yet. `warnings`: about the
    appended records.
    """

    position: str
    records: int
    dead_letters: int = 0
    late: int | None = 0
    ahead: datetime | None = None
    warnings: Sequence[Warned] = ()


def schema_of_stream(stream: Stream) -> StreamSchema:
    """Return the schema of a stream. Raises `Conflict` (no_schema) if it has none."""
    schema = schema_of(stream.schema)
    if schema is None:
        raise Conflict("no_schema", f"The stream {stream.name} has no schema yet: declare one")
    return schema


def append(
    actor: Actor, stream: Stream, batch: pa.RecordBatch, token: IdempotencyToken | None = None
) -> AppendResult:
    """Append records to a stream: all, or none where this raises.

    An append with a used idempotency token adds nothing. Raises `Forbidden`, `Invalid`, `Conflict`
    for a token that is too old or had other records, `Busy` if the log is full, and `Away` if it
    cannot be reached.
    """
    require_operator(actor, stream.cluster)
    schemas = {stream.pk: schema_of_stream(stream)}
    cluster = stream.cluster
    log_url, max_bytes = cluster.log_url or settings.REDIS_URL, cluster.log_limit_mb * _MIB
    try:
        producer = _opened(log_url, cluster.slug, max_bytes)
        position = producer.append({stream.pk: batch}, token, schemas)
    except LogFull as full:
        data = {"waiting": full.waiting, "limit": full.limit, "unit": full.unit}
        raise Busy("log_full", str(full), FULL_S, data) from full
    except LogUnavailable as away:
        message = f"{away}. The records may or may not have been appended"
        raise Away("log_away", message, AWAY_S) from away
    except StaleIdempotencyToken as stale:
        raise Conflict("stale_sequence", str(stale), {"high": stale.high}) from stale
    except IdempotencyTokenReused as reused:
        raise Conflict("stamp_reused", str(reused)) from reused
    except (AppendTooLarge, BadBlock) as refused:
        raise Invalid({"records": [str(refused)]}) from refused
    assert position is not None
    late = None if position.late is None else position.late[stream.pk]
    ahead_ms = position.ahead.get(stream.pk)
    ahead = None if ahead_ms is None else moment_of(ahead_ms)
    return AppendResult(str(position), batch.num_rows, late=late, ahead=ahead)


def token_of(
    producer: str | None, sequence: int | None, namespace: str = ""
) -> IdempotencyToken | None:
    """Return the idempotency token of a request, None for one without. Raises `Invalid`.

    Producers of different namespaces do not share sequences.
    """
    if producer is None and sequence is None:
        return None
    if producer is None or sequence is None:
        missing = "producer" if producer is None else "sequence"
        raise Invalid({missing: ["Give both producer and sequence, or neither"]})
    try:
        return IdempotencyToken(producer and f"{namespace}{producer}", sequence)
    except InvalidIdempotencyToken as error:
        raise Invalid({error.part: [str(error)]}) from error


@lru_cache(maxsize=64)
def _opened(url: str, slug: str, max_bytes: int) -> Producer:
    """Return this process's producer; threads share it."""
    return Producer(url, slug, max_bytes=max_bytes)
