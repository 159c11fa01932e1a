"""Results of queries, readable while they run.

The pipeline appends, per query and micro-batch, the rows of the windows that changed; a row is
the whole window so far within one *run* of the query. The explicit id `<batch>-<sequence>` makes
a replayed append fail harmlessly. Reading keeps the newest row of each (run, stream, window) and
merges the runs: counts and sums add up, so a query that was moved without its state still shows
each record exactly once.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import redis

from controlplane.wire import keys

# Entries (micro-batches with a change) kept per query.
KEPT_ENTRIES: Final = 120
# How long results stay readable after the query departs.
KEPT_SECONDS: Final = 900


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One window of one stream as one run of a query has it so far.

    `count` counts records, `n` those with a value; `total`, `minimum`, `maximum` are over them.
    """

    run: int
    stream: int
    window_start_ms: int
    count: int
    n: int
    total: int
    minimum: int
    maximum: int

    def to_list(self) -> list[int]:
        """Return the row as it travels."""
        return [self.run, self.stream, self.window_start_ms, self.count, self.n, self.total,
                self.minimum, self.maximum]  # fmt: skip


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


def read_results(
    client: "redis.Redis", cluster: str, query: int, limit: int = 200
) -> list[WindowResult]:
    """Return the newest `limit` windows of a query, newest first, streams in order."""
    entries = cast("list[Any]", client.xrange(keys.result_key(cluster, query)))
    windows = merge_rows(
        (int(position.partition(b"-")[0]), json.loads(fields[b"r"])) for position, fields in entries
    )
    windows.sort(key=lambda row: (-row.window_start_ms, row.stream))
    return windows[:limit]


def has_results(client: "redis.Redis", cluster: str, queries: Sequence[int]) -> set[int]:
    """Return which of `queries` have seen a record."""
    pipe = client.pipeline(transaction=False)
    for query in queries:
        pipe.exists(keys.result_key(cluster, query))
    return {query for query, found in zip(queries, pipe.execute(), strict=True) if found}


def merge_rows(batches: Iterable[tuple[int, list[list[int]]]]) -> list[WindowResult]:
    """Return one result per (stream, window) from (batch, rows) in order of batch."""
    newest: dict[tuple[int, int, int], tuple[int, ResultRow]] = {}
    for batch, rows in batches:
        for values in rows:
            row = ResultRow(*values)
            newest[row.run, row.stream, row.window_start_ms] = batch, row
    return _merge_runs(newest)


def _merge_runs(
    newest: Mapping[tuple[int, int, int], tuple[int, ResultRow]],
) -> list[WindowResult]:
    runs: dict[tuple[int, int], list[tuple[int, ResultRow]]] = {}
    for (_, stream, window), found in newest.items():
        runs.setdefault((stream, window), []).append(found)
    return [_window(stream, window, found) for (stream, window), found in runs.items()]


def _window(stream: int, window: int, found: list[tuple[int, ResultRow]]) -> WindowResult:
    rows = [row for _, row in found]
    valued = [row for row in rows if row.n]
    n = sum(row.n for row in valued)
    return WindowResult(
        stream=stream,
        window_start_ms=window,
        count=sum(row.count for row in rows),
        n=n,
        mean=sum(row.total for row in valued) / n if n else None,
        minimum=min((row.minimum for row in valued), default=None),
        maximum=max((row.maximum for row in valued), default=None),
        batch=max(batch for batch, _ in found),
    )
