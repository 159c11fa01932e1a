"""The routing table: which node evaluates which query, which split node reads which stream.

A table is an immutable value, numbered by version. What travels is the *delta* from one version
to the next, so that placing one query among ten thousand costs one small message; snapshots let
a reader start anywhere. A delta is a sequence of actions, of which plans consist as well.
"""

from controlplane.wire.query_text import MAX_TASKS
from controlplane.wire.routing.action_json import action_from_json, action_to_json, kind_of
from controlplane.wire.routing.actions import CLUSTER, Action, Kind, NodeState, Subject, TableDraft
from controlplane.wire.routing.cluster_actions import (
    AssignStream,
    SetCapacity,
    SetDropRule,
    SetNodeActive,
    SetNodeCount,
    SetSchema,
    SetSplitCount,
)
from controlplane.wire.routing.query_actions import (
    LEAST_TASKS,
    AddQuery,
    MoveTasks,
    RemoveQuery,
    RestartQuery,
    SetAggregator,
    SetAggregators,
    SetKeyGrouping,
    SetTaskCount,
)
from controlplane.wire.routing.route import (
    NO_AGGREGATOR,
    Route,
    TaskRange,
    ranges_of,
    task_ranges_from,
    task_ranges_of,
    with_aggregators,
    with_moves,
    with_owners,
)
from controlplane.wire.routing.table import RoutingDelta, RoutingTable

__all__ = [
    "CLUSTER",
    "LEAST_TASKS",
    "MAX_TASKS",
    "NO_AGGREGATOR",
    "Action",
    "AddQuery",
    "AssignStream",
    "Kind",
    "MoveTasks",
    "NodeState",
    "RemoveQuery",
    "RestartQuery",
    "Route",
    "RoutingDelta",
    "RoutingTable",
    "SetAggregator",
    "SetAggregators",
    "SetCapacity",
    "SetDropRule",
    "SetKeyGrouping",
    "SetNodeActive",
    "SetNodeCount",
    "SetSchema",
    "SetSplitCount",
    "SetTaskCount",
    "Subject",
    "TableDraft",
    "TaskRange",
    "action_from_json",
    "action_to_json",
    "kind_of",
    "ranges_of",
    "task_ranges_from",
    "task_ranges_of",
    "with_aggregators",
    "with_moves",
    "with_owners",
]
