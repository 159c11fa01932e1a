"""Writing of changed windows: one upsert per transaction, guarded by the number of the batch.

A row of an older batch does not replace a newer one, and a repeated batch changes nothing. The
first statement that reads locks the row of the cluster until the commit, so values of `seq` are
visible in their order. A change of a window that is final by then is a correction: it has a part of
a stream that was idle, or a wider type. It is skipped if the query is closed, or if retention may
have deleted the window, as the row would lack its other records.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
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
from controlplane.wire.results.statements import HAS_SAME_PART, Numbered, Statements
from controlplane.wire.results.tables import DAY_MS, create_partitions

# Windows of one transaction, about.
FLUSH_ROWS: Final = 20_000


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
            self._names |= schema_numbers([name])
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
        if len(self._rows) + len(self._single) + len(self._parts) >= FLUSH_ROWS:
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
        if len(merged):
            self._take_parts(name, merged)

    def _take_parts(self, name: str, table: Any) -> None:
        """Take parts of windows; those without sketches and samples as if they had no other."""
        is_single = ~np.isin(np.asarray(table["query"]), list(self._sketched))
        if section_of(name) == SLOTS:
            is_single &= np.asarray(table["s0"]) >= 0
        if is_single.any():
            single = table.filter(pa.array(is_single)).combine_chunks()
            self._take_single(plain_rows(name, single, self._queries))
        others = table.filter(pa.array(~is_single)).combine_chunks()
        for query, member, section, data in changed_parts(name, others) if len(others) else ():
            place = query, start_of(member), member[START_BYTES:-PART_BYTES]
            self._parts_of(place)[member[-PART_BYTES:], section] = data

    def _take_single(self, rows: Sequence[StoredWindow]) -> None:
        new = {row[:3]: row for row in rows}
        is_known = not (self._single.keys().isdisjoint(new) and self._parts.keys().isdisjoint(new))
        if len(new) == len(rows) and not is_known:
            self._single |= new
            return
        for row in rows:
            known = self._single.get(row[:3])
            is_new = known is None and row[:3] not in self._parts
            if is_new or (known is not None and known.state[:PART_BYTES] == row.state[:PART_BYTES]):
                self._single[row[:3]] = row
            else:
                self._parts_of(row[:3]).update(decode(row.state))

    def _parts_of(self, place: Place) -> Parts:
        """Return the parts of a window, which has others than a single one from now on."""
        if place not in self._parts:
            single = self._single.pop(place, None)
            self._parts[place] = {} if single is None else decode(single.state)
        return self._parts[place]

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
        changed = (self._rows, self._single, self._parts)
        if not (any(changed) or self._deleted):
            return
        if self.database.is_postgres:
            days = {place[1] // DAY_MS for places in changed for place in places}
            if new := days - self._known_days:
                self.database.run(lambda cursor: create_partitions(cursor, new))
                self._known_days |= new
        # Before the lock, which others wait for.
        plain = _numbered(self._rows, 1)
        single = _numbered(self._single, 1 + len(plain))
        self.database.run(lambda cursor: self._write(cursor, plain, single))
        self._known_names |= self._names.keys()
        self._rows, self._parts, self._single, self._deleted = {}, {}, {}, set()
        self._merged, self._sketched, self._queries = set(), set(), {}

    def _write(self, cursor: Any, plain: list[Numbered], single: list[Numbered]) -> None:
        """Write windows without other parts, single parts of others, and merged windows."""
        statements = Statements(cursor, self.database.is_postgres)
        statements.stage([*plain, *single])
        count = len(plain) + len(single) + len(self._parts)
        version = statements.version(self.cluster, self.batch, count)
        places = [*self._rows, *self._single, *self._parts, *self._deleted]
        skipped = statements.skipped(self.cluster, places)
        if skipped:
            plain, single = _without(plain, skipped), _without(single, skipped)
            statements.stage([*plain, *single])
        statements.add_names(self.cluster, self._names, self._known_names)
        for place in self._deleted - skipped:
            statements.delete(place, self.batch)
        statements.upsert(plain, version)
        changed = {place: (number, self._parts[place]) for number, place in enumerate(
            self._parts, 1 + count - len(self._parts)) if place not in skipped}  # fmt: skip
        if statements.upsert(single, version, HAS_SAME_PART) < len(single):
            # Some have other parts, or a newer batch wrote them.
            changed |= {row[:3]: (row[-1], decode(self._single[row[:3]].state)) for row in single}
        if changed:
            self._write_parts(statements, changed, version)

    def _write_parts(
        self,
        statements: Statements,
        changed: Mapping[Place, tuple[int, Parts]],
        version: tuple[int, int, int],
    ) -> None:
        """Merge changed parts with the stored ones, and write the windows with their numbers."""
        stored = statements.parts(list(changed))
        windows: dict[Place, Parts] = {}
        for place, (_, parts) in changed.items():
            batch, before = stored.get(place, (-1, {}))
            if batch > self.batch or (batch == self.batch and before == parts):
                continue
            merged = before | parts
            deleted = {
                part for (part, section), data in merged.items() if section == SLOTS and not data
            }
            windows[place] = {key: data for key, data in merged.items() if key[0] not in deleted}
            if not windows[place]:
                del windows[place]
                statements.delete(place, self.batch)
        names = statements.names(self.cluster)
        merged_windows = merged_rows(windows, self._queries, names)
        rows = sorted(((*row, changed[row[:3]][0]) for row in merged_windows), key=itemgetter(-1))
        statements.stage(rows)
        statements.upsert(rows, version)


def _numbered(windows: Mapping[Place, StoredWindow], first: int) -> list[Numbered]:
    return [(*row, number) for number, row in enumerate(windows.values(), first)]


def _without(rows: list[Numbered], skipped: Collection[Place]) -> list[Numbered]:
    return [row for row in rows if row[:3] not in skipped]


def _owned(rows: Any, query: int, incarnation: int) -> Any:
    """Return rows as those of a query."""
    for name, value in (("query", query), ("run", incarnation)):
        index = rows.schema.get_field_index(name)
        rows = rows.set_column(index, name, pa.array(np.full(len(rows), value, np.int64)))
    return rows


def _of_queries(rows: Any, known: Collection[int]) -> Any:
    selected = np.isin(np.asarray(rows["query"]), list(known))
    return rows if selected.all() else rows.filter(pa.array(selected))
