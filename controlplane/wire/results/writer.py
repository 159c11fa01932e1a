"""Writing of changed windows: one upsert per transaction, guarded by the number of the batch.

A row of an older batch does not replace a newer one, and a repeated batch changes nothing. The
first statement locks the row of the cluster until the commit, so values of `seq` are visible in
their order. A change of a window that is final by then is a correction: it has a part of a stream
that was idle, or a wider type. It is skipped if the query is closed, or if retention may have
deleted the window, as the row would lack its other records.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from controlplane.child_processes.garbage_collection import without_garbage_collection
from controlplane.wire.aggregates.state_schema import schema_named
from controlplane.wire.results.database import ResultsDatabase
from controlplane.wire.results.finalized import (
    Place,
    ResultQuery,
    StoredWindow,
    merged_rows,
    plain_rows,
)
from controlplane.wire.results.parts import Parts, changed_parts, decode, schema_numbers
from controlplane.wire.results.places import PART_BYTES, START_BYTES, members_of, start_of
from controlplane.wire.results.rows import SLOTS, key_columns, section_of
from controlplane.wire.results.tables import COLUMNS, DAY_MS, create_partitions

# Windows of one transaction, about.
FLUSH_ROWS: Final = 20_000
# Values of one statement that is not an upsert.
_CHUNK: Final = 500
# A start after all windows.
_FOREVER: Final = 2**62
_KEY: Final = "query_id, start_ms, key"
_NAMES: Final = ", ".join(COLUMNS)
_IS_SAME: Final = (
    "results_window.value_json = excluded.value_json AND results_window.records = excluded.records"
)
_UPSERT: Final = f"""
ON CONFLICT ({_KEY}) DO UPDATE SET
    value_json = excluded.value_json, records = excluded.records, state = excluded.state,
    sample = COALESCE(excluded.sample, results_window.sample),
    cells = COALESCE(excluded.cells, results_window.cells), batch = excluded.batch,
    seq = CASE WHEN {_IS_SAME} THEN results_window.seq ELSE excluded.seq END,
    changed_ms = CASE WHEN {_IS_SAME} THEN results_window.changed_ms ELSE excluded.changed_ms END
