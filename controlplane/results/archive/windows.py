"""Windows in the archive: writing many at once, reading a range in order, deleting the oldest."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from django.db import connections, transaction
from django.db.models import F, QuerySet

from controlplane.results.archive.models import ArchivedQuery, ArchivedWindow
from controlplane.results.archive.router import RESULTS
from controlplane.results.archive.values import from_json, to_json
from controlplane.wire.results.places import START_BYTES, start_of

# Rows per statement that deletes: the write lock is held for milliseconds.
CHUNK: Final = 2_000
_INSERT: Final = (
    "INSERT INTO archive_archivedwindow (query_id, place, start_ms, key_hash, key_json, "
    "values_json, batch, final_at_ms) VALUES (%s, %s, %s, %s, %s, %s, %s, %s) "
    "ON CONFLICT (query_id, place) DO NOTHING"
)
_COUNT: Final = (
    "INSERT INTO archive_archivedquery (query_id, cluster_id, windows, newest_ms) "
    "VALUES (%s, %s, %s, %s) ON CONFLICT (query_id) DO UPDATE SET "
    "windows = archive_archivedquery.windows + excluded.windows, newest_ms = "
    "CASE WHEN excluded.newest_ms > archive_archivedquery.newest_ms THEN excluded.newest_ms "
    "ELSE archive_archivedquery.newest_ms END"
)
_DELETE: Final = (
    "DELETE FROM archive_archivedwindow WHERE id IN (SELECT id FROM archive_archivedwindow "
    "WHERE query_id = %s AND place < %s ORDER BY place LIMIT %s)"
)
_COLUMNS: Final = ("place", "key_json", "values_json", "batch", "final_at_ms")
# After every place: no start has this first byte.
_END: Final = b"\xff" * (START_BYTES + 1)


@dataclass(frozen=True, slots=True)
class Archived:
    """A window as the archive has it: key and values in the order of the query's own.

    After the values is the sample that drop rules took, if they did. `final_at_ms`: when it became
    final, None if it did not.
    """

    place: bytes
    key: Sequence[Any]
    values: Sequence[Any]
    batch: int
    final_at_ms: int | None

    @property
    def start_ms(self) -> int:
        """Return when the window begins (event time, ms)."""
        return start_of(self.place)


@dataclass(frozen=True, slots=True)
class WindowRange:
    """A part of a query's windows: `least` ≤ place < `stop`.

    `key`: the bytes of one key; both bounds are then starts. `is_final`: None for all.
    """

    query_id: int
    least: bytes = b""
    stop: bytes = _END
    key: bytes | None = None
    is_final: bool | None = None
    limit: int = 1000
    newest_first: bool = True


def insert_all(cluster_id: int, windows: Mapping[int, Sequence[Archived]]) -> int:
    """Insert windows of queries and count them; return how many are new.

    An archived window is not replaced.
    """
    filled = {query: some for query, some in windows.items() if some}
    if not filled:
        return 0
    rows = {query: [_row(query, window) for window in some] for query, some in filled.items()}
    newest = {query: max(window.start_ms for window in some) for query, some in filled.items()}
    with transaction.atomic(RESULTS), connections[RESULTS].cursor() as cursor:
        new = _insert_together(cursor, rows) or _insert_each(cursor, rows)
        cursor.executemany(
            _COUNT, [(query, cluster_id, count, newest[query]) for query, count in new.items()]
        )
    return sum(new.values())


def _insert_together(cursor: Any, rows: Mapping[int, Sequence[Any]]) -> dict[int, int]:
    """Insert rows of queries together; return how many by query, nothing if some exist already.

    Some exist after a pass that was killed; none is inserted then.
    """
    with suppress(_SomeAreThere), transaction.atomic(RESULTS):
        every = [row for some in rows.values() for row in some]
        cursor.executemany(_INSERT, every)
        if int(cursor.rowcount) != len(every):
            raise _SomeAreThere
        return {query: len(some) for query, some in rows.items()}
    return {}


class _SomeAreThere(Exception):
    """Some rows exist already; how many of which query is not known."""


def _insert_each(cursor: Any, rows: Mapping[int, Sequence[Any]]) -> dict[int, int]:
    new = {}
    for query, some in rows.items():
        cursor.executemany(_INSERT, some)
        new[query] = max(0, int(cursor.rowcount))
    return new


def read(wanted: WindowRange) -> list[Archived]:
    """Return windows in the order of their places."""
    # The windows of one key are found by an index of their own, in which starts have the order.
    column = "place" if wanted.key is None else "start_ms"
    order = f"-{column}" if wanted.newest_first else column
    rows = _matching(wanted).order_by(order).values_list(*_COLUMNS)[: wanted.limit]
    windows = [
        Archived(bytes(place), from_json(key), from_json(values), batch, final_at_ms)
        for place, key, values, batch, final_at_ms in rows
    ]
    if wanted.key is None:
        return windows
    # Two keys may have one hash.
    return [window for window in windows if window.place[START_BYTES:] == wanted.key]


def delete_oldest(query_id: int, most: int, stop: bytes = _END) -> int:
    """Delete at most so many of the oldest windows of a query before a place; return how many."""
    deleted = 0
    while deleted < most:
        wanted = min(CHUNK, most - deleted)
        with transaction.atomic(RESULTS), connections[RESULTS].cursor() as cursor:
            cursor.execute(_DELETE, [query_id, stop, wanted])
            chunk = int(cursor.rowcount)
            ArchivedQuery.objects.filter(pk=query_id).update(windows=F("windows") - chunk)
        deleted += chunk
        if chunk < wanted:
            break
    return deleted


def newest_place(query_id: int) -> bytes:
    """Return the last place of a query that is archived, empty for none.

    Windows of a query are archived in the order of their places, so a reader that continues after
    the last place misses none.
    """
    places = ArchivedWindow.objects.filter(query_id=query_id).order_by("-place")
    place = places.values_list("place", flat=True).first()
    return b"" if place is None else bytes(place)


def _row(query_id: int, window: Archived) -> tuple[Any, ...]:
    return (
        query_id, window.place, window.start_ms, hash_of(window.place[START_BYTES:]),
        to_json(window.key), to_json(window.values), window.batch, window.final_at_ms,
    )  # fmt: skip


def hash_of(key: bytes) -> int:
    """Return a number by which the windows of one key are found, from the key's bytes."""
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big", signed=True)


def _matching(wanted: WindowRange) -> QuerySet[ArchivedWindow]:
    rows = ArchivedWindow.objects.filter(query_id=wanted.query_id)
    if wanted.is_final is not None:
        rows = rows.filter(final_at_ms__isnull=not wanted.is_final)
    if wanted.key is None:
        return rows.filter(place__gte=wanted.least, place__lt=wanted.stop)
    rows = rows.filter(key_hash=hash_of(wanted.key))
    if wanted.least:
        rows = rows.filter(start_ms__gte=start_of(wanted.least))
    return rows if wanted.stop == _END else rows.filter(start_ms__lt=start_of(wanted.stop))
