"""The routing table, compiled for the hot path; `table_cache` keeps it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from algorithms.errors import BadParameters, UnknownGrouping
from controlplane.wire.language.tree import Expression
from controlplane.wire.query import Computation
from controlplane.wire.routing.compiled_ladder import CompiledLadder, compiled_ladder
from controlplane.wire.routing.drop_rules import INPUT, Edge
from controlplane.wire.routing.route import Route
from controlplane.wire.routing.table import RoutingTable
from workers.pipeline.engine.assignment.subscriptions import DIRECT, Intake, NodeGroup, Subscription
from workers.pipeline.engine.assignment.tasks import Member, Tasks
from workers.pipeline.engine.evaluation.records import task_column
from workers.pipeline.routing.compilation import (
    InvalidRoute,
    SchemaMissing,
    computation_of_route,
    read_columns,
)
from workers.pipeline.routing.key_grouping import PLAIN, KeyMapping, key_grouping_of
from workers.pipeline.shedding.drops import edge_classes

NO_TASKS: Final = Tasks((), {})
# A query that is not split has one task, and its node has it.
_WHOLE: Final = np.ones(1, np.bool_)


# In `Keyed`: every node computes the task from the key.
NO_LEADER: Final = 0


class Keyed(NamedTuple):
    """Readers of some keys: a record is sent to the node of its key's task.

    `leader`: the first of the queries whose records the split node assigns to tasks together; it
    names the column with the task of each record. `NO_LEADER`: the key decides.
    """

    key: tuple[Expression, ...]
    owners: tuple[int, ...]
    grouping: KeyMapping
    leader: int = NO_LEADER

    @property
    def column(self) -> str:
        """Return the column with the task of each record; empty if the key decides."""
        return "" if self.leader == NO_LEADER else task_column(self.leader)


class RoutedKeys(NamedTuple):
    """A key grouping that split nodes evaluate for a query and others like it.

    `owners`: the node of each task.
    """

    grouping: KeyMapping
    owners: tuple[int, ...]


class Readers(NamedTuple):
    """The readers of a stream: nodes that need every record, and nodes that need some.

    `time_readers`: nodes that need the event times of every block; `needs_sample_hash`: whether the
    sample hash of each record is needed: a query's edge drops, or may when a record that has to
    wait is taken. `columns`: those that a query of the stream looks at, besides the time of the
    record.
    """

    whole: tuple[int, ...]
    keyed: tuple[Keyed, ...]
    time_readers: tuple[int, ...]
    needs_sample_hash: bool
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class CompiledTable:
    """One routing table, with the look-ups that routing and evaluation need."""

    table: RoutingTable

    @property
    def version(self) -> int:
        """Return the version this was compiled from."""
        return self.table.version

    @property
    def needs_feedback(self) -> bool:
        """Return whether the planning of a batch needs the loads of nodes."""
        return bool(self.leaders or self.has_aggregators or self.table.capacities)

    @property
    def ladder(self) -> CompiledLadder | None:
        """Return the armed ladder of drop rules, None for none."""
        return None if self.table.ladder is None else compiled_ladder(self.table.ladder)

    @cached_property
    def _compiled(self) -> tuple[dict[int, Computation], dict[int, str]]:
        """Return what queries compute, and why others cannot, by query."""
        result: dict[int, Computation] = {}
        invalid_queries: dict[int, str] = {}
        for query, route in self.table.queries.items():
            try:
                computation = computation_of_route(route, self.table.schemas)
                _key_grouping(route, computation)
                result[query] = computation
            except SchemaMissing:
                continue
            except (InvalidRoute, UnknownGrouping, BadParameters) as error:
                invalid_queries[query] = str(error)
        return result, invalid_queries

    @property
    def computations(self) -> Mapping[int, Computation]:
        """Return the computation of each valid query."""
        return self._compiled[0]

    @property
    def invalid_queries(self) -> Mapping[int, str]:
        """Return the queries that cannot be computed over the columns that there are, and why."""
        return self._compiled[1]

    def invalid_queries_of_node(self, node: int) -> dict[int, str]:
        """Return those of them that a node should compute or merge."""
        if not self.invalid_queries:
            return {}
        routes = self.table.queries
        return {
            query: why
            for query, why in self.invalid_queries.items()
            if node in routes[query].owners() or node in routes[query].aggregators
        }

    @cached_property
    def _routes(self) -> dict[int, Route]:
        """Return the routes of the queries that can be computed."""
        return {query: self.table.queries[query] for query in self.computations}

    @cached_property
    def readers_of_stream(self) -> dict[int, Readers]:
        """Return which nodes need which records of each stream (streams without are absent)."""
        whole: dict[int, set[int]] = {}
        # Sets that keep their order: the same in every process.
        keyed: dict[int, dict[Keyed, None]] = {}
        time_readers: dict[int, set[int]] = {}
        for query, route in self._routes.items():
            owners = route.owners()
            for stream in route.streams:
                reader = self.keyed_reader(query, stream)
                if len(set(owners)) == 1 and not route.aggregators and not reader.column:
                    whole.setdefault(stream, set()).add(owners[0])
                    continue
                keyed.setdefault(stream, {})[reader] = None
                time_readers.setdefault(stream, set()).update(owners)
                time_readers[stream].update(route.aggregators)
        edges = {stream for stream, query in self.table.drop_rules if query != INPUT}
        return {
            stream: Readers(
                tuple(sorted(whole.get(stream, ()))),
                tuple(keyed.get(stream, ())),
                tuple(sorted(time_readers.get(stream, ()))),
                stream in edges or bool(self.table.capacities),
                self._columns_of_stream[stream],
            )
            for stream in {*whole, *keyed}
        }

    @cached_property
    def dropping_readers(self) -> dict[int, dict[int, list[tuple[int, Keyed | None]]]]:
        """Return by stream and node the queries, if the ladder drops records on all their edges.

        Each with its kind of reader, None for a query that needs every record.
        """
        result: dict[int, dict[int, list[tuple[int, Keyed | None]]]] = {}
        if self.ladder is None:
            return result
        for query, route in self._routes.items():
            for stream in self.ladder.query_streams.intersection(route.streams):
                reader, nodes = self.keyed_reader(query, stream), set(route.owners())
                is_whole = len(nodes) == 1 and not route.aggregators and not reader.column
                for node in nodes:
                    readers = result.setdefault(stream, {}).setdefault(node, [])
                    readers.append((query, None if is_whole else reader))
        edges = self.ladder.query_edges.keys() - self.ladder.windows.keys()
        return {
            stream: {
                node: readers
                for node, readers in by_node.items()
                if all((stream, query) in edges for query, _ in readers)
            }
            for stream, by_node in result.items()
        }

    def keyed_reader(self, query: int, stream: int) -> Keyed:
        """Return how a query's records of a stream find their task."""
        route, computation = self.table.queries[query], self.computations[query]
        leader = self.leaders.get(query, NO_LEADER)
        grouping = PLAIN if leader == NO_LEADER else self.routed_keys[leader].grouping
        return Keyed(computation.task_key(stream), route.owners(), grouping, leader)

    @cached_property
    def leaders(self) -> Mapping[int, int]:
        """Return by query the first query with the same streams, key, tasks and key grouping.

        Only of queries whose key grouping is evaluated at split nodes. One column has the tasks of
        all queries with one leader, so their records are aggregated once.
        """
        first: dict[Any, int] = {}
        result = {}
        for query, route in sorted(self._routes.items()):
            grouping = _key_grouping(route, self.computations[query])
            if not grouping.by_key:
                key = self.computations[query].key
                alike = route.streams, key, route.owners(), grouping
                result[query] = first.setdefault(alike, query)
        return result

    @cached_property
    def routed_keys(self) -> Mapping[int, RoutedKeys]:
        """Return by leading query the key grouping that split nodes evaluate."""
        result = {}
        for query in dict.fromkeys(self.leaders.values()):
            route = self.table.queries[query]
            grouping = _key_grouping(route, self.computations[query])
            result[query] = RoutedKeys(grouping, route.owners())
        return result

    @cached_property
    def split_queries(self) -> tuple[int, ...]:
        """Return the queries with several tasks."""
        return tuple(query for query, route in self._routes.items() if len(route.owners()) > 1)

    @cached_property
    def _columns_of_stream(self) -> dict[int, tuple[str, ...]]:
        # By identity: equal computations are one value, and to hash one is to walk through it.
        result: dict[int, dict[int, Computation]] = {}
        for query, route in self._routes.items():
            computation = self.computations[query]
            for stream in route.streams:
                result.setdefault(stream, {})[id(computation)] = computation
        return {
            stream: tuple(
                sorted({name for item in some.values() for name in read_columns(item, stream)})
            )
            for stream, some in result.items()
        }

    @cached_property
    def _merges(self) -> dict[int, dict[int, Member]]:
        result: dict[int, dict[int, Member]] = {}
        for query, route in self._routes.items():
            if route.aggregators:
                member = aggregator_member(query, route, self.computations[query])
                for node in route.aggregators:
                    result.setdefault(node, {})[query] = member
        return result

    def aggregated_by_node(self, node: int) -> Mapping[int, Member]:
        """Return the queries that a node merges."""
        return self._merges.get(node, {})

    @property
    def has_aggregators(self) -> bool:
        """Return whether the table has an aggregator node."""
        return bool(self._merges)

    @cached_property
    def _routes_of_node(self) -> dict[int, list[tuple[int, Route]]]:
        result: dict[int, list[tuple[int, Route]]] = {}
        for query, route in self._routes.items():
            for node in dict.fromkeys(route.owners()):
                result.setdefault(node, []).append((query, route))
        return result

    @cached_property
    def _tasks(self) -> dict[int, Tasks]:
        return {node: _tasks(node, routes, self) for node, routes in self._routes_of_node.items()}

    @cached_property
    def nodes(self) -> int:
        """Return the number of nodes, including all with tasks or aggregators."""
        named = (*self._routes_of_node, *self._merges)
        return max(self.table.node_count, 1 + max(named, default=-1))

    @cached_property
    def idle_ms(self) -> dict[int, int]:
        """Return by stream after how many ms without records it is idle."""
        schemas = self.table.schemas.items()
        return {stream: round(schema.idle_after_s * 1000) for stream, schema in schemas}

    @cached_property
    def lateness_ms(self) -> dict[Edge, int]:
        """Return the lateness of each edge's query, of an input edge the largest of its readers."""
        result: dict[Edge, int] = {}
        for query, route in self._routes.items():
            lateness = self.computations[query].lateness_ms
            for stream in route.streams:
                result[stream, query] = lateness
                result[stream, INPUT] = max(lateness, result.get((stream, INPUT), 0))
        return result

    @cached_property
    def kinds(self) -> int:
        """Return a number that is another if columns of streams have other kinds."""
        schemas = self.table.schemas.items()
        # Each stream has a weight of its own: two that change the same way do not cancel out.
        return sum((2 * stream + 1) * schema.kinds_number for stream, schema in schemas)

    def streams_of_split(self, split: int) -> list[int]:
        """Return the streams that a split node reads."""
        return sorted(stream for stream, owner in self.table.splits.items() if owner == split)

    def tasks_of_node(self, node: int) -> Tasks:
        """Return the tasks of a node."""
        return self._tasks.get(node, NO_TASKS)


