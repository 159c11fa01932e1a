"""The records of one batch on one node, as columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.query import EVENT_TIME, STREAM
from workers.pipeline.engine.arrow import pa, pc
from workers.pipeline.engine.compute import Evaluator

Int64s = NDArray[np.int64]
# What a split node says of each record, uint64[n] by name: its luck, its task of a query.
Extras = Mapping[str, NDArray[np.uint64]]
LUCK = "luck"


def task_column(query: int) -> str:
    """Return under which name records carry their task of a query, where not their key says it."""
    return f"task of {query}"


# What is before every time: no record has come yet.
NO_MARK = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Run:
    """Records of one block: how many, of which stream, and the newest event time before them."""

    stream: int
    records: int
    mark_ms: int | None


@dataclass(frozen=True)
class Records:
    """Records of streams with the same columns, run behind run.

    `columns`: an Arrow table; `stream`, `mark_ms` int64[n]; `streams`: those that occur.
    `extras`: what split nodes say of each record.
    """

    columns: Any
    stream: Int64s
    mark_ms: Int64s
    streams: frozenset[int]
    extras: Extras = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Any, runs: Sequence[Run], extras: Extras | None = None) -> "Records":
        """Put the records of these runs together; there are as many rows as they say."""
        lengths = [run.records for run in runs]
        marks = [NO_MARK if run.mark_ms is None else run.mark_ms for run in runs]
        streams = np.array([run.stream for run in runs], np.int64)
        of_record = np.repeat(streams, lengths), np.repeat(np.array(marks, np.int64), lengths)
        return cls(columns, *of_record, frozenset(streams.tolist()), extras or {})

    def __len__(self) -> int:
        return len(self.stream)

    def part(self, first: int, stop: int) -> "Records":
        """Return the records [first, stop)."""
        stream = self.stream[first:stop]
        return Records(
            self.columns.slice(first, stop - first),
            stream,
            self.mark_ms[first:stop],
            frozenset(np.unique(stream).tolist()),
            {name: values[first:stop] for name, values in self.extras.items()},
        )

    @cached_property
    def ts_ms(self) -> Int64s:
        """Return event times in milliseconds."""
        return np.asarray(self.columns[EVENT_TIME].cast(pa.int64()))

    @cached_property
    def evaluator(self) -> Evaluator:
        """Return what evaluates expressions over these records."""
        names = self.columns.column_names
        columns = {name: _whole(self.columns[name]) for name in names}
        return Evaluator({**columns, STREAM: pa.array(self.stream)}, len(self))

    def is_late(self, lateness_ms: int) -> NDArray[np.bool_]:
        """Return which records are older than what came before them allows.

        The newest event time before a block is part of the log, so that what is late does not
        depend on how the log was cut into batches.
        """
        known = self.mark_ms != NO_MARK
        return np.asarray(known & (self.ts_ms < np.where(known, self.mark_ms - lateness_ms, 0)))

    def newest(self) -> dict[int, int]:
        """Return the newest event time of each stream here."""
        order = np.argsort(self.stream, kind="stable")
        streams, starts = np.unique(self.stream[order], return_index=True)
        newest = np.maximum.reduceat(self.ts_ms[order], starts) if len(starts) else starts
        return dict(zip(streams.tolist(), newest.tolist(), strict=True))


def _whole(column: Any) -> Any:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pc.take(column, pa.array(np.arange(len(column)))).combine_chunks()


def evaluator_of(stream: int, block: Any) -> Evaluator:
    """Return what evaluates expressions over the records of one block of a stream."""
    columns = dict(zip(block.schema.names, block.columns, strict=True))
    records = block.num_rows
    return Evaluator({**columns, STREAM: pa.array(np.full(records, stream))}, records)
