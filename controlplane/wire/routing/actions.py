"""The actions that change a routing table: their effects, their inverses, the objects they change.

Plans and every change of a cluster's topology are sequences of actions. An action is a value: it
travels as JSON (`action_json`), and applying it to equal tables gives equal tables.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from sys import intern
from typing import Final, NamedTuple, Protocol

from controlplane.wire.errors import InconsistentDelta
from controlplane.wire.routing.draft import NodeState, TableDraft
from controlplane.wire.routing.drop_rules import INPUT, DropRule
from controlplane.wire.routing.route import (
    NO_AGGREGATOR,
    Route,
    TaskRange,
    check_task_ranges,
    ranges_of,
    with_moves,
    with_owners,
)
from controlplane.wire.schema import StreamSchema


class Kind(StrEnum):
    """The kinds of objects that actions change."""

    QUERY = "query"
    STREAM = "stream"
    EDGE = "edge"
    NODE = "node"
    CLUSTER = "cluster"


class Subject(NamedTuple):
    """An object that an action changes: a query or stream by id, an edge by both, a node by index.

    Actions on different subjects can be applied in any order.
    """

    kind: Kind
    id: int = 0
    query: int = 0


CLUSTER: Final = Subject(Kind.CLUSTER)
# How many tasks a query with an aggregator node has.
LEAST_TASKS: Final = 2
MAX_TASKS: Final = 1024


class Action(Protocol):
    """A change of a routing table."""

    def apply_to(self, draft: TableDraft) -> None:
        """Change the draft. Raises `InconsistentDelta` if the action does not fit it."""

    def inverse(self, draft: TableDraft) -> "tuple[Action, ...]":
        """Return the actions that restore this draft once the action was applied to it."""

    def subjects(self) -> tuple[Subject, ...]:
        """Return the objects that the action changes."""


@dataclass(frozen=True, slots=True)
class AddQuery:
    """Start to evaluate `query` on `node`."""

    query: int
    incarnation: int
    node: int
    streams: tuple[int, ...]
    text: str
    task_ranges: tuple[TaskRange, ...] = ()
    key_grouping: str = ""
    aggregator: int = NO_AGGREGATOR

    @classmethod
    def of(cls, query: int, route: Route) -> "AddQuery":
        """Return the action that adds a query with this route."""
        return cls(
            query, route.incarnation, route.node, route.streams, route.text, route.task_ranges,
            route.key_grouping, route.aggregator,
        )  # fmt: skip

    def apply_to(self, draft: TableDraft) -> None:
        """Add the route of the query."""
        if self.query in draft.queries:
            raise InconsistentDelta(f"query {self.query} is in the table already")
        check_task_ranges(self.query, self.task_ranges)
        draft.queries[self.query] = Route(
            self.incarnation, self.node, self.streams, intern(self.text), self.task_ranges,
            self.key_grouping, self.aggregator,
        )  # fmt: skip

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the removal of the query."""
        return (RemoveQuery(self.query),)

    def subjects(self) -> tuple[Subject, ...]:
        """Return the query."""
        return (Subject(Kind.QUERY, self.query),)


@dataclass(frozen=True, slots=True)
class RemoveQuery:
    """Stop to evaluate `query`, delete its state and its drop rules."""

    query: int

    def apply_to(self, draft: TableDraft) -> None:
        """Remove the route of the query and the drop rules of its edges."""
        route = draft.route(self.query)
        for edge in self._edges(draft, route):
            del draft.drop_rules[edge]
        del draft.queries[self.query]

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the addition of the query, and its drop rules; its state is lost."""
        route = draft.route(self.query)
        rules = [SetDropRule(*edge, draft.drop_rules[edge]) for edge in self._edges(draft, route)]
        return (AddQuery.of(self.query, route), *rules)

    def subjects(self) -> tuple[Subject, ...]:
        """Return the query."""
        return (Subject(Kind.QUERY, self.query),)

    def _edges(self, draft: TableDraft, route: Route) -> list[tuple[int, int]]:
        edges = [(stream, self.query) for stream in route.streams]
        return [edge for edge in edges if edge in draft.drop_rules]


@dataclass(frozen=True, slots=True)
class RestartQuery:
    """Restart `query` on `node` as `incarnation`, without its earlier state."""

    query: int
    incarnation: int
    node: int

    def apply_to(self, draft: TableDraft) -> None:
        """Move all tasks to the node and set the incarnation."""
        route = draft.route(self.query)
        moved = with_moves(self.query, route, [(self.node, 0, len(route.owners()))])
        draft.queries[self.query] = replace(moved, incarnation=self.incarnation)

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the restart of the earlier incarnation, and the moves of the tasks back."""
        route = draft.route(self.query)
        back = RestartQuery(self.query, route.incarnation, route.node)
        return (back, MoveTasks(self.query, route.task_ranges)) if route.task_ranges else (back,)

    def subjects(self) -> tuple[Subject, ...]:
        """Return the query."""
        return (Subject(Kind.QUERY, self.query),)


