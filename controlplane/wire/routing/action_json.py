"""Actions and tables as JSON values, of this release and of earlier ones.

An earlier release also routed queries without a text: the number of records, and the number of
values, mean, minimum and maximum of one column, by stream and window. Redis and the checkpoint
keep such entries across an upgrade: a batch that is replayed needs its own routing version.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Final

from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import (
    AssignStream,
    RemoveStream,
    SetCapacity,
    SetDropRule,
    SetLadder,
    SetNodeActive,
    SetNodeCount,
    SetSchema,
    SetSplitCapacity,
    SetSplitCount,
)
from controlplane.wire.routing.drop_rules import DropRule
from controlplane.wire.routing.ladder import Ladder
from controlplane.wire.routing.query_actions import (
    AddQuery,
    MoveTasks,
    RemoveQuery,
    RestartQuery,
    SetAggregator,
    SetAggregators,
    SetKeyGrouping,
    SetTaskCount,
)
from controlplane.wire.schema import StreamSchema

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
# The values of `op` in the JSON; the only list of the kinds of actions.
KINDS: Final[Mapping[str, type[Any]]] = MappingProxyType(
    {
        "add_query": AddQuery,
        "remove_query": RemoveQuery,
        "restart_query": RestartQuery,
        "move_tasks": MoveTasks,
        "assign_stream": AssignStream,
        "remove_stream": RemoveStream,
        "set_schema": SetSchema,
        "set_key_grouping": SetKeyGrouping,
        "set_aggregator": SetAggregator,
        "set_aggregators": SetAggregators,
        "set_task_count": SetTaskCount,
        "set_capacity": SetCapacity,
        "set_node_active": SetNodeActive,
        "set_drop_rule": SetDropRule,
        "set_node_count": SetNodeCount,
        "set_split_count": SetSplitCount,
        "set_split_capacity": SetSplitCapacity,
        "set_ladder": SetLadder,
    }
)
_NAMES: Final = {kind: name for name, kind in KINDS.items()}
_FIELDS: Final = {kind: fields(kind) for kind in KINDS.values()}
# Names in the JSON that differ from the fields: stored routing versions and checkpoints have them.
_KEYS: Final = {
    "incarnation": "run",
    "task_ranges": "spans",
    "key_grouping": "scheme",
    "aggregator": "merge",
    "rule": "shed",
}
_FIELD_OF_KEY: Final = {key: name for name, key in _KEYS.items()}


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

    An earlier release stored the number of nodes, and the emulated capacities only; a later one no
    capacity of split nodes, and no ladder.
    """
    row = {"split_capacity": UNKNOWN, "split_emulated": False, "ladder": None, **row}
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


def kind_of(action: Action) -> str:
    """Return the name of an action's kind, as its JSON has it."""
    return _NAMES[type(action)]


def action_to_json(action: Action) -> dict[str, Any]:
    """Return the action as JSON values; `op` names its kind, defaults are left out."""
    # Most queries have no task ranges: the message that places one stays small.
    values = {
        _KEYS.get(field.name, field.name): value
        for field in _FIELDS[type(action)]
        if (value := getattr(action, field.name)) != field.default
    }
    for name in ("shed", "schema", "ladder"):
        if values.get(name) is not None:
            values[name] = values[name].to_json()
    return {"op": kind_of(action), **values}


def action_from_json(row: Mapping[str, Any]) -> Action:
    """Return the action that `action_to_json` wrote, or an earlier release."""
    values = {_FIELD_OF_KEY.get(key, key): value for key, value in upgraded_action(row).items()}
    kind = KINDS[values.pop("op")]
    for name in ("streams", "more_aggregators"):
        if name in values:
            values[name] = tuple(values[name])
    if isinstance(values.get("nodes"), list):
        values["nodes"] = tuple(values["nodes"])
    for name in ("task_ranges", "moves", "added"):
        if name in values:
            values[name] = tuple(tuple(item) for item in values[name])
    for name, value_of in _VALUES.items():
        if name in values:
            values[name] = value_of(values[name])
    action: Action = kind(**values)
    return action


def schema_of(row: Mapping[str, Any]) -> StreamSchema:
    """Return a schema; streams with the same columns share one value."""
    return StreamSchema.from_text(json.dumps(row, sort_keys=True))


# The fields whose values are objects in the JSON.
_VALUES: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    "rule": DropRule.from_json,
    "ladder": Ladder.from_json,
    "schema": schema_of,
}
