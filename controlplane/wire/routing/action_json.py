"""Actions as JSON values."""

import json
from collections.abc import Callable, Mapping
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
    SetSource,
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
from controlplane.wire.sources.kinds import source_from_json

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
        "set_source": SetSource,
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


def kind_of(action: Action) -> str:
    """Return the name of an action's kind, as its JSON has it."""
    return _NAMES[type(action)]


def action_to_json(action: Action) -> dict[str, Any]:
    """Return the action as JSON values; `op` names its kind, defaults are left out."""
    # Most queries have no task ranges: the message that places one stays small.
    values = {
        field.name: value
        for field in _FIELDS[type(action)]
        if (value := getattr(action, field.name)) != field.default
    }
    for name in ("rule", "schema", "ladder", "source"):
        if values.get(name) is not None:
            values[name] = values[name].to_json()
    return {"op": kind_of(action), **values}


def action_from_json(row: Mapping[str, Any]) -> Action:
    """Return the action that `action_to_json` wrote."""
    values = dict(row)
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
    "source": source_from_json,
}
