"""The statements by which changed windows are written, in SQLite and PostgreSQL."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from controlplane.wire.results.finalized import Place, StoredWindow
from controlplane.wire.results.parts import ENTRY, Parts, decode
from controlplane.wire.results.tables import COLUMNS

# Values of one statement that is not an upsert.
_CHUNK: Final = 500
# A start after all windows.
_FOREVER: Final = 2**62
_KEY: Final = "query_id, start_ms, key"
_NAMES: Final = ", ".join(COLUMNS)
_INSERT: Final = f"INSERT INTO results_window ({_NAMES})"
# The columns of a window; the others have one value for all windows of a write, but for `seq`.
_OWN: Final = ", ".join(COLUMNS[: len(StoredWindow._fields)])
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
# The stored window has the part of the new one alone: with equal sizes there is no room for others.
HAS_SAME_PART: Final = (
    f" AND substr(results_window.state, 1, {ENTRY.size}) = substr(excluded.state, 1, {ENTRY.size})"
    " AND length(results_window.state) = length(excluded.state) AND results_window.cells IS NULL"
)
_TYPES: Final = (
    "int8", "int8", "bytea", "text", "text", "int8", "text", "bytea", "bytea", "int8",
)  # fmt: skip
_COLUMNS: Final = ", ".join(map(" ".join, zip([*_OWN.split(", "), "seq"], _TYPES, strict=True)))
# Without a name of the table of windows, which would be locked.
_STAGE: Final = (f"CREATE TEMP TABLE IF NOT EXISTS staged ({_COLUMNS})", "TRUNCATE staged")
# Both databases look up each of the wanted windows in these forms, and never read all.
_STORED: Final = (
    f"WITH wanted (wanted_id, wanted_ms, wanted_key) AS (VALUES {{}}) SELECT {_KEY}, batch, state,"
    " cells FROM wanted CROSS JOIN results_window"
    " WHERE query_id = wanted_id AND start_ms = wanted_ms AND key = wanted_key"
)
_STORED_POSTGRES: Final = (
    f"SELECT {_KEY}, batch, state, cells FROM unnest(%s::bigint[], %s::bigint[], %s::bytea[])"
    " wanted (wanted_id, wanted_ms, wanted_key) CROSS JOIN LATERAL (SELECT * FROM results_window"
    " WHERE query_id = wanted_id AND start_ms = wanted_ms AND key = wanted_key"
    " AND start_ms BETWEEN %s AND %s OFFSET 0) stored"
)
# A window, and its place in the order of a write.
Numbered = tuple[Any, ...]
_NEXT_SEQ: Final = (
    "INSERT INTO results_cluster (cluster, seq) VALUES (?, ?) ON CONFLICT (cluster)"
    " DO UPDATE SET seq = results_cluster.seq + excluded.seq RETURNING seq"
)


@dataclass(frozen=True)
class Statements:
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

    def version(self, cluster: str, batch: int, count: int) -> tuple[int, int, int]:
        """Return the batch, the last `seq` before so many windows, and the time (ms)."""
        seq = self.values(_NEXT_SEQ, [cluster, count])[0][0] - count
        return batch, seq, time.time_ns() // 1_000_000

    def skipped(self, cluster: str, places: Collection[Place]) -> set[Place]:
        """Return the final windows that are not corrected; register new queries."""
        final = self._final(cluster, sorted({place[0] for place in places}))
        late = [place for place in places if place[1] <= final.get(place[0], -_FOREVER)]
        skipped = {place for place in late if final[place[0]] == _FOREVER}
        for query in {place[0] for place in late}:
            for (until_ms,) in self.values(
                "SELECT until_ms FROM results_deleted WHERE query_id = ?", [query]
            ):
                old = {place for place in late if place[0] == query and place[1] <= until_ms}
                skipped |= old - self.parts(list(old)).keys()
        return skipped

    def _final(self, cluster: str, queries: Sequence[int]) -> dict[int, int]:
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

    def add_names(self, cluster: str, new: Mapping[int, str], known: Collection[int]) -> None:
        """Store names of state schemas."""
        if unknown := [(cluster, *item) for item in new.items() if item[0] not in known]:
            self.many(
                "INSERT INTO results_schema (cluster, number, name) VALUES (?, ?, ?)"
                " ON CONFLICT (cluster, number) DO NOTHING", unknown,
            )  # fmt: skip

    def names(self, cluster: str) -> dict[int, str]:
        """Return the names of all state schemas that rows of the cluster refer to."""
        named = "SELECT number, name FROM results_schema WHERE cluster = ?"
        return dict(self.values(named, [cluster]))

    def parts(self, places: Sequence[Place]) -> dict[Place, tuple[int, Parts]]:
        """Return the batch and the parts of the windows that are stored."""
        rows: list[tuple[Any, ...]] = []
        if self.is_postgres and places:
            columns = [[*column] for column in zip(*places, strict=True)]
            rows = self.values(_STORED_POSTGRES, [*columns, min(columns[1]), max(columns[1])])
            places = ()
        for first in range(0, len(places), _CHUNK):
            some = places[first : first + _CHUNK]
            statement = _STORED.format(", ".join(["(?, ?, ?)"] * len(some)))
            rows += self.values(statement, [value for place in some for value in place])
        return {(query, start, bytes(key)): (batch, decode(state, cells))
                for query, start, key, batch, state, cells in rows}  # fmt: skip

    def delete(self, place: Place, batch: int) -> None:
        """Delete a window unless a newer batch wrote it."""
        self.run(
            "DELETE FROM results_window WHERE query_id = ? AND start_ms = ? AND key = ?"
            " AND batch <= ?", [*place, batch],
        )  # fmt: skip

    def stage(self, rows: Sequence[Numbered]) -> None:
        """Send the rows that are to be written, which PostgreSQL takes as a table."""
        if not (self.is_postgres and rows):
            return
        for statement in _STAGE:
            self.cursor.execute(statement)
        with self.cursor.copy(f"COPY staged ({_OWN}, seq) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(_TYPES)
            for row in rows:
                copy.write_row(row)

    def upsert(
        self, rows: Sequence[Numbered], version: tuple[int, int, int], guard: str = ""
    ) -> int:
        """Write windows that are staged; return of how many no newer row is stored.

        `guard`: another condition on the stored row.
        """
        if not rows:
            return 0
        batch, seq, now_ms = version
        if self.is_postgres:
            chosen = f"{_INSERT} SELECT {_OWN}, %s, %s + seq, %s FROM staged WHERE seq BETWEEN"
            values = *version, rows[0][-1], rows[-1][-1]
            self.cursor.execute(f"{chosen} %s AND %s {_UPSERT}{guard}", values)
        else:
            own = "?, " * (len(rows[0]) - 1)
            added = f"{batch}, {seq} + ?, {now_ms}"
            self.cursor.executemany(f"{_INSERT} VALUES ({own}{added}) {_UPSERT}{guard}", rows)
        return int(self.cursor.rowcount)