WHERE excluded.batch >= results_window.batch
"""
_INSERT: Final = f"INSERT INTO results_window ({_NAMES}) "
_STAGE: Final = (
    "CREATE TEMP TABLE IF NOT EXISTS staged AS SELECT * FROM results_window WITH NO DATA",
    "TRUNCATE staged",
)
_TYPES: Final = (
    "int8", "int8", "bytea", "text", "text", "int8", "text", "bytea", "bytea", "int8", "int8",
    "int8",
)  # fmt: skip
_NEXT_SEQ: Final = (
    "INSERT INTO results_cluster (cluster, seq) VALUES (?, ?) ON CONFLICT (cluster)"
    " DO UPDATE SET seq = results_cluster.seq + excluded.seq RETURNING seq"
)


@dataclass
class WindowWriter:
    """Collects the changed windows of a batch of one cluster and writes them.

    `queries`: what determines the results of the queries with a changed window.
    """

    database: ResultsDatabase
    cluster: str
    batch: int = 0
    _rows: dict[Place, StoredWindow] = field(default_factory=dict)
    _parts: dict[Place, Parts] = field(default_factory=dict)
    # Windows of which this batch has one part, finalized as if there were no other.
    _single: dict[Place, StoredWindow] = field(default_factory=dict)
    _deleted: set[Place] = field(default_factory=set)
    _merged: set[int] = field(default_factory=set)
    _sketched: set[int] = field(default_factory=set)
    _queries: dict[int, ResultQuery] = field(default_factory=dict)
    _names: dict[int, str] = field(default_factory=dict)
    _known_names: set[int] = field(default_factory=set)
    _known_days: set[int] = field(default_factory=set)

    @without_garbage_collection()
    def take(
        self,
        batch: int,
        tables: Sequence[tuple[str, Any]],
        queries: Callable[[Collection[int]], Mapping[int, ResultQuery]],
    ) -> None:
        """Take changed windows as nodes emit them: names of state schemas, and rows.

        `queries`: returns what determines the results of queries; windows of others are ignored.
        """
        self._begin(batch)
        ids = {
            query for _, rows in tables for query in np.unique(np.asarray(rows["query"])).tolist()
        }
        known = queries(ids)
        self._queries |= known
        # Sketches and samples are merged, and then all windows of their queries in this batch.
        for name, rows in tables:
            if section_of(name) != SLOTS:
                self._sketched.update(np.unique(np.asarray(rows["query"])).tolist())
        self._sketched.update(query for query, item in known.items() if item.has_sketches)
        self._merged.update(query for query, item in known.items() if item.is_merged)
        self._merged |= self._sketched
        for name, rows in tables:
            if len(rows):
                self._take_table(name, _of_queries(rows, known.keys()))
        self._flush_full()

    @without_garbage_collection()
    def take_shared(
        self,
        batch: int,
        recipients: Sequence[tuple[int, int]],
        tables: Sequence[tuple[str, Any]],
        queries: Callable[[Collection[int]], Mapping[int, ResultQuery]],
    ) -> None:
        """Take windows of several queries that have the same ones.

        `recipients`: query and incarnation of each.
        """
        known = queries([query for query, _ in recipients])
        is_plain = all(section_of(name) == SLOTS for name, _ in tables)
        plain = [query for query, item in known.items() if is_plain and not item.is_merged
                 and query not in self._merged]  # fmt: skip
        for query, incarnation in recipients:
            if query in known and query not in plain:
                some = [(name, _owned(rows, query, incarnation)) for name, rows in tables]
                self.take(batch, some, queries)
        if not plain:
            return
        self._begin(batch)
        for name, rows in tables:
            own = _owned(rows, plain[0], 0)
            finalized = plain_rows(name, own, {plain[0]: known[plain[0]]})
            for query in plain:
                self._rows |= {
                    (query, *row[1:3]): StoredWindow(query, *row[1:]) for row in finalized
                }
                self._flush_full()

    def _begin(self, batch: int) -> None:
        if batch != self.batch:
            self.flush()
            self.batch = batch

    def _flush_full(self) -> None:
        if len(self._rows) + len(self._parts) >= FLUSH_ROWS:
            self.flush()

    def _take_table(self, name: str, table: Any) -> None:
        table = table.combine_chunks()
        queries = np.asarray(table["query"])
        is_merged = np.isin(queries, list(self._merged))
        if section_of(name) == SLOTS:
            # A deletion concerns one part.
            is_deleted = np.asarray(table["s0"]) < 0
            plain = table.filter(pa.array(~is_merged & ~is_deleted))
            if len(plain):
                rows = plain_rows(name, plain.combine_chunks(), self._queries)
                self._rows.update({row[:3]: row for row in rows})
            self._delete(name, table.filter(pa.array(~is_merged & is_deleted)))
        self._names |= schema_numbers([name])
        merged = table.filter(pa.array(is_merged)).combine_chunks()
        if not len(merged):
            return
        for query, member, section, data in changed_parts(name, merged):
            place = query, start_of(member), member[START_BYTES:-PART_BYTES]
            self._parts.setdefault(place, {})[member[-PART_BYTES:], section] = data
        if section_of(name) == SLOTS:
            self._take_single(name, merged)

    def _take_single(self, name: str, table: Any) -> None:
        """Finalize the windows of queries without sketches and samples that have one part."""
        queries = np.asarray(table["query"])
        plain = [query for query in np.unique(queries).tolist() if query not in self._sketched]
        selected = np.isin(queries, plain) & (np.asarray(table["s0"]) >= 0)
        if selected.any():
            rows = plain_rows(name, table.filter(pa.array(selected)), self._queries)
            self._single |= {row[:3]: row for row in rows if len(self._parts[row[:3]]) == 1}

    def _delete(self, name: str, table: Any) -> None:
        for query, member in zip(
            np.asarray(table["query"]).tolist(),
            members_of(table, key_columns(schema_named(name))) if len(table) else [],
            strict=True,
        ):
            place = query, start_of(member), member[START_BYTES:-PART_BYTES]
            self._rows.pop(place, None)
            self._deleted.add(place)

    @without_garbage_collection()
    def flush(self) -> None:
        """Write what was taken in one transaction; a repetition changes nothing."""
        if not (self._rows or self._parts or self._deleted):
            return
        if self.database.is_postgres:
            days = {place[1] // DAY_MS for places in (self._rows, self._parts) for place in places}
            if new := days - self._known_days:
                self.database.run(lambda cursor: create_partitions(cursor, new))
                self._known_days |= new
        self.database.run(self._write)
        self._known_names |= self._names.keys()
        self._rows, self._parts, self._single, self._deleted = {}, {}, {}, set()
        self._merged, self._sketched, self._queries = set(), set(), {}

    def _write(self, cursor: Any) -> None:
        statements = _Statements(cursor, self.database.is_postgres)
        count = len(self._rows) + len(self._parts)
        seq = statements.values(_NEXT_SEQ, [self.cluster, count])[0][0] - count
        places = [*self._rows, *self._parts, *self._deleted]
        final = statements.final(self.cluster, sorted({place[0] for place in places}))
        version = self.batch, seq, time.time_ns() // 1_000_000
        skipped = statements.skipped(places, final)
        for place in self._deleted - skipped:
            statements.delete(place, self.batch)
        rows = [row for place, row in self._rows.items() if place not in skipped]
        statements.upsert(rows, version)
        self._write_parts(statements, skipped, (self.batch, seq + len(rows), version[2]))

    def _write_parts(
        self, statements: "_Statements", skipped: Collection[Place], version: tuple[int, int, int]
    ) -> None:
        """Merge the changed parts with the stored ones, and write the windows."""
        changed = {place: parts for place, parts in self._parts.items() if place not in skipped}
        if not changed:
            return
        names = statements.names(self.cluster, self._names, self._known_names)
        stored = statements.parts(list(changed))
        windows: dict[Place, Parts] = {}
        rows: list[StoredWindow] = []
        for place, parts in changed.items():
            batch, before = stored.get(place, (-1, {}))
            if batch > self.batch:
                continue
            single = None if place[0] in self._sketched else self._single.get(place)
            if single is not None and len(parts) == 1 and before.keys() <= parts.keys():
                rows.append(single)
                continue
            merged = before | parts
            deleted = {
                part for (part, section), data in merged.items() if section == SLOTS and not data
            }
            windows[place] = {key: data for key, data in merged.items() if key[0] not in deleted}
            if not windows[place]:
                del windows[place]
                statements.delete(place, self.batch)
        rows += merged_rows(windows, self._queries, names)
        statements.upsert(rows, version)


def _owned(rows: Any, query: int, incarnation: int) -> Any:
    """Return rows as those of a query."""
    for name, value in (("query", query), ("run", incarnation)):
        index = rows.schema.get_field_index(name)
        rows = rows.set_column(index, name, pa.array(np.full(len(rows), value, np.int64)))
    return rows


def _of_queries(rows: Any, known: Collection[int]) -> Any:
    selected = np.isin(np.asarray(rows["query"]), list(known))
    return rows if selected.all() else rows.filter(pa.array(selected))


@dataclass(frozen=True)
class _Statements:
    """The statements of one transaction, for both kinds of databases."""

    cursor: Any
    is_postgres: bool

    def values(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a statement with parameters."""
        self.run(statement, values)
        return list(self.cursor.fetchall())

    def run(self, statement: str, values: Sequence[Any]) -> None:
        """Run a statement with parameters."""
        text = statement.replace("?", "%s") if self.is_postgres else statement
        self.cursor.execute(text, tuple(values))

    def many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each row of parameters."""
        text = statement.replace("?", "%s") if self.is_postgres else statement
        self.cursor.executemany(text, rows)

    def final(self, cluster: str, queries: Sequence[int]) -> dict[int, int]:
        """Return up to which start windows are final, by query; register new queries."""
        known: dict[int, int | None] = {}
        for first in range(0, len(queries), _CHUNK):
            some = queries[first : first + _CHUNK]
            placeholders = ", ".join("?" * len(some))
            rows = self.values("SELECT query_id, final_ms, is_closed FROM results_query"
                               f" WHERE query_id IN ({placeholders})", some)  # fmt: skip
            known |= {query: _FOREVER if is_closed else ms for query, ms, is_closed in rows}
        if new := [(query, cluster) for query in queries if query not in known]:
            self.many(
                "INSERT INTO results_query (query_id, cluster) VALUES (?, ?)"
                " ON CONFLICT (query_id) DO NOTHING", new,
            )  # fmt: skip
        return {query: ms for query, ms in known.items() if ms is not None}

    def skipped(self, places: Iterable[Place], final: Mapping[int, int]) -> set[Place]:
        """Return the final windows that are not corrected."""
        late = [place for place in places if place[1] <= final.get(place[0], -_FOREVER)]
        skipped = {place for place in late if final[place[0]] == _FOREVER}
        for query in {place[0] for place in late}:
            for (until_ms,) in self.values(
                "SELECT until_ms FROM results_deleted WHERE query_id = ?", [query]
            ):
                old = {place for place in late if place[0] == query and place[1] <= until_ms}
                skipped |= old - self.parts(list(old)).keys()
        return skipped

    def names(self, cluster: str, new: Mapping[int, str], known: Collection[int]) -> dict[int, str]:
        """Store names of state schemas; return all that rows of the cluster refer to."""
        if unknown := [(cluster, *item) for item in new.items() if item[0] not in known]:
            self.many(
                "INSERT INTO results_schema (cluster, number, name) VALUES (?, ?, ?)"
                " ON CONFLICT (cluster, number) DO NOTHING", unknown,
            )  # fmt: skip
        named = "SELECT number, name FROM results_schema WHERE cluster = ?"
        return dict(self.values(named, [cluster]))

    def parts(self, places: Sequence[Place]) -> dict[Place, tuple[int, Parts]]:
        """Return the batch and the parts of the windows that are stored."""
        known: dict[Place, tuple[int, Parts]] = {}
        for first in range(0, len(places), _CHUNK):
            some = places[first : first + _CHUNK]
            placeholders = ", ".join(["(?, ?, ?)"] * len(some))
            values = [value for place in some for value in place]
            # In this form SQLite looks up each window; `IN` would read the whole table.
            rows = self.values(
                f"WITH wanted (wanted_id, wanted_ms, wanted_key) AS (VALUES {placeholders})"
                f" SELECT {_KEY}, batch, state, cells FROM wanted CROSS JOIN results_window"
                " WHERE query_id = wanted_id AND start_ms = wanted_ms AND key = wanted_key",
                values,
            )
            known |= {(query, start, bytes(key)): (batch, decode(state, cells))
                      for query, start, key, batch, state, cells in rows}  # fmt: skip
        return known

    def delete(self, place: Place, batch: int) -> None:
        """Delete a window unless a newer batch wrote it."""
        self.run(
            "DELETE FROM results_window WHERE query_id = ? AND start_ms = ? AND key = ?"
            " AND batch <= ?", [*place, batch],
        )  # fmt: skip

    def upsert(self, rows: Sequence[StoredWindow], version: tuple[int, int, int]) -> None:
        """Write windows with batch, the last `seq` before them, and the time."""
        batch, seq, now_ms = version
        full = [(*row, batch, seq + index, now_ms) for index, row in enumerate(rows, 1)]
        if not full:
            return
        if not self.is_postgres:
            placeholders = ", ".join("?" * len(COLUMNS))
            self.cursor.executemany(f"{_INSERT} VALUES ({placeholders}) {_UPSERT}", full)
            return
        for statement in _STAGE:
            self.cursor.execute(statement)
        with self.cursor.copy(f"COPY staged ({_NAMES}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(_TYPES)
            for row in full:
                copy.write_row(row)
        self.cursor.execute(f"{_INSERT} SELECT {_NAMES} FROM staged {_UPSERT}")
