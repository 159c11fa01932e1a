"""Projection: blocks of a stream as one batch of the columns that queries read.

What no query looks at is left behind here, before records travel. A field of a struct becomes a
column `column.field`. The first column of the result is the event time in milliseconds. Records
and blocks that cannot be evaluated are found here and become dead letters.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.aggregates.layout import ARROW
from controlplane.wire.dead_letters import MAX_OF_BATCH, WHOLE_BLOCK, DeadLetter, Reason
from controlplane.wire.errors import InvalidBlock
from controlplane.wire.language.functions import common
from controlplane.wire.log.values import NO_TIME, LogEntry
from controlplane.wire.records.record_codec import (
    BlockSchema,
    DecodedBlock,
    decode_block,
    encode_block,
    nested_column,
    times_ms,
    whole_ms,
)
from controlplane.wire.schema import StreamSchema
from controlplane.wire.types import kind_of
from workers.pipeline.engine.arrow import pa
from workers.pipeline.exchange.envelope import TIME_COLUMN

Int64s = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Projected(NamedTuple):
    """The records of one stream's entries, as queries need them.

    `records`: one batch, its first column the event time in ms; `lengths`: how many are of each
    entry; `good`: which can be evaluated (None: all). `event_time`: under which name queries read
    the event time, empty if none does. `late`: the number of records that are late by the watermark
    delay of the stream.
    """

    records: Any
    lengths: Int64s
    good: Mask | None
    event_time: str
    late: int


@dataclass
class DeadLetterBuffer:
    """The dead letters of one split node in one batch: those to be kept, and how many of each."""

    letters: list[DeadLetter] = field(default_factory=list)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, letter: DeadLetter) -> None:
        """Take one; of very many only the first are kept."""
        if len(self.letters) < MAX_OF_BATCH:
            self.letters.append(letter)
        self.count(letter.stream, letter.reason, letter.records)

    def count(self, stream: int, reason: Reason, records: int) -> None:
        """Count records without keeping them."""
        if records:
            reasons = self.counts.setdefault(str(stream), {})
            reasons[reason.value] = reasons.get(reason.value, 0) + records


@dataclass(frozen=True)
class Projection:
    """How the blocks of one stream become one batch: its schema, and the columns queries read."""

    stream: int
    schema: StreamSchema
    columns: tuple[str, ...]

    def of(self, entries: Sequence[LogEntry], dead: DeadLetterBuffer) -> Projected:
        """Return the records of these entries; what cannot be evaluated is added to `dead`."""
        fits: dict[int, str] = {}
        blocks = [self._decoded(entry, fits, dead) for entry in entries]
        lengths = np.array(
            [0 if value is None else value.records.num_rows for value in blocks], np.int64
        )
        appended = np.repeat(np.array([item.appended_ms for item in entries], np.int64), lengths)
        batch, ts_ms, missing = self._together(
            [block for block in blocks if block is not None], appended
        )
        limit = appended + round(self.schema.max_future_s * 1000)
        future = ts_ms > limit
        good = None
        if missing is not None or future.any():
            missing = np.zeros(len(ts_ms), np.bool_) if missing is None else missing
            good = ~(future | missing)
            self._add_dead_letters(entries, blocks, lengths, missing, dead, Reason.NO_TIME)
            self._add_dead_letters(entries, blocks, lengths, future & ~missing, dead, Reason.FUTURE)
        late = self._count_late(entries, lengths, ts_ms, good)
        return Projected(batch, lengths, good, self._read_time, late)

    def _count_late(
        self, entries: Sequence[LogEntry], lengths: Int64s, ts_ms: Int64s, good: Mask | None
    ) -> int:
        """Return how many records are late."""
        delay = round(self.schema.watermark_delay_s * 1000)
        times = (NO_TIME if entry.mark_ms is None else entry.mark_ms - delay for entry in entries)
        limits = np.array([*times], np.int64)
        if not len(ts_ms) or ts_ms.min() >= limits.max():
            return 0
        late = ts_ms < np.repeat(limits, lengths)
        return int((late if good is None else late & good).sum())

    @property
    def _read_time(self) -> str:
        name = self.schema.event_time
        return name if name in self.columns else ""

    def _decoded(
        self, entry: LogEntry, fits: dict[int, str], dead: DeadLetterBuffer
    ) -> DecodedBlock | None:
        """Return a block's records; `fits`: the mismatch of each known schema, by identity."""
        try:
            block = decode_block(entry.block)
        except InvalidBlock as error:
            self._add_dead_block(entry, Reason.UNREADABLE, str(error), dead)
            return None
        known = id(block.description)
        if known not in fits:
            fits[known] = schema_mismatch(block.description, self.schema, self.columns)
        if why := fits[known]:
            self._add_dead_block(entry, Reason.SCHEMA, why, dead)
            return None
        return block

    def _add_dead_block(
        self, entry: LogEntry, reason: Reason, why: str, dead: DeadLetterBuffer
    ) -> None:
        dead.add(
            DeadLetter(
                self.stream, entry.position, WHOLE_BLOCK, reason, why, entry.block, entry.records
            )
        )

    def _together(
        self, blocks: Sequence[DecodedBlock], appended: Int64s
    ) -> tuple[Any, Int64s, Mask | None]:
        """Return one batch of all blocks, the event times, and which records have none."""
        # Equal descriptions are one value: `described` keeps them.
        if len({id(block.description) for block in blocks}) <= 1:
            # As they are: what reads them casts them.
            needed = self._needed(blocks[0].records.schema) if blocks else []
            raw = concatenate([value.records.select(needed) for value in blocks])
            return self._batch(raw, appended, unified=False)
        starts = np.cumsum([0, *(item.records.num_rows for item in blocks)])
        parts = [
            self._batch(
                element.records, appended[start : start + element.records.num_rows], unified=True
            )
            for element, start in zip(blocks, starts.tolist(), strict=False)
        ]
        gaps = [np.zeros(len(ts), np.bool_) if no is None else no for _, ts, no in parts]
        missing = np.concatenate(gaps) if any(no is not None for _, _, no in parts) else None
        times = np.concatenate([ts for _, ts, _ in parts])
        return concatenate([batch for batch, _, _ in parts]), times, missing

    def _needed(self, schema: Any) -> list[int]:
        """Return the places of the columns that are needed: the others are not even copied."""
        names = {name.partition(".")[0] for name in self.columns} | {self.schema.event_time}
        return [index for index, name in enumerate(schema.names) if name in names]

    def _batch(
        self, records: Any, appended: Int64s, *, unified: bool
    ) -> tuple[Any, Int64s, Mask | None]:
        times, missing = self._times(records, appended)
        names = [name for name in self.columns if name != self.schema.event_time]
        arrays = [self._column(records, name, len(times), unified=unified) for name in names]
        batch = pa.RecordBatch.from_arrays([pa.array(times), *arrays], [TIME_COLUMN, *names])
        return batch, times, missing

    def _times(self, records: Any, appended: Int64s) -> tuple[Int64s, Mask | None]:
        name = self.schema.event_time
        if not name or not len(appended):
            return appended, None
        column = records.column(name)
        if not column.null_count:
            return times_ms(column), None
        missing = np.asarray(column.is_null())
        return times_ms(column.fill_null(pa.scalar(0, column.type))), missing

    def _column(self, records: Any, name: str, count: int, *, unified: bool) -> Any:
        kind = ARROW[self.schema.kinds[name]]
        column = nested_column(records, name)
        if column is None:
            return pa.nulls(count, kind)
        if pa.types.is_timestamp(column.type) and column.type.unit != "ms":
            column = whole_ms(column)
        return column.cast(kind) if unified else column

    def _add_dead_letters(
        self,
        entries: Sequence[LogEntry],
        blocks: Sequence[DecodedBlock | None],
        lengths: Int64s,
        bad: Mask,
        dead: DeadLetterBuffer,
        reason: Reason,
    ) -> None:
        """Make records dead letters: so many are kept, all are counted."""
        result = np.flatnonzero(bad)
        ends = np.cumsum(lengths)
        for row in result[:MAX_OF_BATCH].tolist():
            offset = int(np.searchsorted(ends, row, "right"))
            index, block, entry = (
                row - int(ends[offset] - lengths[offset]),
                blocks[offset],
                entries[offset],
            )
            assert block is not None
            item = block.records.slice(index, 1)
            data = encode_block(item, block.description.event_time)
            why = self._why(reason, item)
            dead.add(DeadLetter(self.stream, entry.position, index, reason, why, data))
        dead.count(self.stream, reason, max(0, len(result) - MAX_OF_BATCH))

    def _why(self, reason: Reason, record: Any) -> str:
        name = self.schema.event_time
        if reason is Reason.NO_TIME:
            return f"{name} is null"
        value = record.column(name)[0]
        ahead = self.schema.max_future_s
        return f"{name} is {value}, further ahead of its append than {ahead:,.0f} s"


@lru_cache(maxsize=4096)
def schema_mismatch(
    description: BlockSchema, schema: StreamSchema, columns: tuple[str, ...]
) -> str:
    """Return why queries of these columns cannot read such a block; empty if they can."""
    if description.event_time != schema.event_time:
        return (
            f"its event time is {description.event_time or 'that of the append'}, that of the "
            f"stream {schema.event_time or 'that of the append'}"
        )
    empty = description.schema.empty_table().to_batches() or [_empty(description.schema)]
    for name in columns:
        result = nested_column(empty[0], name)
        if result is None:
            continue
        kind, wanted = kind_of(result.type), schema.kinds[name]
        if kind is None or common((kind, wanted)) is not wanted:
            return f"its column {name} is {result.type}, that of the stream {wanted}"
    return ""


def _empty(schema: Any) -> Any:
    return pa.RecordBatch.from_arrays([pa.nulls(0, item.type) for item in schema], schema=schema)


def concatenate(batches: Sequence[Any]) -> Any:
    """Return record batches of the same columns as one."""
    if len(batches) == 1:
        return batches[0]
    return pa.concat_batches(batches) if batches else pa.RecordBatch.from_arrays([], [])
