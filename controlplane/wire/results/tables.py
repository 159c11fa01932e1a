"""The tables of results, in SQLite and PostgreSQL.

`results_window` has a row per query, start (ms) and key: `key` is the key as bytes in its order
(`places.py`), `key_json` and `value_json` are JSON arrays in the order of the query's key and
aggregates (`json_values.py`). `records` counts the records of the window, `sample` is the estimated
number of others that drop rules dropped and its variance, null for none. `batch` is the newest
micro-batch that wrote the row. `seq` grows with each change of a value within a cluster, and
`changed_ms` is the time of that change. `state` and `cells` are the accumulators (`parts.py`).

`results_query` has the number that determines which windows of a query are final: those that start
at or before `final_ms`. `is_closed`: nothing writes to the query any more, so its other windows are
incomplete. `results_deleted` has up to which start retention has deleted windows of a query.
`results_cluster` has the newest `seq` of a cluster, `results_schema` the names of the state schemas
of its accumulators.
`results_file` has the files that sources of streams have found (`workers.pipeline.sources.files`).

In PostgreSQL windows are partitioned by the day of their start, so that retention drops tables, and
`results_window_started` lets views find windows by their start as a time.
Days beyond `MAX_PARTITIONS` share the default partition. Drivers reach the rows of their cluster
(`DRIVER_PRIVILEGES`, `controlplane.results.sql.drivers`).
"""

import re
from collections.abc import Iterable
from typing import Any, Final

from controlplane.wire.errors import WireError

DAY_MS: Final = 86_400_000
# The first and the last moment (ms) of the years 1 to 9999.
_CALENDAR_MS: Final = (-62_135_596_800_000, 253_402_300_799_999)
MAX_PARTITIONS: Final = 400
COLUMNS: Final = (
    "query_id", "start_ms", "key", "key_json", "value_json", "records", "sample", "state", "cells",
    "batch", "seq", "changed_ms",
)  # fmt: skip
_WINDOW: Final = """
CREATE TABLE IF NOT EXISTS results_window (
    query_id BIGINT NOT NULL, start_ms BIGINT NOT NULL, key {bytes} NOT NULL,
    key_json TEXT NOT NULL, value_json TEXT NOT NULL, records BIGINT NOT NULL, sample TEXT,
    state {bytes}, cells {bytes}, batch BIGINT NOT NULL, seq BIGINT NOT NULL,
    changed_ms BIGINT NOT NULL, PRIMARY KEY (query_id, start_ms, key)) {options}
"""
_OTHERS: Final = (
    "CREATE INDEX IF NOT EXISTS results_window_seq ON results_window (query_id, seq)",
    "CREATE INDEX IF NOT EXISTS results_window_key ON results_window (query_id, key, start_ms)",
    "CREATE TABLE IF NOT EXISTS results_query (query_id BIGINT PRIMARY KEY, cluster TEXT NOT NULL,"
    " final_ms BIGINT, is_closed BOOLEAN NOT NULL DEFAULT FALSE)",
    "CREATE INDEX IF NOT EXISTS results_query_cluster ON results_query (cluster)",
    "CREATE TABLE IF NOT EXISTS results_deleted (query_id BIGINT PRIMARY KEY,"
    " until_ms BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS results_cluster (cluster TEXT PRIMARY KEY, seq BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS results_file (cluster TEXT NOT NULL, stream BIGINT NOT NULL,"
    " identity TEXT NOT NULL, number BIGINT NOT NULL, part BIGINT NOT NULL, start BIGINT NOT NULL,"
    " rows BIGINT NOT NULL, name TEXT NOT NULL, size BIGINT NOT NULL, modified_ns BIGINT NOT NULL,"
    " places TEXT NOT NULL, names TEXT NOT NULL, fault TEXT NOT NULL,"
    " PRIMARY KEY (cluster, stream, identity, number))",
    "CREATE TABLE IF NOT EXISTS results_schema (cluster TEXT NOT NULL, number BIGINT NOT NULL,"
    " name TEXT NOT NULL, PRIMARY KEY (cluster, number))",
)
# Formatted with rows of query and time (ms): VALUES or SELECT.
DELETED: Final = (
    "INSERT INTO results_deleted (query_id, until_ms) {values} ON CONFLICT (query_id)"
    " DO UPDATE SET until_ms = excluded.until_ms"
    " WHERE results_deleted.until_ms < excluded.until_ms"
)


def clamped(ms: str, greatest: str, least: str) -> str:
    """Return an expression for a time (ms) within the years 1 to 9999.

    `greatest`, `least`: the database's functions of the largest and the smallest argument.
    """
    first, last = _CALENDAR_MS
    return f"{greatest}({least}({ms}, {last}), {first})"


# The start of a window as PostgreSQL's time.
STARTED: Final = f"to_timestamp({clamped('start_ms', 'GREATEST', 'LEAST')} / 1000.0::float8)"


_TABLE: Final = re.compile(r"\s*CREATE TABLE IF NOT EXISTS (\w+) ")
_COLUMN: Final = re.compile(r"(\w+) (?:BIGINT|BLOB|BOOLEAN|BYTEA|TEXT)\b")


