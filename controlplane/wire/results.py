"""Results of queries, readable while they run.

The pipeline appends, per query and micro-batch, the windows that changed, as rows of slots and
cells (`forms.py`); a window of one part of a query (a stream, a task, a run) is written whole. The
explicit id `<batch>-0` makes a replayed append fail harmlessly. Reading keeps the newest row of
each part and merges the parts (`finishing.py`), so a query that was moved without its state, or
whose keys are split, still shows each record exactly once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import redis

from controlplane.wire import keys
from controlplane.wire.blocks import KINDS
from controlplane.wire.finishing import WindowRow, finished, newest
from controlplane.wire.forms import from_bytes, named
from controlplane.wire.query import STREAM, Computation, computation_of, mice

# Entries (micro-batches with a change) kept per query.
KEPT_ENTRIES: Final = 120
# How long results stay readable after the query departs.
KEPT_SECONDS: Final = 900
# The rows of a mice query look the same whatever its column and window are.
_MICE: Final = computation_of(mice("speed", 60), KINDS)


@dataclass(frozen=True, slots=True)
class WindowResult:
    """One window of one stream, merged over the query's runs."""

    stream: int
    window_start_ms: int
    count: int
    n: int
    mean: float | None
    minimum: int | None
    maximum: int | None
    batch: int


def read_windows(
    client: "redis.Redis", cluster: str, query: int, computation: Computation
) -> list[WindowRow]:
    """Return the windows of a query, in no particular order."""
    pipe = client.pipeline(transaction=False)
    for name in keys_of(client, cluster, [query])[0]:
        pipe.xrange(name)
    streams = cast("list[list[Any]]", pipe.execute())
    entries = [(int(position.partition(b"-")[0]), fields) for rows in streams
               for position, fields in rows]  # fmt: skip
    tables: dict[str, list[tuple[int, Any]]] = {}
    for batch, fields in sorted(entries, key=lambda entry: entry[0]):
        for field, data in fields.items():
            name, mark, _ = field.decode().rpartition("#")
            if not mark:
                continue  # written by an older version
            tables.setdefault(name, []).append((batch, from_bytes(named(name), data)))
    found = {name: newest(named(name), parts) for name, parts in tables.items()}
    return finished(computation, found)


def keys_of(client: "redis.Redis", cluster: str, queries: Sequence[int]) -> list[list[str]]:
    """Return the keys of each query's rows: its own, and those of the nodes it is split over."""
    pipe = client.pipeline(transaction=False)
    for query in queries:
        pipe.smembers(keys.parts_key(cluster, query))
    nodes = cast("list[set[bytes]]", pipe.execute())
    return [
        [
            keys.result_key(cluster, query),
            *(keys.part_key(cluster, query, node) for node in sorted(map(int, found))),
        ]
        for query, found in zip(queries, nodes, strict=True)
    ]


def read_results(
    client: "redis.Redis", cluster: str, query: int, limit: int = 200
) -> list[WindowResult]:
    """Return the newest `limit` windows of a mice query, newest first, streams in order."""
    windows = [_of_mice(row) for row in read_windows(client, cluster, query, _MICE)]
    windows.sort(key=lambda row: (-row.window_start_ms, row.stream))
    return windows[:limit]


def _of_mice(row: WindowRow) -> WindowResult:
    return WindowResult(row.key[STREAM], row.start_ms, **row.values, batch=row.batch)


def has_results(client: "redis.Redis", cluster: str, queries: Sequence[int]) -> set[int]:
    """Return which of `queries` have seen a record."""
    pipe = client.pipeline(transaction=False)
    for query in queries:
        pipe.exists(keys.result_key(cluster, query), keys.parts_key(cluster, query))
    return {query for query, found in zip(queries, pipe.execute(), strict=True) if found}
