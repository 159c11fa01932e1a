"""Numbers of tasks and aggregator nodes of queries: the problem of a snapshot, and its actions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from algorithms.admission.scaling import Parallelism, QueryLoad, QueryScale, ScalingProblem
from algorithms.vocabulary import Floats
from controlplane.errors import Conflict
from controlplane.planners.admission.expected_rates import expected_rates
from controlplane.planners.admission.inputs import AdmissionInput
from controlplane.planners.admission.problem import Outlook, predictions
from controlplane.planning.load_model import LoadModel
from controlplane.planning.measures import Better, Measure, Unit
from controlplane.plans.snapshot import ClusterSnapshot, GroupingRow, SplitQueryRow
from controlplane.wire.query_text import MAX_TASKS
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.query_actions import LEAST_TASKS, SetAggregators, SetTaskCount
from controlplane.wire.routing.route import ranges_of

NO_COSTS: Final = (
    "The time that a node needs per record is not measured: wait until records arrive at different"
    " rates or at busy nodes, or emulate the capacities of the nodes"
)


@dataclass(frozen=True)
class ScalableQuery:
    """A running query with an aggregator node that is not a join, and the ids of its streams."""

    row: SplitQueryRow
    grouping: GroupingRow
    streams: Sequence[int]

    @property
    def owners(self) -> list[int]:
        """Return the node index of each task."""
        return [node for node, first, stop in self.row.ranges for _ in range(first, stop)]

    @property
    def aggregators(self) -> tuple[int, ...]:
        """Return the indices of its aggregator nodes."""
        return (self.grouping.aggregator, *self.grouping.more_aggregators)


@dataclass(frozen=True)
class Exclusions:
    """The names of queries, ids of streams and indices of nodes that no plan may change."""

    queries: frozenset[Any]
    streams: frozenset[Any]
    nodes: frozenset[int]

    @classmethod
    def of(cls, snapshot: ClusterSnapshot) -> "Exclusions":
        """Return the exclusions of a snapshot."""
        named = {
            kind: frozenset(subject for of, subject in snapshot.excluded if of == kind)
            for kind in ("query", "stream", "node")
        }
        nodes = frozenset(node.index for node in snapshot.nodes if node.name in named["node"])
        return cls(named["query"], named["stream"], nodes)

    def forbid(self, query: ScalableQuery) -> bool:
        """Return whether a query must stay as it is."""
        return query.row.name in self.queries or bool(self.streams.intersection(query.streams))


def scalable_queries(snapshot: ClusterSnapshot) -> list[ScalableQuery]:
    """Return the queries of a snapshot whose numbers of tasks can change, by id."""
    given = snapshot.input(AdmissionInput)
    streams = {query.id: query.streams for query in given.queries} if given is not None else {}
    groupings = {row.query: row for row in snapshot.groupings if not row.joins}
    return [
        ScalableQuery(row, groupings[row.id], streams[row.id])
        for row in snapshot.split
        if row.id in groupings and row.id in streams
    ]


def plan_parallelism(
    snapshot: ClusterSnapshot, parallelism: Parallelism, outlook: Outlook
) -> list[Action]:
    """Return the actions that give queries as many tasks and aggregator nodes as they need.

    Raises `Conflict` no_costs, and `LatencyTooShort`.
    """
    given, excluded = snapshot.input(AdmissionInput), Exclusions.of(snapshot)
    queries = [query for query in scalable_queries(snapshot) if not excluded.forbid(query)]
    if given is None or not queries:
        return []
    if not given.costs.operator_s:
        raise Conflict("no_costs", NO_COSTS)
    rates = _rates_of(queries, given, np.asarray(predictions(given, outlook).expected))
    plan = parallelism.solve(scaling_problem(given, queries, rates))
    nodes = _FreeNodes(snapshot, excluded)
    actions: list[Action] = []
    for query, scale in zip(queries, plan.queries, strict=True):
        actions += _task_count(query, scale, rates[query.row.id], nodes)
        actions += _aggregators(query, scale, nodes)
    return actions


def scaling_problem(
    given: AdmissionInput, queries: Sequence[ScalableQuery], rates: Mapping[int, float]
) -> ScalingProblem:
    """Return the problem of these queries; `rates`: expected records/s by query."""
    costs = given.costs
    assert costs.operator_s, "the costs are measured"
    emitted = costs.partials_per_record
    loads = [
        QueryLoad(
            query.row.name,
            rates[query.row.id],
            costs.operator_s,
            costs.merge_s,
            None if emitted is None else emitted / costs.operator_s,
            len(query.owners),
            len(query.aggregators),
        )
        for query in queries
    ]
    return ScalingProblem(loads, given.interval_s)


def _rates_of(
    queries: Sequence[ScalableQuery], given: AdmissionInput, expected: Floats
) -> dict[int, float]:
    """Return the records/s of each query in the worst of the next periods, by id."""
    places = {stream.id: place for place, stream in enumerate(given.streams)}
    return {
        query.row.id: float(
            expected[[places[stream] for stream in query.streams]].sum(axis=0).max(initial=0.0)
        )
        for query in queries
    }


class _FreeNodes:
    """The nodes that plans may use, with their loads over their capacities."""

    def __init__(self, snapshot: ClusterSnapshot, excluded: Exclusions) -> None:
        self.excluded = excluded.nodes
        loads = LoadModel.of(snapshot).loads.tolist()
        usable = {node.index for node in snapshot.nodes if node.active} - excluded.nodes
        self._capacities = {n.index: n.capacity for n in snapshot.nodes if n.index in usable}
        rows = zip(snapshot.nodes, loads, strict=True)
        self._loads = {node.index: load for node, load in rows if node.index in usable}

    def __len__(self) -> int:
        return len(self._loads)

    def take(self, taken: set[int], records_per_s: float = 0.0) -> int:
        """Return the least loaded node, none of `taken` while there are others, and load it."""
        others = [node for node in self._loads if node not in taken] or list(self._loads)
        node = min(others, key=lambda n: (self._loads[n] / self._capacities[n], n))
        self._loads[node] += records_per_s
        return node

    def count_others(self, present: Sequence[int]) -> int:
        """Return how many nodes are not among the present ones."""
        return len(self._loads.keys() - set(present))


def _task_count(
    query: ScalableQuery, scale: QueryScale, rate: float, nodes: _FreeNodes
) -> list[Action]:
    owners = query.owners
    present = len(owners)
    count = min(max(scale.tasks, LEAST_TASKS), MAX_TASKS)
    if count < present:
        kept = not nodes.excluded.isdisjoint(owners[count:])
        return [] if kept else [SetTaskCount(query.row.id, count)]
    if count == present or not len(nodes):
        return []
    taken = set(owners)
    added = []
    for task in range(present, count):
        node = nodes.take(taken, rate / count)
        taken.add(node)
        added.append((task, node))
    return [SetTaskCount(query.row.id, count, ranges_of(added))]


def _aggregators(query: ScalableQuery, scale: QueryScale, nodes: _FreeNodes) -> list[Action]:
    """Return the action that sets the aggregator nodes; the present ones stay if they can."""
    present = query.aggregators
    count = min(scale.aggregators, len(present) + nodes.count_others(present))
    # Other aggregator nodes change the keys of all.
    if count == len(present) or not nodes.excluded.isdisjoint(present):
        return []
    chosen = list(present[:count])
    while len(chosen) < count:
        chosen.append(nodes.take(set(chosen)))
    return [SetAggregators(query.row.id, tuple(chosen))]


def _query_overload(snapshot: ClusterSnapshot, _: Any, plan: Any) -> float | None:
    """Return the expected records/s beyond what the tasks of queries process with head-room."""
    given = snapshot.input(AdmissionInput)
    if given is None or not given.costs.operator_s:
        return None
    queries = scalable_queries(snapshot)
    tasks = {query.row.id: len(query.owners) for query in queries}
    for planned in plan:
        if isinstance(planned.action, SetTaskCount):
            tasks[planned.action.query] = planned.action.tasks
    per_task = Parallelism().utilisation(given.interval_s) / given.costs.operator_s
    rates = _rates_of(queries, given, expected_rates(given))
    return sum(max(0.0, rate - tasks[query] * per_task) for query, rate in rates.items())


QUERY_OVERLOAD: Final = Measure(
    "query_overload", "Overload of queries", Unit.RATE, Better.LOWER, _query_overload
)
