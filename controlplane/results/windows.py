"""Windows as they are stored: pages in the order of starts and keys, and changes in theirs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from controlplane.results.database import is_postgres, results_cursor
from controlplane.results.filters import WindowState
from controlplane.results.values import RawWindow
from controlplane.wire.aggregates.sampling import Sampled
from controlplane.wire.results.json_values import from_json
from controlplane.wire.results.places import START_BYTES, start_bytes, start_of

# Starts of windows are between these (ms).
FIRST_MS: Final = -(2**62)
LAST_MS: Final = 2**62
_COLUMNS: Final = "start_ms, key, key_json, value_json, batch, changed_ms, records, sample"


@dataclass(frozen=True, slots=True)
class Finality:
    """Which windows of a query are final: those that start at or before `final_ms`, None for none.

    `is_closed`: nothing writes to the query any more.
    """

    final_ms: int | None = None
    is_closed: bool = False

    def state_of(self, start_ms: int) -> WindowState:
        """Return the state of a window by its start."""
        if self.final_ms is not None and start_ms <= self.final_ms:
            return WindowState.FINAL
        return WindowState.INCOMPLETE if self.is_closed else WindowState.OPEN

    def starts_of(self, state: WindowState | None) -> tuple[int, int]:
        """Return the first and the last possible start of windows in a state, None for all."""
        final_ms = FIRST_MS if self.final_ms is None else self.final_ms
        if state is None:
            return FIRST_MS, LAST_MS
        if state is WindowState.FINAL:
            return FIRST_MS, final_ms
        if self.is_closed is (state is WindowState.INCOMPLETE):
            return final_ms + 1, LAST_MS
        return LAST_MS, FIRST_MS


@dataclass(frozen=True, slots=True)
class WindowRange:
    """A part of a query's windows: `first_ms` ≤ start ≤ `last_ms`, after the place `after`.

    `key`: the bytes of one key, None for all.
    """

    query_id: int
    first_ms: int = FIRST_MS
    last_ms: int = LAST_MS
    key: bytes | None = None
    after: bytes = b""
    limit: int = 1000
    newest_first: bool = True


def finality_of(query_id: int) -> Finality:
    """Return which windows of a query are final."""
    with results_cursor() as cursor:
        cursor.execute(
            "SELECT final_ms, is_closed FROM results_query WHERE query_id = %s", [query_id]
        )
        row = cursor.fetchone()
    return Finality() if row is None else Finality(row[0], bool(row[1]))


def read_windows(wanted: WindowRange, finality: Finality) -> list[RawWindow]:
    """Return windows in the order of their places."""
    conditions = ["query_id = %s", "start_ms >= %s", "start_ms <= %s"]
    first, last = wanted.first_ms, wanted.last_ms
    order = "start_ms {0}, key {0}".format("DESC" if wanted.newest_first else "ASC")
    sign, place, table = "<" if wanted.newest_first else ">", list[Any](), "results_window"
    if wanted.after:
        # SQLite finds the start by a bound of its own, and not by that of both columns.
        start = start_of(wanted.after)
        first, last = (
            (first, min(last, start)) if wanted.newest_first else (max(first, start), last)
        )
        conditions.append(f"(start_ms, key) {sign} (%s, %s)")
        place = [start, wanted.after[START_BYTES:]]
    values: list[Any] = [wanted.query_id, first, last, *place]
    if wanted.key is not None:
        conditions.append("key = %s")
        values.append(wanted.key)
        # SQLite would look at the windows of all keys.
        table += "" if is_postgres() else " INDEXED BY results_window_key"
    text = f"SELECT {_COLUMNS} FROM {table} WHERE {' AND '.join(conditions)}"
    with results_cursor() as cursor:
        cursor.execute(f"{text} ORDER BY {order} LIMIT %s", [*values, wanted.limit])
        rows = cursor.fetchall()
    return [_window(row, finality) for row in rows]


def newest_seq(cluster: str) -> int:
    """Return the `seq` of the newest change of a cluster."""
    with results_cursor() as cursor:
        cursor.execute("SELECT seq FROM results_cluster WHERE cluster = %s", [cluster])
        row = cursor.fetchone()
    return 0 if row is None else int(row[0])


def changed_windows(
    query_id: int, seq: int, limit: int, finality: Finality
) -> list[tuple[int, RawWindow]]:
    """Return the windows that changed after `seq`, each with its own, the oldest change first."""
    with results_cursor() as cursor:
        cursor.execute(
            f"SELECT {_COLUMNS}, seq FROM results_window WHERE query_id = %s AND seq > %s"
            " ORDER BY seq LIMIT %s",
            [query_id, seq, limit],
        )
        rows = cursor.fetchall()
    return [(row[-1], _window(row[:-1], finality)) for row in rows]


def _window(row: Sequence[Any], finality: Finality) -> RawWindow:
    start_ms, key, key_json, value_json, batch, changed_ms, records, sample = row
    sampled = None if sample is None else Sampled(records, *json.loads(sample))
    return RawWindow(
        start_bytes(start_ms) + bytes(key), from_json(key_json), from_json(value_json), batch,
        finality.state_of(start_ms), changed_ms, sampled=sampled,
    )  # fmt: skip
