"""Windows of a query, as people and scripts read them: names of streams, plain values."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from controlplane.models import Cluster, Query
from controlplane.selectors.queries import computed_by, query_windows
from controlplane.wire.finishing import WindowRow
from controlplane.wire.language.tree import Column, Kind
from controlplane.wire.query import SIDES, STREAM, Computation

# The stream of a record, as a key names it: of a query over one side, and of a join.
_STREAMS = (STREAM, *(f"{side}.{STREAM}" for side in SIDES))


@dataclass(frozen=True)
class KeyedWindow:
    """One window of one key; moments are datetimes, what is no number of JSON is None."""

    start: datetime
    key: Mapping[str, Any]
    values: Mapping[str, Any]
    batch: int


def keyed_windows(cluster: Cluster, query: Query, limit: int = 200) -> list[KeyedWindow]:
    """Return the newest windows of a query, newest first.

    Raises `Conflict` (unreadable) where the query calls a function that is gone.
    """
    computation = computed_by(query)
    names = {stream.pk: stream.name for stream in query.streams.all()}
    rows = query_windows(cluster, query, limit)
    return [_window(row, computation, names) for row in rows]


def _window(row: WindowRow, computation: Computation, streams: Mapping[int, str]) -> KeyedWindow:
    kinds = {name: one.kind for name, one in computation.key}
    kinds |= {name: one.kind for name, one in computation.aggregates}
    key = {name: _plain(value, kinds[name]) for name, value in row.key.items()}
    for name, one in computation.key:
        # In a join a named column may be called stream.
        if name in _STREAMS and one == Column(name, Kind.INT):
            key[name] = streams.get(key[name], str(key[name]))
    values = {name: _plain(value, kinds[name]) for name, value in row.values.items()}
    return KeyedWindow(_moment(row.start_ms), key, values, row.batch)


def _plain(value: Any, kind: Kind) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return None
        case bool() | int() | float() if kind is Kind.TIME:
            return _moment(int(value))
        case None | bool() | int() | float() | str() | datetime():
            return value
        case list() | tuple():
            return [_plain(one, Kind.NULL) for one in value]
    # A user's aggregate may return anything.
    return str(value)


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
