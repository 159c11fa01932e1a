"""All windows of a query in the database of results, for tests that look at whole results."""

import json
import os
from collections.abc import Sequence
from typing import Any

import redis

from controlplane.wire.aggregates.finalize import WindowRow
from controlplane.wire.aggregates.sampling import Sampled
from controlplane.wire.language.tree import Kind
from controlplane.wire.query import Computation
from controlplane.wire.results.database import ConnectedDatabase
from controlplane.wire.results.json_values import Raised, from_json
from controlplane.wire.results.tables import TABLES, create_tables

VARIABLE = "WEIR_RESULTS_URL"


def results_database() -> ConnectedDatabase:
    """Return the database that tests give to drivers, with its tables."""
    database = ConnectedDatabase(os.environ[VARIABLE])
    database.run(lambda cursor: create_tables(cursor, is_postgres=database.is_postgres))
    return database


def clear_results() -> None:
    """Delete all rows of the database that tests give to drivers."""

    def clear(cursor: Any) -> None:
        for table in TABLES:
            cursor.execute(f"DELETE FROM {table}")

    database = results_database()
    database.run(clear)
    database.close()


def rows_of(query: int) -> list[tuple[Any, ...]]:
    """Return start, key, values, batch, records, sample and seq of all windows, oldest first."""
    database = results_database()
    try:
        return database.run(
            lambda cursor: cursor.execute(
                "SELECT start_ms, key_json, value_json, batch, records, sample, seq"
                f" FROM results_window WHERE query_id = {query} ORDER BY start_ms, key"
            ).fetchall()
        )
    finally:
        database.close()


def read_windows(
    client: "redis.Redis", cluster: str, query: int, computation: Computation
) -> list[WindowRow]:
    """Return all windows of a query, oldest first."""
    return [_window(row, computation) for row in rows_of(query)]


def _named(columns: Sequence[tuple[str, Any]], text: str) -> dict[str, Any]:
    """Return values by name; NaN and infinities are texts in rows."""
    return {
        name: float(value) if column.kind is Kind.FLOAT and isinstance(value, str) else value
        for (name, column), value in zip(columns, from_json(text), strict=True)
    }


def _window(row: tuple[Any, ...], computation: Computation) -> WindowRow:
    start_ms, key_json, value_json, batch, records, sample, _ = row
    values = _named(computation.aggregates, value_json)
    errors = {name: value.error for name, value in values.items() if isinstance(value, Raised)}
    key = _named(computation.key, key_json)
    sampled = Sampled(records, *json.loads(sample)) if sample else None
    values |= dict.fromkeys(errors)
    return WindowRow(start_ms, key, values, batch, 1, errors, sampled=sampled)
