"""Routing entries of earlier releases, read as entries of this one.

An earlier release also routed queries without a text: the number of records, and the number of
values, mean, minimum and maximum of one column, by stream and window. Redis and the checkpoint
keep such entries across an upgrade: a batch that is replayed needs its own routing version.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any


def upgraded_op(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a routing operation in the present form; one that has it is returned as it is."""
    if "window_s" not in row or row["op"] != "add":
        return row
    text = row.get("text") or _summary(row["value"], row["window_s"])
    kept = {name: value for name, value in row.items() if name not in ("window_s", "value")}
    return kept | {"text": text}


def upgraded_row(row: Sequence[Any]) -> Sequence[Any]:
    """Return a row of a routing snapshot in the present form: query, run, node, streams, text, …

    An earlier row has the window's seconds and the column before the text, which may be absent.
    """
    if isinstance(row[4], str):
        return row
    query, run, node, streams, window_s, value, *more = row
    text, *rest = more or [""]
    return [query, run, node, streams, text or _summary(value, window_s), *rest]


def _summary(value: str, window_s: float) -> str:
    """Return the text of a query without one, as migration 0018 stores it."""
    aggregates = {
        "count": "count(*)",
        "n": f"count({value})",
        "mean": f"mean({value})",
        "minimum": f"min({value})",
        "maximum": f"max({value})",
    }
    text = {"aggregates": aggregates, "window_s": float(window_s), "key": ["stream"]}
    return json.dumps(text, separators=(",", ":"))
