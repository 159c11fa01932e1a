"""Windows of a query as the page shows them: named streams, shown units, the busiest first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from controlplane.models import Query
from controlplane.wire.results import WindowResult
from dashboard.figures.results import shown

# Charts that stand beside each other on one page; the others are one click away.
SHOWN_TILES = 6


@dataclass(frozen=True)
class ResultRow:
    """One window of one stream; mean, minimum and maximum in the unit they are shown in."""

    start: datetime
    stream: str
    count: int
    mean: float | None
    minimum: float | None
    maximum: float | None


def stream_names(query: Query) -> dict[int, str]:
    """Return the names of the streams a query reads, by id."""
    return {stream.pk: stream.name for stream in query.streams.all()}


def result_rows(
    windows: Sequence[WindowResult], names: Mapping[int, str], value: str, tile: str = ""
) -> list[ResultRow]:
    """Return the windows as rows, in their order; tile is a stream's name, "" is all."""
    rows = [_row(window, names, value) for window in windows]
    return [row for row in rows if not tile or row.stream == tile]


def busiest_tiles(
    windows: Sequence[WindowResult], names: Mapping[int, str], tile: str = ""
) -> dict[int, list[WindowResult]]:
    """Return the windows per stream, of the named one or of those with most records."""
    grouped: dict[int, list[WindowResult]] = {}
    for window in windows:
        if names.get(window.stream) and tile in ("", names[window.stream]):
            grouped.setdefault(window.stream, []).append(window)
    order = sorted(grouped, key=lambda stream: (-_records(grouped[stream]), names[stream]))
    return {stream: grouped[stream] for stream in order[:SHOWN_TILES]}


def _records(windows: Sequence[WindowResult]) -> int:
    return sum(window.count for window in windows)


def _row(window: WindowResult, names: Mapping[int, str], value: str) -> ResultRow:
    return ResultRow(
        start=datetime.fromtimestamp(window.window_start_ms / 1000, UTC),
        stream=names.get(window.stream, str(window.stream)),
        count=window.count,
        mean=shown(value, window.mean),
        minimum=shown(value, window.minimum),
        maximum=shown(value, window.maximum),
    )
