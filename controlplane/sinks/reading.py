"""What a sink has to write next: changed results in the order of `seq`, then those that are final.

The position is that of the change feed. A result that changes after it was written as final is a
correction. A result is written as final once; with the mode every change also each time that it
changed before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

from controlplane.models import Cluster, Query, Sink
from controlplane.results.database import is_postgres, results_cursor
from controlplane.results.feed import FeedPlace, feed_start
from controlplane.results.windows import Finality, finality_of, newest_seq
from controlplane.sinks.columns import ResultRows, ResultTable, StoredResults
from controlplane.wire.aggregates.sampling import Sampled
from controlplane.wire.results.json_values import columns_from_json, from_json
from controlplane.wire.results.places import START_BYTES, start_bytes, start_of

_COLUMNS: Final = "start_ms, key, key_json, value_json, records, sample, changed_ms, seq"
_CHANGED: Final = (
    f"SELECT {_COLUMNS} FROM results_window {{index}} WHERE query_id = %s AND seq > %s"
    " {written} ORDER BY seq LIMIT %s"
)
# Else SQLite may look at all windows.
_INDEX: Final = "INDEXED BY results_window_seq"
_WRITTEN: Final = "AND start_ms <= %s AND (start_ms, key) <= (%s, %s)"
_FINAL: Final = (
    f"SELECT {_COLUMNS} FROM results_window WHERE query_id = %s AND start_ms >= %s"
    " AND start_ms <= %s AND (start_ms, key) > (%s, %s) ORDER BY start_ms, key LIMIT %s"
)
# Formatted with conditions.
_WAITING: Final = """
SELECT count(*) FROM (
    SELECT 1 FROM results_window WHERE query_id = %s AND {} LIMIT %s) AS waiting
