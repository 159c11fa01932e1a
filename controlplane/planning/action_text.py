"""Texts of actions: kind, object, value before and after."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from controlplane.plans.plan import PlannedAction
from controlplane.wire.routing.action_json import kind_of
from controlplane.wire.routing.actions import Action, Kind, Subject
from controlplane.wire.routing.cluster_actions import (
    AssignStream,
    SetCapacity,
    SetDropRule,
    SetNodeActive,
    SetNodeCount,
    SetSplitCount,
)
from controlplane.wire.routing.query_actions import (
    MoveTasks,
    SetAggregator,
    SetAggregators,
    SetKeyGrouping,
    SetTaskCount,
)
from controlplane.wire.routing.route import KEY_GROUPINGS, NO_AGGREGATOR, key_grouping_name


@dataclass(frozen=True)
class Names:
    """Names of queries and streams by id, and of nodes by index."""

    queries: Mapping[int, str] = field(default_factory=dict)
    streams: Mapping[int, str] = field(default_factory=dict)
    nodes: Mapping[int, str] = field(default_factory=dict)

    def query(self, query: int) -> str:
        """Return the name of a query, its id if it is unknown."""
        return self.queries.get(query, f"query {query}")

    def stream(self, stream: int) -> str:
        """Return the name of a stream, its id if it is unknown."""
        return self.streams.get(stream, f"stream {stream}")

    def node(self, node: int) -> str:
        """Return the name of a node, its index if it is unknown."""
        return "none" if node == NO_AGGREGATOR else self.nodes.get(node, f"node {node}")

    def subject(self, subject: Subject) -> str:
        """Return the name of an object that an action changes."""
        if subject.kind == Kind.QUERY:
            return self.query(subject.id)
        if subject.kind == Kind.NODE:
            return self.node(subject.id)
        if subject.kind == Kind.CLUSTER:
            return "the cluster"
        stream = self.stream(subject.id)
        if subject.kind == Kind.EDGE and subject.query:
            return f"{stream} to {self.query(subject.query)}"
        return stream


@dataclass(frozen=True)
class ActionText:
    """The text of an action: `kind` as in its JSON, `title` of the kind, object, two values."""

    kind: str
    title: str
    object: str
    before: str
    after: str

    def __str__(self) -> str:
        """Return the action as one clause."""
        return f"{self.title} of {self.object}: {self.before} to {self.after}"


def action_text(planned: PlannedAction, names: Names) -> ActionText:
    """Return the text of a planned action."""
    action = planned.action
    before = planned.before[0] if planned.before else None
    return ActionText(
        kind_of(action),
        _title(action),
        names.subject(action.subjects()[0]),
        "" if before is None or _title(before) != _title(action) else _text(before, names),
        _text(action, names),
    )


def _title(action: Action) -> str:
    return TITLES.get(kind_of(action), "")


def _text(action: Action, names: Names) -> str:
    return _VALUES[type(action)](action, names)


def _drop_rule(action: Any, _: Names) -> str:
    rule = action.rule
    if rule is None or not rule.steps[-1][1]:
        return "drops nothing"
    share = f"{100 * rule.steps[-1][1]:.3g} %"
    if not rule.window_ms:
        return f"drops {share} of its records"
    return f"drops {share} of its windows of {rule.window_ms / 1000:g} s"


_VALUES: Final[Mapping[type[Action], Callable[[Any, Names], str]]] = MappingProxyType(
    {
        MoveTasks: lambda action, names: names.node(action.moves[0][0]),
        AssignStream: lambda action, _: f"split node {action.split}",
        SetDropRule: _drop_rule,
        SetKeyGrouping: lambda action, _: (
            KEY_GROUPINGS[key_grouping_name(action.key_grouping, aggregated=True)].title
        ),
        SetAggregator: lambda action, names: names.node(action.node),
        SetAggregators: lambda action, names: ", ".join(map(names.node, action.nodes)),
        SetTaskCount: lambda action, _: f"{action.tasks} tasks",
        SetCapacity: lambda action, _: (
            f"{action.capacity:,.0f} records/s{', emulated' if action.emulated else ''}"
        ),
        SetNodeActive: lambda action, _: "active" if action.active else "inactive",
        SetNodeCount: lambda action, _: f"{action.nodes} nodes",
        SetSplitCount: lambda action, _: f"{action.splits} split nodes",
    }
)
# By kind of action.
TITLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "move_tasks": "Node",
        "assign_stream": "Split node",
        "set_drop_rule": "Drop rule",
        "set_key_grouping": "Key grouping",
        "set_aggregator": "Aggregator nodes",
        "set_aggregators": "Aggregator nodes",
        "set_task_count": "Number of tasks",
        "set_capacity": "Capacity",
        "set_node_active": "Node activity",
        "set_node_count": "Number of nodes",
        "set_split_count": "Number of split nodes",
    }
)