@dataclass(frozen=True, slots=True)
class MoveTasks:
    """Move tasks of `query` with their state; `moves` has (target node, first, stop) of each."""

    query: int
    moves: tuple[TaskRange, ...]

    def apply_to(self, draft: TableDraft) -> None:
        """Move the tasks."""
        draft.queries[self.query] = with_moves(self.query, draft.route(self.query), self.moves)

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the moves of the same tasks to the nodes where the draft has them."""
        route = draft.route(self.query)
        with_moves(self.query, route, self.moves)  # refuses tasks that the query does not have
        owners = route.owners()
        tasks = sorted({task for _, first, stop in self.moves for task in range(first, stop)})
        return (MoveTasks(self.query, ranges_of([(task, owners[task]) for task in tasks])),)

    def subjects(self) -> tuple[Subject, ...]:
        """Return the query."""
        return (Subject(Kind.QUERY, self.query),)

    def tasks(self) -> Iterator[tuple[int, int]]:
        """Yield each task that moves, with its target node."""
        for node, first, stop in self.moves:
            for task in range(first, stop):
                yield task, node


@dataclass(frozen=True, slots=True)
class AssignStream:
    """Let split node `split` read `stream`."""

    stream: int
    split: int

    def apply_to(self, draft: TableDraft) -> None:
        """Assign the stream."""
        draft.splits[self.stream] = self.split

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the assignment to the present split node; nothing for a new stream."""
        if self.stream not in draft.splits:
            return ()
        return (AssignStream(self.stream, draft.splits[self.stream]),)

    def subjects(self) -> tuple[Subject, ...]:
        """Return the stream."""
        return (Subject(Kind.STREAM, self.stream),)


@dataclass(frozen=True, slots=True)
class SetSchema:
    """Set the schema of the records of `stream`."""

    stream: int
    schema: StreamSchema

    def apply_to(self, draft: TableDraft) -> None:
        """Set the schema."""
        draft.schemas[self.stream] = self.schema

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present schema; nothing for a stream without one."""
        if self.stream not in draft.schemas:
            return ()
        return (SetSchema(self.stream, draft.schemas[self.stream]),)

    def subjects(self) -> tuple[Subject, ...]:
        """Return the stream."""
        return (Subject(Kind.STREAM, self.stream),)


@dataclass(frozen=True, slots=True)
class SetKeyGrouping:
    """Map the keys of `query` to its tasks by another grouping; the aggregator node stays."""

    query: int
    key_grouping: str

    def apply_to(self, draft: TableDraft) -> None:
        """Set the key grouping."""
        draft.queries[self.query] = replace(draft.route(self.query), key_grouping=self.key_grouping)

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present key grouping."""
        return (SetKeyGrouping(self.query, draft.route(self.query).key_grouping),)

    def subjects(self) -> tuple[Subject, ...]:
        """Return the query."""
        return (Subject(Kind.QUERY, self.query),)


@dataclass(frozen=True, slots=True)
class SetAggregator:
    """Aggregate the windows of `query` on `node`; the partial results there move along."""

    query: int
    node: int

    def apply_to(self, draft: TableDraft) -> None:
        """Set the aggregator node of a query that has one."""
        route = draft.route(self.query)
        # What a reader has to merge must not change while a query runs.
        if (route.aggregator == NO_AGGREGATOR) != (self.node == NO_AGGREGATOR):
            message = f"query {self.query} has an aggregator node from its start or never"
            raise InconsistentDelta(message)
        draft.queries[self.query] = replace(route, aggregator=self.node)

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present aggregator node."""
        return (SetAggregator(self.query, draft.route(self.query).aggregator),)

    def subjects(self) -> tuple[Subject, ...]:
        """Return the query."""
        return (Subject(Kind.QUERY, self.query),)


@dataclass(frozen=True, slots=True)
class SetTaskCount:
    """Give `query` tasks 0 to tasks - 1; `added` has (node, first, stop) of those that are new.

    Records of a key may be in two tasks afterwards, so the query must have an aggregator node and
    must not be a join. A remaining task processes the backlog of a removed one.
    """

    query: int
    tasks: int
    added: tuple[TaskRange, ...] = ()

    def apply_to(self, draft: TableDraft) -> None:
        """Remove the tasks from `tasks` on, and add those that are missing."""
        route = draft.route(self.query)
        if route.aggregator == NO_AGGREGATOR or route.is_join:
            why = "is a join" if route.is_join else "has no aggregator node"
            raise InconsistentDelta(f"query {self.query} {why}: its number of tasks is fixed")
        owners = [*route.owners()[: self.tasks]]
        for node, first, stop in self.added:
            if first != len(owners) or stop <= first:
                message = f"query {self.query}: tasks [{first}, {stop}) cannot follow {len(owners)}"
                raise InconsistentDelta(message)
            owners += [node] * (stop - first)
        if len(owners) != self.tasks or not LEAST_TASKS <= self.tasks <= MAX_TASKS:
            message = f"query {self.query} can have {LEAST_TASKS} to {MAX_TASKS} tasks, all of them"
            raise InconsistentDelta(f"{message} on a node: not {len(owners)} of {self.tasks}")
        draft.queries[self.query] = with_owners(route, owners)

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present number, with the nodes of the tasks that are removed."""
        owners = draft.route(self.query).owners()
        removed = ranges_of([*enumerate(owners)][self.tasks :])
        return (SetTaskCount(self.query, len(owners), removed),)

    def subjects(self) -> tuple[Subject, ...]:
        """Return the query."""
        return (Subject(Kind.QUERY, self.query),)


