"""The records of one batch on one node, as columns."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.query import STREAM
from workers.pipeline.engine.arrow import pa, pc
from workers.pipeline.engine.evaluation.evaluator import Evaluator

# Characters of a whole sample, and of one value in it.
LONGEST: Final = 2_000
_LONGEST_VALUE: Final = 120
_ROWS: Final = 5
_COLUMNS: Final = 40
Int64s = NDArray[np.int64]
# What a split node computes for each record, uint64[n] by name: sample hash, task of a query.
Extras = Mapping[str, NDArray[np.uint64]]
SAMPLE_HASH = "luck"
# Bits of floats: the probabilities at which the input edge and the delivery to the node dropped
# each record. Where the columns are missing or 0, neither drops any.
INPUT_DROPPED = "input dropped"
DELIVERY_DROPPED = "delivery dropped"


_TASK_OF = "task of "


def task_column(query: int) -> str:
    """Return the name of the column that holds the task of a query for each record."""
    return f"{_TASK_OF}{query}"


def is_task_column(name: str) -> bool:
    """Return whether a column of a split node holds tasks."""
    return name.startswith(_TASK_OF)


TIME = pa.timestamp("ms", tz="UTC")
# What is before every time: no record has come yet.
NO_WATERMARK = np.iinfo(np.int64).min


@dataclass(frozen=True)
class BlockRun:
    """Records of one block: their number, stream, and the newest event time before them."""

    stream: int
    records: int
    mark_ms: int | None


@dataclass(frozen=True)
class Records:
    """Records of streams with the same columns, block after block.

    `columns`: an Arrow table of what queries read, the fields of structs as `column.field`;
    `ts_ms`: the event times (int64[n], ms); `stream`, `mark_ms` int64[n]; `streams`: those that
    occur. `extras`: computed by split nodes for each record. `event_time`: under which name queries
    read the event time, empty for none.
    """

    columns: Any
    ts_ms: Int64s
    stream: Int64s
    mark_ms: Int64s
    streams: frozenset[int]
    extras: Extras = field(default_factory=dict)
    event_time: str = ""

    @classmethod
    def of(
        cls,
        columns: Any,
        ts_ms: Int64s,
        runs: Sequence[BlockRun],
        extras: Extras | None = None,
        event_time: str = "",
    ) -> "Records":
        """Combine the records of these blocks, in the order of the rows."""
        lengths = [run.records for run in runs]
        watermarks = [NO_WATERMARK if run.mark_ms is None else run.mark_ms for run in runs]
        streams = np.array([run.stream for run in runs], np.int64)
        of_record = np.repeat(streams, lengths), np.repeat(np.array(watermarks, np.int64), lengths)
        known = frozenset(streams[np.array(lengths, np.int64) > 0].tolist())
        return cls(columns, ts_ms, *of_record, known, extras or {}, event_time)

    def __len__(self) -> int:
        return len(self.stream)

    def part(self, first: int, stop: int) -> "Records":
        """Return the records [first, stop)."""
        stream = self.stream[first:stop]
        return Records(
            self.columns.slice(first, stop - first),
            self.ts_ms[first:stop],
            stream,
            self.mark_ms[first:stop],
            frozenset(np.unique(stream).tolist()),
            {name: values[first:stop] for name, values in self.extras.items()},
            self.event_time,
        )

    def to_table(self, rows: Int64s) -> Any:
        """Return some of the records as a table: stream, event time, and the columns."""
        index = pa.array(rows)
        times = pa.array(self.ts_ms[rows]).view(TIME)
        result = {"stream": pa.array(self.stream[rows]), self.event_time or "event time": times}
        return pa.table(
            result | {n: self.columns[n].take(index) for n in self.columns.column_names}
        )

    def dropped(self, name: str) -> NDArray[np.float64]:
        """Return the probabilities in a column of split nodes."""
        bits = self.extras.get(name)
        return np.zeros(len(self)) if bits is None else bits.view(np.float64)

    @cached_property
    def evaluator(self) -> Evaluator:
        """Return what evaluates expressions over these records."""
        names = self.columns.column_names
        columns = {name: _whole(self.columns[name]) for name in names}
        return _evaluator(columns, self.ts_ms, self.event_time, self.stream)

    def is_late(self, lateness_ms: int) -> NDArray[np.bool_]:
        """Return which records are older than the watermark of their block allows.

        The newest event time before a block is part of the log, so that what is late does not
        depend on how the log was cut into batches.
        """
        known = self.mark_ms != NO_WATERMARK
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


def evaluator_of(stream: int, columns: Any, ts_ms: Int64s, event_time: str) -> Evaluator:
    """Return what evaluates expressions over records of one stream; arguments as of `Records`."""
    by_name = dict(zip(columns.schema.names, columns.columns, strict=True))
    return _evaluator(by_name, ts_ms, event_time, np.full(len(ts_ms), stream, np.int64))


def _evaluator(columns: dict[str, Any], ts_ms: Int64s, event_time: str, stream: Any) -> Evaluator:
    if event_time:
        columns[event_time] = pa.array(ts_ms).view(TIME)
    return Evaluator({**columns, STREAM: pa.array(stream)}, len(ts_ms))


def sample_of(rows: Any) -> str:
    """Return the first rows of a table as a JSON array of at most 2,000 characters."""
    names = rows.column_names[:_COLUMNS]
    result: list[str] = []
    left = LONGEST - 2
    for row in rows.select(names).slice(0, _ROWS).to_pylist():
        text = _row(row, LONGEST - 2 if not result else left)
        if len(text) > left:
            break
        result.append(text)
        left -= len(text) + 2
    return f"[{', '.join(result)}]"


def _row(row: Mapping[str, Any], longest: int) -> str:
    """Return a row as JSON, without columns that do not fit."""
    text = ""
    for name, value in row.items():
        pair = f"{json.dumps(name)}: {json.dumps(_plain(value))}"
        if len(text) + len(pair) + 4 <= longest:
            text += f", {pair}" if text else pair
    return f"{{{text}}}"


def _plain(value: Any) -> Any:
    """Return a value for JSON; a value that is long or has no JSON type becomes short text."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def sample_of_records(records: Records, streams: frozenset[int]) -> str:
    """Return the first records of these streams with the id of their stream."""
    selected = np.flatnonzero(np.isin(records.stream, list(streams)))[:_ROWS]
    return sample_of(records.to_table(selected))


def sample_of_query(query: int, *tables: Any) -> str:
    """Return the first rows of a query in the first of these tables that has some."""
    for rows in tables:
        selected = np.flatnonzero(np.asarray(rows["query"]) == query)[:_ROWS]
        if len(selected):
            return sample_of(rows.take(pa.array(selected)))
    return ""