def aggregator_member(query: int, route: Route, computation: Computation) -> Member:
    """Return a query as the member of its aggregator node."""
    tasks = len(route.owners())
    every = Subscription(query, route.incarnation, route.streams, tasks, np.ones(tasks, np.bool_))
    return Tasks.of([NodeGroup.of(computation, [every])]).members[query]


def _key_grouping(route: Route, computation: Computation) -> KeyMapping:
    """Return how keys find their task; records that are joined have to meet in one."""
    if computation.join is not None or not route.key_grouping:
        return PLAIN
    return key_grouping_of(route.key_grouping, computation.window)


def _intake(query: int, route: Route, computation: Computation, table: CompiledTable) -> Intake:
    """Return the input of a query: its drop rules, and the column with the task."""
    drop_rules = table.table.drop_rules
    own_rules = tuple((s, drop_rules[s, query]) for s in route.streams if (s, query) in drop_rules)
    input_rules = [(s, drop_rules[s, INPUT]) for s in route.streams if (s, INPUT) in drop_rules]
    # Of other windows than the query's own only records are dropped.
    size = computation.window.size_ms, computation.window.slide_ms
    window_drop_rules = tuple(
        item for item in (*own_rules, *input_rules) if (item[1].window_ms, item[1].slide_ms) == size
    )
    leader = table.leaders.get(query, NO_LEADER)
    column = "" if leader == NO_LEADER else task_column(leader)
    classes = edge_classes(table.ladder, query, route.streams, computation)
    return (
        Intake(column, own_rules, window_drop_rules, classes)
        if column or own_rules or window_drop_rules or classes
        else DIRECT
    )


def _tasks(node: int, routes: Iterable[tuple[int, Route]], table: CompiledTable) -> Tasks:
    groups: dict[tuple[Computation, Intake], list[Subscription]] = {}
    for query, route in sorted(routes, key=lambda pair: pair[0]):
        owners, computation = route.owners(), table.computations[query]
        owned = _WHOLE if len(owners) == 1 else np.array(owners) == node
        subscription = Subscription(query, route.incarnation, route.streams, len(owners), owned)
        kind = computation, _intake(query, route, computation, table)
        groups.setdefault(kind, []).append(subscription)
    return Tasks.of(NodeGroup.of(kind[0], result, kind[1]) for kind, result in groups.items())
