"""A stream of the same cluster: the log stores the position in one script with the records.

The sequence of the append keeps a process away that wrote the sink before: its next one is used.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from django.conf import settings as site

from controlplane.catalog.computations import schema_of
from controlplane.models import Stream
from controlplane.results.feed import FeedPlace
from controlplane.sinks.destination import DestinationAway, RefusedByDestination, SinkContext
from controlplane.sinks.kinds.arrow import arrow_table
from controlplane.sinks.kinds.settings import ResultStreamSettings
from controlplane.sinks.network import column_name, misfit
from controlplane.wire.errors import (
    AppendTooLarge,
    BadBlock,
    IdempotencyTokenReused,
    LogFull,
    LogUnavailable,
    StaleIdempotencyToken,
)
from controlplane.wire.log import open_log
from controlplane.wire.log.redis_log import RedisLog
from controlplane.wire.log.values import BacklogLimits, Block, IdempotencyToken
from controlplane.wire.producer import to_block
from controlplane.wire.records.record_codec import to_record_batch

_MIB = 1024 * 1024


def check_destination(_: ResultStreamSettings) -> None:
    """Do nothing: `network.connect_stream` checks the stream with its query."""


def open_destination(settings: ResultStreamSettings, context: SinkContext) -> "ResultStream":
    """Open the log of the cluster."""
    stream = Stream.objects.select_related("cluster").filter(
        cluster__slug=context.cluster, name=settings.stream
    ).first()  # fmt: skip
    if stream is None:
        raise DestinationAway(f"There is no stream {settings.stream} any more")
    if fault := misfit(stream, context.table):
        raise DestinationAway(fault)
    try:
        return ResultStream(stream, context)
    except LogUnavailable as error:
        raise DestinationAway(str(error)) from error


class ResultStream:
    """An open stream."""

    def __init__(self, stream: Stream, context: SinkContext) -> None:
        cluster, schema = stream.cluster, schema_of(stream.schema)
        log = open_log(cluster.log_url, cluster.slug, site.REDIS_URL)
        assert isinstance(log, RedisLog)
        assert schema is not None
        self._log, self._stream, self._schema, self._context = log, stream.pk, schema, context
        self._limits = BacklogLimits(bytes=cluster.log_limit_mb * _MIB)
        self._producer = f"sink:{context.uid}:{context.epoch}"
        self._sequence, self._position = log.last_append(self._producer)

    def position(self) -> FeedPlace | None:
        """Return the position of the last append of this epoch."""
        return FeedPlace.read(self._position) if self._position else None

    def write(self, rows: Sequence[tuple[Any, ...]], before: FeedPlace, after: FeedPlace) -> None:
        """Append rows, and the position after them."""
        token = IdempotencyToken(self._producer, self._sequence + 1, str(after))
        try:
            blocks = {self._stream: self._block(rows)} if rows else {}
            self._log.append(blocks, token, self._limits)
        except (AppendTooLarge, BadBlock) as refusal:
            raise RefusedByDestination(str(refusal)) from None
        except (IdempotencyTokenReused, StaleIdempotencyToken):
            raise DestinationAway("Another process writes this sink") from None
        except (LogFull, LogUnavailable) as error:
            raise DestinationAway(str(error)) from error
        self._sequence += 1

    def close(self) -> None:
        """Close the connection."""
        self._log.close()

    def _block(self, rows: Sequence[tuple[Any, ...]]) -> Block:
        table = arrow_table(self._context.table, rows)
        names = [column_name(column) for column in self._context.table.columns]
        known = [name for name in names if name in self._schema.names]
        records: pa.Table = table.rename_columns(names).select(known)
        return to_block(to_record_batch(self._stream, records, self._schema), self._schema)
