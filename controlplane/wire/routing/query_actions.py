"""Actions that change a query: where it runs, its tasks, its key grouping, its aggregator nodes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from sys import intern
from typing import Final

from controlplane.wire.errors import InconsistentDelta
from controlplane.wire.query_text import MAX_TASKS
from controlplane.wire.routing.actions import Action, ObjectKind, SingleAction, TableDraft
from controlplane.wire.routing.cluster_actions import SetDropRule
from controlplane.wire.routing.route import (
    NO_AGGREGATOR,
    Route,
    TaskRange,
    check_task_ranges,
    ranges_of,
    with_aggregators,
    with_moves,
    with_owners,
)

# How many tasks a query with an aggregator node has.
LEAST_TASKS: Final = 2


class QueryAction(SingleAction):
    """An action that changes one query."""

    __slots__ = ()
    kind = ObjectKind.QUERY


@dataclass(frozen=True, slots=True)
class AddQuery(QueryAction):
    """Start to evaluate `query` on `node`."""

    query: int
    incarnation: int
    node: int
    streams: tuple[int, ...]
    text: str
    task_ranges: tuple[TaskRange, ...] = ()
    key_grouping: str = ""
    aggregator: int = NO_AGGREGATOR
    more_aggregators: tuple[int, ...] = ()

    @classmethod
    def of(cls, query: int, route: Route) -> "AddQuery":
        """Return the action that adds a query with this route."""
        return cls(
            query, route.incarnation, route.node, route.streams, route.text, route.task_ranges,
            route.key_grouping, route.aggregator, route.more_aggregators,
        )  # fmt: skip

    def apply_to(self, draft: TableDraft) -> None:
        """Add the route of the query."""
        if self.query in draft.queries:
            raise InconsistentDelta(f"query {self.query} is in the table already")
        check_task_ranges(self.query, self.task_ranges)
        draft.queries[self.query] = Route(
            self.incarnation, self.node, self.streams, intern(self.text), self.task_ranges,
            self.key_grouping, self.aggregator, self.more_aggregators,
        )  # fmt: skip

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the removal of the query."""
        return (RemoveQuery(self.query),)


@dataclass(frozen=True, slots=True)
class RemoveQuery(QueryAction):
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

    def _edges(self, draft: TableDraft, route: Route) -> list[tuple[int, int]]:
        edges = [(stream, self.query) for stream in route.streams]
        return [edge for edge in edges if edge in draft.drop_rules]


@dataclass(frozen=True, slots=True)
class RestartQuery(QueryAction):
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


@dataclass(frozen=True, slots=True)
class MoveTasks(QueryAction):
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

    def tasks(self) -> Iterator[tuple[int, int]]:
        """Yield each task that moves, with its target node."""
        for node, first, stop in self.moves:
            for task in range(first, stop):
                yield task, node


@dataclass(frozen=True, slots=True)
class SetKeyGrouping(QueryAction):
    """Map the keys of `query` to its tasks by another grouping; the aggregator node stays."""

    query: int
    key_grouping: str

    def apply_to(self, draft: TableDraft) -> None:
        """Set the key grouping."""
        draft.queries[self.query] = replace(draft.route(self.query), key_grouping=self.key_grouping)

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present key grouping."""
        return (SetKeyGrouping(self.query, draft.route(self.query).key_grouping),)


@dataclass(frozen=True, slots=True)
class SetAggregator(QueryAction):
    """Aggregate the windows of `query` on `node` alone; its partial results move there."""

    query: int
    node: int

    def apply_to(self, draft: TableDraft) -> None:
        """Set the aggregator node of a query that has one."""
        SetAggregators(self.query, (self.node,)).apply_to(draft)

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present aggregator nodes."""
        nodes = draft.route(self.query).aggregators
        if len(nodes) > 1:
            return (SetAggregators(self.query, nodes),)
        return (SetAggregator(self.query, *nodes),) if nodes else ()


@dataclass(frozen=True, slots=True)
class SetAggregators(QueryAction):
    """Spread the keys of `query` by their hash over these aggregator nodes, with their state."""

    query: int
    nodes: tuple[int, ...]

    def apply_to(self, draft: TableDraft) -> None:
        """Set the aggregator nodes of a query that has one."""
        route = draft.route(self.query)
        # What a reader has to merge must not change while a query runs.
        if not route.aggregators:
            message = f"query {self.query} has an aggregator node from its start or never"
            raise InconsistentDelta(message)
        if not self.nodes or min(self.nodes) < 0 or len(set(self.nodes)) < len(self.nodes):
            message = f"query {self.query} needs different aggregator nodes, not {self.nodes}"
            raise InconsistentDelta(message)
        draft.queries[self.query] = with_aggregators(route, self.nodes)

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present aggregator nodes."""
        return (SetAggregators(self.query, draft.route(self.query).aggregators),)


@dataclass(frozen=True, slots=True)
class SetTaskCount(QueryAction):
    """Give `query` tasks 0 to tasks - 1; `added`: (node, first, stop) of new ones.

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
            bounds = f"{LEAST_TASKS} to {MAX_TASKS} tasks, each on a node"
            message = (
                f"query {self.query} must have {bounds}: {len(owners)} of {self.tasks} have one"
            )
            raise InconsistentDelta(message)
        draft.queries[self.query] = with_owners(route, owners)

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present number, with the nodes of the tasks that are removed."""
        owners = draft.route(self.query).owners()
        removed = ranges_of([*enumerate(owners)][self.tasks :])
        return (SetTaskCount(self.query, len(owners), removed),)
