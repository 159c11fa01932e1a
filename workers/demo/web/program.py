"""The demonstration `web`: each directory of the server is a stream, its queries stay."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from workers.demo.program import ProgramQuery, rows_between, slices_by
from workers.demo.web.recording import (
    SCHEMA,
    SPAN_MS,
    START_MS,
    TIME,
    Directory,
    WebRecording,
    load_recording,
)

PREFIX: Final = "web-"
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400
_TRAFFIC: Final = {
    "requests": "count(*)", "bytes": "sum(bytes)", "mean_bytes": "mean(bytes)",
    "largest": "max(bytes)", "visitors": "count_distinct(host)",
}  # fmt: skip
_REQUESTS: Final = {"requests": "count(*)"}

# What is computed over the requests of all directories, by the name of the query.
_OVER_ALL: Final[dict[str, dict[str, Any]]] = {
    "status": {"text": {"aggregates": _REQUESTS, "key": ["status"], "window_s": _MINUTE}},
    "missing": {
        "text": {
            "where": "status >= 400", "key": ["url"], "aggregates": _REQUESTS,
            "window_s": 10 * _MINUTE,
        },
    },
    # A few addresses get most of the requests: the records of each key go to two tasks.
    "by-url": {
        "text": {
            "key": ["url"], "aggregates": {"requests": "count(*)", "bytes": "sum(bytes)"},
            "window_s": _HOUR,
        },
        "tasks": 4,
        "key_grouping": "partial_key",
    },
    "by-host": {
        "text": {
            "key": ["host"], "aggregates": {"requests": "count(*)", "urls": "count_distinct(url)"},
            "window_s": _HOUR,
        },
        "tasks": 4,
    },
    "top-urls": {
        "text": {
            "aggregates": {"top": "top_k(url, 10)"}, "window_s": 10 * _MINUTE, "slide_s": _MINUTE,
        },
    },
    "visitors": {
        "text": {
            "aggregates": {"visitors": "count_distinct(host)"}, "window_s": _HOUR,
            "slide_s": 5 * _MINUTE,
        },
    },
    "sizes": {
        "text": {
            "aggregates": {
                "median": "median(bytes)", "p99": "quantile(bytes, 0.99)",
                "deviation": "stddev(bytes)",
            },
            "window_s": 10 * _MINUTE,
        },
    },
    "cache": {
        "text": {
            "columns": {"hit": "case when cached then 1.0 else 0.0 end"},
            "aggregates": {"share": "mean(hit)"}, "window_s": _MINUTE,
        },
    },
    "large": {
        "text": {
            "where": "bytes > 100000", "columns": {"start": "substr(url, 1, 4)"},
            "key": ["start"], "aggregates": _REQUESTS, "window_s": _HOUR,
        },
    },
    "day": {"text": {"aggregates": _TRAFFIC, "window_s": _DAY}},
}  # fmt: skip


def long_lived(directories: Sequence[Directory]) -> list[ProgramQuery]:
    """Return the queries: one per directory, those over all directories, and a join of two."""
    names = tuple(directory.name for directory in directories)
    traffic = {"aggregates": _TRAFFIC, "window_s": _MINUTE}
    own = [ProgramQuery(f"{PREFIX}traffic-{name}", (name,), traffic) for name in names]
    over_all = [ProgramQuery(PREFIX + name, names, **rest) for name, rest in _OVER_ALL.items()]
    return [*own, *over_all, _both(*names[:2])]


def _both(left: str, right: str) -> ProgramQuery:
    """Return a join: the hosts that read from both directories in the same minute."""
    text = {
        "right": [right], "on": [["host", "host"]], "key": ["a.host"],
        "aggregates": {"pairs": "count(*)"}, "window_s": _MINUTE,
    }  # fmt: skip
    return ProgramQuery(f"{PREFIX}{left}-and-{right}", (left,), text)


class Web:
    """The recorded hours, replayed `speed` times as fast."""

    slug = "web"
    prefixes: Sequence[str] = (PREFIX,)
    key = "url"

    def __init__(self, speed: float) -> None:
        self._recording = load_recording()
        self._speed = speed
        self._queries = long_lived(self._recording.directories)

    def declarations(self) -> list[dict[str, Any]]:
        """Return one stream per directory."""
        return [directory.declaration(self._speed) for directory in self._recording.directories]

    def records_between(self, after: int, until: int) -> dict[str, pa.RecordBatch]:
        """Return the requests of the moments (after, until] by directory."""
        return requests_between(self._recording, after, until)

    def queries_at(self, moment: int) -> Sequence[ProgramQuery]:
        """Return the queries, which are the same at all times."""
        return self._queries

    def queries_by_key(self) -> Sequence[ProgramQuery]:
        """Return nothing: queries by URL are live at all times."""
        return ()


def requests_between(recording: WebRecording, after: int, until: int) -> dict[str, pa.RecordBatch]:
    """Return the requests of the moments (after, until] by stream, in order of time."""
    rows, times = rows_between(recording.at, after, until, SPAN_MS, START_MS)
    order = np.argsort(recording.directory[rows], kind="stable")
    rows, times = rows[order], times[order]
    columns = recording.columns.take(rows).combine_chunks()
    arrays = {TIME: pa.array(times, SCHEMA.field(TIME).type)}
    arrays |= {name: columns[name].combine_chunks() for name in columns.column_names}
    batch = pa.RecordBatch.from_arrays([arrays[name] for name in SCHEMA.names], schema=SCHEMA)
    by_number = slices_by(recording.directory[rows], batch)
    return {recording.directories[number].name: part for number, part in by_number.items()}