"""
# Results that wait are counted up to this number.
MOST_COUNTED: Final = 100_000
_BEFORE_ALL: Final = -(2**62)


@dataclass(frozen=True)
class ResultBatch:
    """Results to write, and the position after all of them.

    `stored`: their rows as they are read: first `changes` by `seq`, then those that became final.
    `before`: the place of the last final window before. `is_last`: whether nothing more is to be
    read now. `corrected`: corrections that are in it, or were counted only.
    """

    rows: ResultRows
    stored: Sequence[Sequence[Any]]
    changes: int
    before: bytes
    position: FeedPlace
    is_last: bool = True
    corrected: int = 0

    def place(self, index: int) -> bytes:
        """Return the place of a result."""
        return _place(self.stored[index])

    def halves(self) -> tuple["ResultBatch", "ResultBatch"]:
        """Return its first and its second half; it has two results at least."""
        middle = len(self.rows) // 2
        between = FeedPlace(self.position.number, self.place(middle - 1))
        if middle <= self.changes:
            between = FeedPlace(self.stored[middle - 1][7], self.before)
        first = ResultBatch(self.rows[:middle], self.stored[:middle], min(self.changes, middle),
                            self.before, between, is_last=False)  # fmt: skip
        second = ResultBatch(
            self.rows[middle:], self.stored[middle:], max(0, self.changes - middle),
            between.final, self.position, self.is_last,
        )  # fmt: skip
        return first, second


@dataclass(frozen=True)
class ResultReader:
    """Reads the results of a query for a sink."""

    query_id: int
    cluster: str
    table: ResultTable
    is_final_only: bool
    counts_corrections: bool

    @classmethod
    def of(cls, sink: Sink, table: ResultTable) -> "ResultReader":
        """Return the reader of a sink."""
        return cls(
            sink.query_id, sink.query.cluster.slug, table,
            sink.mode == Sink.Mode.FINAL_ONLY, sink.corrections == Sink.Corrections.COUNT,
        )  # fmt: skip

    def batch(self, place: FeedPlace, limit: int) -> ResultBatch:
        """Return at most so many results after a position."""
        # Finality first: what is final by it has a `seq` up to the newest.
        finality = finality_of(self.query_id)
        newest = newest_seq(self.cluster)
        read = self._changed(place, limit)
        is_full = len(read) == limit
        number = read[-1][7] if is_full else max(newest, place.number)
        corrections = [row for row in read if _place(row) <= place.final]
        changed = corrections if not self.counts_corrections else []
        if not self.is_final_only:
            changed = sorted([*changed, *(row for row in read if not _is_final(row, finality))],
                             key=lambda row: row[7])  # fmt: skip
        # Only behind all changes: one of a later number would be taken for a correction.
        room = 0 if is_full else limit - len(changed)
        final = self._final(place, finality, room) if room else []
        is_last = not is_full and len(final) < room
        # One that was corrected since is read together with its change.
        final = list(takewhile(lambda row: row[7] <= newest, final))
        rows = [*changed, *final]
        last = FeedPlace(number, _place(final[-1]) if final else place.final)
        return ResultBatch(
            self.table.rows(stored_results(rows, finality)), rows, len(changed), place.final, last,
            is_last, len(corrections),
        )  # fmt: skip

    def _changed(self, place: FeedPlace, limit: int) -> list[Any]:
        index = "" if is_postgres() else _INDEX
        if not self.is_final_only:
            statement = _CHANGED.format(index=index, written="")
            return _rows(statement, [self.query_id, place.number, limit])
        if not place.final:
            return []
        start, key = _split(place.final)
        values = [self.query_id, place.number, start, start, key, limit]
        return _rows(_CHANGED.format(index=index, written=_WRITTEN), values)

    def _final(self, place: FeedPlace, finality: Finality, limit: int) -> list[Any]:
        if finality.final_ms is None:
            return []
        start, key = _split(place.final)
        return _rows(_FINAL, [self.query_id, start, finality.final_ms, start, key, limit])

    def waiting(self, place: FeedPlace) -> int:
        """Return how many results wait after a position, at most `MOST_COUNTED`."""
        final_ms = finality_of(self.query_id).final_ms
        start, key = _split(place.final)
        conditions, values = [], list[Any]()
        if not self.is_final_only:
            conditions.append("seq > %s")
            values.append(place.number)
        if final_ms is not None:
            conditions.append("(start_ms >= %s AND start_ms <= %s AND (start_ms, key) > (%s, %s))")
            values += [start, final_ms, start, key]
        if not conditions:
            return 0
        condition = " OR ".join(conditions)
        counted = _rows(_WAITING.format(f"({condition})"), [self.query_id, *values, MOST_COUNTED])
        return int(counted[0][0])


def results_at(query_id: int, places: Sequence[bytes]) -> list[tuple[bytes, StoredResults]]:
    """Return the results of windows with their places; a window may not be stored any more."""
    finality, results = finality_of(query_id), []
    for place in places:
        start, key = _split(place)
        rows = _rows(
            f"SELECT {_COLUMNS} FROM results_window WHERE query_id = %s AND start_ms = %s"
            " AND key = %s", [query_id, start, key],
        )  # fmt: skip
        if rows:
            results.append((place, stored_results(rows, finality)))
    return results


def place_from(cluster: Cluster, query: Query, start_ms: int | None, *, is_now: bool) -> FeedPlace:
    """Return where a sink begins: with the windows that start at a time, None for the oldest.

    `is_now`: with what changes from now on.
    """
    if is_now:
        return feed_start(cluster, query)
    if start_ms is None:
        return FeedPlace(0, b"")
    return FeedPlace(newest_seq(cluster.slug), start_bytes(start_ms - 1) + b"\xff")


def stored_results(rows: Sequence[Any], finality: Finality) -> StoredResults:
    """Return the results of rows, all decoded together."""
    if not rows:
        return StoredResults([], [], [], [], [], [], [])
    starts, _, keys, values, records, samples, changed_ms, seq = zip(*rows, strict=True)
    return StoredResults(
        starts, columns_from_json(keys), columns_from_json(values),
        [*map(_kept, records, samples)], changed_ms, seq,
        [_is_final(row, finality) for row in rows],
    )  # fmt: skip


def _kept(records: int, sample: str | None) -> float:
    return 1.0 if sample is None else Sampled(records, *from_json(sample)).kept


def _is_final(row: Sequence[Any], finality: Finality) -> bool:
    return finality.final_ms is not None and row[0] <= finality.final_ms


def _place(row: Sequence[Any]) -> bytes:
    return start_bytes(row[0]) + bytes(row[1])


def _split(place: bytes) -> tuple[int, bytes]:
    return (start_of(place), place[START_BYTES:]) if place else (_BEFORE_ALL, b"")


def _rows(statement: str, values: Sequence[Any]) -> list[Any]:
    with results_cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
