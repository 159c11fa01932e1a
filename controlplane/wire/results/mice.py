"""Windows of a mice query, as rows of numbers."""

from dataclasses import dataclass
from typing import Final

import redis

from controlplane.wire.blocks import KINDS
from controlplane.wire.finishing import WindowRow
from controlplane.wire.query import STREAM, Computation, computation_of, mice
from controlplane.wire.results.read import read_windows

# The rows of a mice query look the same whatever its column and window are.
_MICE: Final[Computation] = computation_of(mice("speed", 60), KINDS)


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
    """Return the newest `limit` windows of a mice query, newest first, streams in order."""
    windows = [_of_mice(row) for row in read_windows(client, cluster, query, _MICE)]
    windows.sort(key=lambda row: (-row.window_start_ms, row.stream))
    return windows[:limit]


def _of_mice(row: WindowRow) -> WindowResult:
    return WindowResult(row.key[STREAM], row.start_ms, **row.values, batch=row.batch)