@dataclass(frozen=True, slots=True)
class SetCapacity:
    """Set the declared capacity of `node` (records/s), and whether the node is limited to it."""

    node: int
    capacity: float
    emulated: bool

    def apply_to(self, draft: TableDraft) -> None:
        """Set the capacity."""
        # A table that an earlier release published knows the nodes with an emulated capacity only.
        known = draft.nodes.get(self.node, NodeState(self.capacity))
        draft.nodes[self.node] = replace(known, capacity=self.capacity, emulated=self.emulated)

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present capacity."""
        if self.node not in draft.nodes:
            return ()
        present = draft.nodes[self.node]
        return (SetCapacity(self.node, present.capacity, present.emulated),)

    def subjects(self) -> tuple[Subject, ...]:
        """Return the node."""
        return (Subject(Kind.NODE, self.node),)


@dataclass(frozen=True, slots=True)
class SetNodeActive:
    """Activate or deactivate `node`: planners assign no work to an inactive node."""

    node: int
    active: bool

    def apply_to(self, draft: TableDraft) -> None:
        """Set whether the node is active."""
        draft.nodes[self.node] = replace(draft.node(self.node), active=self.active)

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present state."""
        return (SetNodeActive(self.node, draft.node(self.node).active),)

    def subjects(self) -> tuple[Subject, ...]:
        """Return the node."""
        return (Subject(Kind.NODE, self.node),)


@dataclass(frozen=True, slots=True)
class SetNodeCount:
    """Give the cluster nodes 0 to nodes - 1; nodes that are new have `capacity` records/s.

    Tasks and aggregators of a node that is removed must have moved before.
    """

    nodes: int
    capacity: float = 0.0

    def apply_to(self, draft: TableDraft) -> None:
        """Remove the nodes from `nodes` on, add those that are missing."""
        draft.node_count = self.nodes
        for index in [index for index in draft.nodes if index >= self.nodes]:
            del draft.nodes[index]
        if self.capacity:
            for index in range(self.nodes):
                draft.nodes.setdefault(index, NodeState(self.capacity))

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present number of nodes, with the states of those that are removed."""
        actions: list[Action] = []
        for index in sorted(index for index in draft.nodes if index >= self.nodes):
            state = draft.nodes[index]
            actions.append(SetCapacity(index, state.capacity, state.emulated))
            if not state.active:
                actions.append(SetNodeActive(index, active=False))
        capacity = max((state.capacity for state in draft.nodes.values()), default=0.0)
        return (SetNodeCount(draft.node_count, capacity), *actions)

    def subjects(self) -> tuple[Subject, ...]:
        """Return the cluster."""
        return (CLUSTER,)


@dataclass(frozen=True, slots=True)
class SetSplitCount:
    """Give the cluster split nodes 0 to splits - 1; streams of one that is removed moved before."""

    splits: int

    def apply_to(self, draft: TableDraft) -> None:
        """Set the number of split nodes."""
        draft.split_count = self.splits

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present number of split nodes."""
        return (SetSplitCount(draft.split_count),)

    def subjects(self) -> tuple[Subject, ...]:
        """Return the cluster."""
        return (CLUSTER,)


@dataclass(frozen=True, slots=True)
class SetDropRule:
    """Drop records on an edge: the input edge of `stream`, or its edge to `query`; None: none."""

    stream: int
    query: int = INPUT
    rule: DropRule | None = None

    def apply_to(self, draft: TableDraft) -> None:
        """Set or clear the drop rule."""
        if self.rule is None:
            draft.drop_rules.pop((self.stream, self.query), None)
            return
        self.rule.check()
        draft.drop_rules[self.stream, self.query] = self.rule

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present drop rule of the edge, or that there is none."""
        edge = self.stream, self.query
        return (SetDropRule(*edge, draft.drop_rules.get(edge)),)

    def subjects(self) -> tuple[Subject, ...]:
        """Return the edge."""
        return (Subject(Kind.EDGE, self.stream, self.query),)
