"""The problems of the partitioning planner: one per query, and the state after actions."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from algorithms.partitioning.recommendation import RecommendationProblem, canonical_text
from controlplane.planning.measured.key_loads import (
    Prediction,
    owners_of,
    predict,
    stream_of,
    task_capacities,
)
from controlplane.planning.measured.sampled_keys import PartitioningInput, SampledQuery
from controlplane.plans.plan import PlannedAction
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.wire.routing.query_actions import (
    MoveTasks,
    SetAggregator,
    SetAggregators,
    SetKeyGrouping,
    SetTaskCount,
)
from controlplane.wire.routing.route import NO_AGGREGATOR


@dataclass(frozen=True)
class GroupedQuery:
    """A query with an aggregator node that is not a join.

    `text`: its key grouping in a route; `owners`: the node index of each task; `aggregators`: the
    number of its aggregator nodes; `keys`: None if it was not sampled; `excluded`: whether no plan
    may change it.
    """

    id: int
    name: str
    text: str
    owners: tuple[int, ...]
    aggregators: int
    keys: SampledQuery | None
    excluded: bool


def grouped_queries(
    snapshot: ClusterSnapshot, plan: Iterable[PlannedAction] = ()
) -> list[GroupedQuery]:
    """Return the queries of a snapshot whose key grouping can change, by id, after a plan."""
    given = snapshot.input(PartitioningInput)
    sampled = {row.id: row for row in given.queries} if given is not None else {}
    rows = {
        row.query: row
        for row in snapshot.groupings
        if row.aggregator != NO_AGGREGATOR and not row.joins
    }
    queries = {
        row.id: GroupedQuery(
            row.id,
            row.name,
            rows[row.id].grouping,
            tuple(owners_of(row.ranges)),
            1 + len(rows[row.id].more_aggregators),
            sampled.get(row.id),
            _is_excluded(snapshot, row.name, sampled.get(row.id)),
        )
        for row in snapshot.split
        if row.id in rows
    }
    for planned in plan:
        query = queries.get(getattr(planned.action, "query", 0))
        if query is not None:
            queries[query.id] = _after(query, planned)
    return list(queries.values())


def _is_excluded(snapshot: ClusterSnapshot, name: str, keys: SampledQuery | None) -> bool:
    streams = keys.streams if keys is not None else ()
    excluded = {(kind, subject) for kind, subject in snapshot.excluded}
    return ("query", name) in excluded or any(("stream", s) in excluded for s in streams)


def _after(query: GroupedQuery, planned: PlannedAction) -> GroupedQuery:
    """Return a query after an action on it."""
    match planned.action:
        case SetKeyGrouping(key_grouping=text):
            return replace(query, text=text)
        case SetAggregator():
            return replace(query, aggregators=1)
        case SetAggregators(nodes=nodes):
            return replace(query, aggregators=len(nodes))
        case SetTaskCount(tasks=count, added=added):
            owners = (*query.owners[:count], *owners_of(added))
            return replace(query, owners=owners)
        case MoveTasks() as moves:
            targets = dict(moves.tasks())
            owners = tuple(targets.get(task, node) for task, node in enumerate(query.owners))
            return replace(query, owners=owners)
    return query


def problem_of(query: GroupedQuery, snapshot: ClusterSnapshot) -> RecommendationProblem:
    """Return the problem of a sampled query."""
    given = snapshot.input(PartitioningInput)
    assert given is not None, "the snapshot is for this planner"
    assert query.keys is not None, "the query was sampled"
    nodes = {node.index: node.capacity for node in snapshot.nodes}
    capacities = task_capacities(query.owners, nodes)
    stream = stream_of(query.keys, given, capacities, query.aggregators)
    return RecommendationProblem(stream, canonical_text(query.text), complete=False)


def predictions(
    snapshot: ClusterSnapshot, plan: Iterable[PlannedAction] = ()
) -> list[tuple[GroupedQuery, Prediction]]:
    """Return the sampled queries with what their key groupings give after a plan."""
    return [
        (query, predict(query.text, problem_of(query, snapshot).stream))
        for query in grouped_queries(snapshot, plan)
        if query.keys is not None
    ]


def planned_limit(limit: float) -> float:
    """Return the imbalance within which plans keep queries, for the limit of the loop of skew.

    Half of it, so that a plan ends well below the limit.
    """
    return limit / 2
