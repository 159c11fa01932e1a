"""Finality of windows: their end, and the streams and lateness that keep them open."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from controlplane.models import Query, QueryStream, Stream
from controlplane.wire.query import QueryText
from controlplane.wire.results.watermarks import Reading, Watermarks, complete_until
from controlplane.wire.schema import DEFAULT_IDLE_AFTER_S

# Queries per statement.
_CHUNK: Final = 500


@dataclass(frozen=True, slots=True)
class WindowTiming:
    """Length and slide of a query's windows, its lateness (ms), and its streams."""

    size_ms: int
    slide_ms: int
    lateness_ms: int
    reading: Reading

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
    idle = _idle_after(sorted({query_id for some in streams.values() for query_id in some}))
    rows = Query.objects.filter(pk__in=ids, cluster=cluster_id).values_list(
        "pk", "text", "key_grouping", "submitted_at"
    )
    return {
        pk: _times(text, _reading(streams.get(pk, []), idle, key_grouping, submitted_at))
        for pk, text, key_grouping, submitted_at in rows
    }


def _times(text: str, reading: Reading) -> WindowTiming:
    query = QueryText.from_json(json.loads(text))
    size = round(query.window_s * 1000)
    slide = size if query.slide_s is None else round(query.slide_s * 1000)
    return WindowTiming(size, slide, round(query.lateness_s * 1000), reading)


def _idle_after(streams: Sequence[int]) -> dict[int, int]:
    """Return the time without records (ms) after which each stream is idle."""
    idle: dict[int, int] = {}
    for start in range(0, len(streams), _CHUNK):
        rows = Stream.objects.filter(pk__in=streams[start : start + _CHUNK])
        idle |= {pk: _idle_ms(schema) for pk, schema in rows.values_list("pk", "schema")}
    return idle


def _reading(
    streams: Sequence[int], idle: Mapping[int, int], key_grouping: str, submitted_at: Any
) -> Reading:
    idle_streams = {pk: idle[pk] for pk in streams if pk in idle}
    # A query has an aggregator node during its whole life or never.
    return Reading(
        list(idle_streams), bool(key_grouping), round(submitted_at.timestamp() * 1000), idle_streams
    )


def _idle_ms(schema: Mapping[str, Any]) -> int:
    return round(float(schema.get("idle_after_s", DEFAULT_IDLE_AFTER_S)) * 1000)