class EarlierTable(WireError):
    """A table of results is of an earlier version of Weir, which none converts."""

    def __init__(self, table: str) -> None:
        super().__init__(f"the table {table} has other columns: it is of an earlier version")


def create_tables(cursor: Any, *, is_postgres: bool) -> None:
    """Create the tables that do not exist. Raises `EarlierTable`."""
    kind = "BYTEA" if is_postgres else "BLOB"
    options = "PARTITION BY RANGE (start_ms)" if is_postgres else "WITHOUT ROWID"
    for statement in (_WINDOW.format(bytes=kind, options=options), *_OTHERS):
        cursor.execute(statement)
        if table := _TABLE.match(statement):
            cursor.execute(f"SELECT * FROM {table[1]} LIMIT 0")  # noqa: S608
            if [column[0] for column in cursor.description] != _COLUMN.findall(statement):
                raise EarlierTable(table[1])
    if is_postgres:
        cursor.execute(
            "CREATE TABLE IF NOT EXISTS results_window_other PARTITION OF results_window DEFAULT"
        )
        cursor.execute(
            "CREATE INDEX IF NOT EXISTS results_window_started"
            f" ON results_window (query_id, ({STARTED}))"
        )
        _restrict_drivers(cursor)


def partitions(cursor: Any) -> dict[int, str]:
    """Return the partitions of PostgreSQL by day, without the default one."""
    cursor.execute(
        "SELECT inhrelid::regclass::text FROM pg_inherits"
        " WHERE inhparent = 'results_window'::regclass"
    )
    names = [name for (name,) in cursor.fetchall()]
    return {_day_of(name): name for name in names if not name.endswith("_other")}


def _day_of(name: str) -> int:
    # The minus of a day before 1970 is an m.
    return int(name.rpartition("_day_")[2].replace("m", "-"))


def create_partitions(cursor: Any, days: Iterable[int]) -> None:
    """Create the partitions of days that have none, unless there are too many.

    A day whose rows are in the default partition already gets none.
    """
    cursor.execute("SELECT results_partitions(%s::bigint[])", [sorted(set(days))])


# Drivers are not the owner of the table, who alone may create partitions.
_PARTITIONS: Final = f"""
CREATE OR REPLACE FUNCTION results_partitions(days bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {{schema}}, pg_temp AS $$
DECLARE day bigint; name text; first_ms bigint; room bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('results_window'));
    -- The default partition is one of them.
    SELECT {MAX_PARTITIONS + 1} - count(*) INTO room FROM pg_inherits
    WHERE inhparent = 'results_window'::regclass;
    FOR day IN SELECT DISTINCT item FROM unnest(days) item ORDER BY item DESC LOOP
        name := 'results_window_day_' || replace(day::text, '-', 'm');
        first_ms := day * {DAY_MS};
        IF room > 0 AND to_regclass(name) IS NULL AND NOT EXISTS (
            SELECT 1 FROM results_window_other
            WHERE start_ms >= first_ms AND start_ms < first_ms + {DAY_MS}
        ) THEN
            EXECUTE format('CREATE TABLE %I PARTITION OF results_window FOR VALUES FROM (%s)'
                ' TO (%s)', name, first_ms, first_ms + {DAY_MS});
            room := room - 1;
        END IF;
    END LOOP;
END $$
"""  # noqa: S608 - numbers of this module
# The login of a driver is `<prefix>.<database>.<cluster>`. The owner is not restricted.
_OF_CLUSTER: Final = "cluster = split_part(current_user::text, '.', 3)"
# Of `results_query` a driver sees the rows of its cluster.
_OF_QUERIES: Final = "query_id IN (SELECT query_id FROM results_query)"
# By table: which rows a driver reaches, and its privileges.
DRIVER_PRIVILEGES: Final = {
    "results_window": (_OF_QUERIES, "SELECT, INSERT, UPDATE, DELETE"),
    "results_query": (_OF_CLUSTER, "SELECT, INSERT (query_id, cluster)"),
    "results_deleted": (_OF_QUERIES, "SELECT"),
    "results_cluster": (_OF_CLUSTER, "SELECT, INSERT, UPDATE"),
    "results_schema": (_OF_CLUSTER, "SELECT, INSERT"),
    "results_file": (_OF_CLUSTER, "SELECT, INSERT, DELETE"),
}


TABLES: Final = (*DRIVER_PRIVILEGES,)


def _restrict_drivers(cursor: Any) -> None:
    cursor.execute("SELECT quote_ident(current_schema())")
    (schema,) = cursor.fetchone()
    cursor.execute(_PARTITIONS.format(schema=schema))
    cursor.execute("REVOKE EXECUTE ON FUNCTION results_partitions FROM PUBLIC")
    cursor.execute("SELECT tablename FROM pg_policies WHERE policyname = 'drivers'")
    restricted = {name for (name,) in cursor.fetchall()}
    for table, (rows, _) in DRIVER_PRIVILEGES.items():
        if table not in restricted:
            cursor.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
            cursor.execute(f"CREATE POLICY drivers ON {table} USING ({rows})")
