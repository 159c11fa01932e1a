"""Routing entries of earlier releases, read as entries of this one.

An earlier release also routed queries without a text: the number of records, and the number of
values, mean, minimum and maximum of one column, by stream and window. Redis and the checkpoint
keep such entries across an upgrade: a batch that is replayed needs its own routing version.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

# The declared capacity of a node is not known: an earlier release did not publish it.
UNKNOWN: Final = 0.0
# The names of the kinds of actions in an earlier release.
_KINDS: Final = {
    "add": "add_query",
    "remove": "remove_query",
    "move": "restart_query",
    "tasks": "move_tasks",
    "stream": "assign_stream",
    "schema": "set_schema",
    "scheme": "set_key_grouping",
    "merge": "set_aggregator",
    "capacity": "set_capacity",
    "shed": "set_drop_rule",
    "nodes": "set_node_count",
}


def upgraded_action(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON of an action in the present form; one that has it is returned as it is."""
    kind = _KINDS.get(row["op"])
    if kind is None:
        return row
    row = {**row, "op": kind}
    if kind == "add_query" and "window_s" in row:
        text = row.get("text") or _summary(row["value"], row["window_s"])
        kept = {name: value for name, value in row.items() if name not in ("window_s", "value")}
        return kept | {"text": text}
    if kind == "set_capacity":
        per_s = row["per_s"]
        emulated = per_s is not None
        return {
            "op": kind, "node": row["node"], "capacity": per_s or UNKNOWN, "emulated": emulated,
        }  # fmt: skip
    return row


def upgraded_table(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON of a routing snapshot in the present form, but for its queries.

    An earlier release stored the number of nodes, and the emulated capacities only.
    """
    if "node_count" in row:
        return row
    nodes = [[index, per_s, True, True] for index, per_s in row["capacities"]]
    return {
        **row, "schemas": row.get("schemas", ()), "nodes": nodes,
        "node_count": row.get("nodes", 0), "split_count": 0,
    }  # fmt: skip


def upgraded_row(row: Sequence[Any]) -> Sequence[Any]:
    """Return a row of a routing snapshot in the present form: query, run, node, streams, text, …

    An earlier row has the window's seconds and the column before the text, which may be absent.
    """
    if isinstance(row[4], str):
        return row
    query, incarnation, node, streams, window_s, value, *more = row
    text, *rest = more or [""]
    return [query, incarnation, node, streams, text or _summary(value, window_s), *rest]


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
