"""Texts of actions: kind, object, value before and after."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from controlplane.models import Cluster, Query, Stream
from controlplane.plans.plan import PlannedAction
from controlplane.queries.key_groupings import label_of
from controlplane.wire.routing.action_json import kind_of
from controlplane.wire.routing.actions import Action, ActionObject, ObjectKind
from controlplane.wire.routing.cluster_actions import (
    AssignPartition,
    AssignStream,
    SetCapacity,
    SetDropRule,
    SetLadder,
    SetNodeActive,
    SetNodeCount,
    SetSplitCapacity,
    SetSplitCount,
)
from controlplane.wire.routing.query_actions import (
    MoveTasks,
    SetAggregator,
    SetAggregators,
    SetKeyGrouping,
    SetTaskCount,
)
from controlplane.wire.routing.route import NO_AGGREGATOR


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

    def subject(self, subject: ActionObject) -> str:
        """Return the name of an object that an action changes."""
        if subject.kind == ObjectKind.QUERY:
            return self.query(subject.id)
        if subject.kind == ObjectKind.NODE:
            return self.node(subject.id)
        if subject.kind == ObjectKind.CLUSTER:
            return "the cluster"
        stream = self.stream(subject.id)
        if subject.kind == ObjectKind.EDGE and subject.query:
            return f"{stream} to {self.query(subject.query)}"
        return stream


def names_of(cluster: Cluster, plan: Iterable[PlannedAction]) -> Names:
    """Return the names of the objects that these actions change, and of all nodes."""
    subjects = [subject for planned in plan for subject in planned.action.subjects()]
    queries = {subject.id for subject in subjects if subject.kind == ObjectKind.QUERY}
    queries |= {subject.query for subject in subjects if subject.query}
    streams = {
        subject.id for subject in subjects if subject.kind in (ObjectKind.STREAM, ObjectKind.EDGE)
    }
    return Names(
        dict(Query.objects.filter(pk__in=queries).values_list("pk", "name")),
        dict(Stream.objects.filter(pk__in=streams).values_list("pk", "name")),
        dict(cluster.nodes.values_list("index", "name")),
    )


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
    title, write = _TEXTS[type(action)]
    old_title, write_old = _TEXTS[type(planned.before[0])] if planned.before else ("", write)
    return ActionText(
        kind_of(action),
        title,
        _object(action, names),
        write_old(planned.before[0], names) if old_title == title else "",
        write(action, names),
    )


def _object(action: Action, names: Names) -> str:
    subject = names.subject(action.subjects()[0])
    return f"{action.place.text} of {subject}" if isinstance(action, AssignPartition) else subject


def _partition(action: Any, _: Names) -> str:
    return "round-robin" if action.split is None else f"split node {action.split}"


def _drop_rule(action: Any, _: Names) -> str:
    rule = action.rule
    if rule is None or not rule.steps[-1][1]:
        return "drops nothing"
    share = f"{100 * rule.steps[-1][1]:.3g} %"
    if not rule.window_ms:
        return f"drops {share} of its records"
    return f"drops {share} of its windows of {rule.window_ms / 1000:g} s"


def _ladder(action: Any, _: Names) -> str:
    ladder = action.ladder
    if ladder is None:
        return "not enabled"
    last = ladder.rungs[-1].factor
    return f"{len(ladder.rungs)} drop levels, up to {last:.3g} times what the cluster can process"


def _capacity(action: Any) -> str:
    return f"{action.capacity:,.0f} deliveries/s{', emulated' if action.emulated else ''}"


# By kind of action: its title, and the text of its value.
_TEXTS: Final[Mapping[type[Action], tuple[str, Callable[[Any, Names], str]]]] = {
    MoveTasks: ("Node", lambda action, names: names.node(action.moves[0][0])),
    AssignStream: ("Split node", lambda action, _: f"split node {action.split}"),
    AssignPartition: ("Split node", _partition),
    SetDropRule: ("Drop rule", _drop_rule),
    SetLadder: ("Shedding plan", _ladder),
    SetKeyGrouping: ("Key grouping", lambda action, _: label_of(action.key_grouping)),
    SetAggregator: ("Aggregator nodes", lambda action, names: names.node(action.node)),
    SetAggregators: (
        "Aggregator nodes", lambda action, names: ", ".join(map(names.node, action.nodes)),
    ),
    SetTaskCount: ("Number of tasks", lambda action, _: f"{action.tasks} tasks"),
    SetCapacity: ("Capacity", lambda action, _: _capacity(action)),
    SetNodeActive: ("Node activity", lambda action, _: "active" if action.active else "inactive"),
    SetNodeCount: ("Number of nodes", lambda action, _: f"{action.nodes} nodes"),
    SetSplitCount: ("Number of split nodes", lambda action, _: f"{action.splits} split nodes"),
    SetSplitCapacity: ("Capacity of split nodes", lambda action, _: (
        _capacity(action) if action.capacity else "measured"
    )),
}  # fmt: skip
