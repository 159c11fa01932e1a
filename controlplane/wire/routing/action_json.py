"""Actions as JSON values."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import Any, Final

from controlplane.wire.routing import cluster_actions, query_actions
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.drop_rules import DropRule
from controlplane.wire.routing.ladder import Ladder
from controlplane.wire.schema import StreamSchema
from controlplane.wire.sources.kinds import source_from_json

# By the value of `op` in the JSON, which is the name of the class: set_node_count of SetNodeCount.
KINDS: Final[Mapping[str, type[Any]]] = MappingProxyType({
    re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(): kind
    for module in (query_actions, cluster_actions)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__
})  # fmt: skip
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
