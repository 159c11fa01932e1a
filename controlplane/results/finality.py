"""Finality of windows: their end, and the streams and lateness that keep them open."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from controlplane.models import Query, QueryStream, Stream
from controlplane.wire.query_text import QueryText
from controlplane.wire.results.watermarks import QueryInputs, Watermarks, complete_until
from controlplane.wire.schema import DEFAULT_IDLE_AFTER_S

# Queries per statement.
_CHUNK: Final = 500


@dataclass(frozen=True, slots=True)
class WindowTiming:
    """Length and slide of a query's windows, its lateness (ms), and its streams."""

    size_ms: int
    slide_ms: int
    lateness_ms: int
    reading: QueryInputs

    def final_until(self, watermarks: Watermarks) -> int | None:
        """Return the last start (ms) of complete windows, None for none."""
        until = complete_until(watermarks, self.reading)
        return None if until is None else until - self.lateness_ms - self.size_ms


def window_timings(cluster_id: int, queries: Iterable[int]) -> dict[int, WindowTiming]:
    """Return the window timings of existing queries by id."""
    wanted = sorted(queries)
    times: dict[int, WindowTiming] = {}
    for start in range(0, len(wanted), _CHUNK):
        times |= _window_timings(cluster_id, wanted[start : start + _CHUNK])
    return times


def _window_timings(cluster_id: int, ids: list[int]) -> dict[int, WindowTiming]:
    streams: dict[int, list[int]] = {}
    links = QueryStream.objects.filter(query__in=ids).values_list("query_id", "stream_id")
    for query, stream in links:
        streams.setdefault(query, []).append(stream)
    idle = _idle_after(sorted({stream for some in streams.values() for stream in some}))
    rows = Query.objects.filter(pk__in=ids, cluster=cluster_id).values_list(
        "pk", "text", "key_grouping", "submitted_at"
    )
    timings: dict[int, WindowTiming] = {}
    for pk, text, key_grouping, submitted_at in rows:
        computed = QueryText.from_json(json.loads(text))
        idle_ms = {stream: idle[stream] for stream in streams.get(pk, ()) if stream in idle}
        # A query has an aggregator node during its whole life or never.
        since_ms = round(submitted_at.timestamp() * 1000)
        reading = QueryInputs(list(idle_ms), bool(key_grouping), since_ms, idle_ms)
        size = round(computed.window_s * 1000)
        slide = size if computed.slide_s is None else round(computed.slide_s * 1000)
        timings[pk] = WindowTiming(size, slide, round(computed.lateness_s * 1000), reading)
    return timings


def _idle_after(streams: Sequence[int]) -> dict[int, int]:
    """Return the time without records (ms) after which each stream is idle."""
    idle: dict[int, int] = {}
    for start in range(0, len(streams), _CHUNK):
        rows = Stream.objects.filter(pk__in=streams[start : start + _CHUNK])
        for pk, schema in rows.values_list("pk", "schema"):
            idle[pk] = round(float(schema.get("idle_after_s", DEFAULT_IDLE_AFTER_S)) * 1000)
    return idle
