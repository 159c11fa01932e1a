"""The long-lived queries of the demonstration `web`, as the API takes them."""

from collections.abc import Sequence
from typing import Any, Final

from workers.demo.web.recording import Directory

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
        "scheme": "two_choices",
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


def long_lived(directories: Sequence[Directory]) -> list[dict[str, Any]]:
    """Return the queries: one per directory, those over all directories, and a join of two."""
    names = [one.name for one in directories]
    own = [
        _query(f"traffic-{name}", [name], {"aggregates": _TRAFFIC, "window_s": _MINUTE})
        for name in names
    ]
    return [
        *own,
        *({**_query(name, names, {}), **rest} for name, rest in _OVER_ALL.items()),
        _both(*names[:2]),
    ]


def _both(left: str, right: str) -> dict[str, Any]:
    """Return a join: the hosts that read from both directories in the same minute."""
    text = {
        "right": [right], "on": [["host", "host"]], "key": ["a.host"],
        "aggregates": {"pairs": "count(*)"}, "window_s": _MINUTE,
    }  # fmt: skip
    return _query(f"{left}-and-{right}", [left], text)


def _query(name: str, streams: Sequence[str], text: dict[str, Any]) -> dict[str, Any]:
    return {"name": PREFIX + name, "streams": list(streams), "text": text}
