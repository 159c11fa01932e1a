"""Online placement: every pending query gets a node, every ending one leaves the routing table.

Reading and deciding happen outside any transaction; the writes claim the routing version and the
states they were decided for, or nothing is written and the pass begins again.

A query that is split over several tasks is placed by its first one, as one query on one node;
its other tasks go round the active nodes by capacity (`task_ranges`). A query with a key
grouping gets an aggregator (`aggregators`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.db.models import Q

from algorithms.placement.online import LoadLimits
from controlplane.errors import Conflict, VersionMoved
from controlplane.models import Cluster, Node, Query, Task
from controlplane.planning.online import OnlineProblem, read_online
from controlplane.policies.measure_limits import arrival_limits
from controlplane.policies.store import policy_of
from controlplane.queries.key_groupings import route_text
from controlplane.topology.aggregators import AggregatorNodes
from controlplane.topology.apply import TopologyChange, apply
from controlplane.topology.rows import streams_of
from controlplane.topology.versions import retry, version_of
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.query_actions import AddQuery, RemoveQuery
from controlplane.wire.routing.route import NO_AGGREGATOR, TaskRange

# Queries of one pass: bounds the statement, the delta and the time the write lock is held.
PASS = 500
NO_NODE = "Waiting: no node of the cluster is active"


@dataclass(frozen=True)
class PlacementPass:
    """How many queries were placed and removed, and how many wait for a node."""

    placed: int = 0
    removed: int = 0
    waiting: int = 0


@dataclass(frozen=True)
class _PendingWork:
    version: int
    pending: list[Query]
    ending: list[Task]
    streams: dict[int, tuple[int, ...]]


@dataclass(frozen=True)
class _Place:
    """The node of a query's first task, and where it is split its intervals and who merges it."""

    node: Node
    task_ranges: tuple[TaskRange, ...] = ()
    aggregator: Node | None = None
    more_aggregators: tuple[int, ...] = ()


def place_pending(cluster_id: int) -> PlacementPass:
    """Place all pending queries and remove all ending ones; do nothing for a deleted cluster."""
    placed = removed = waiting = 0
    while True:
        done = _run_pass(cluster_id)
        placed, removed, waiting = placed + done.placed, removed + done.removed, done.waiting
        if done.placed < PASS and done.removed < PASS:
            return PlacementPass(placed, removed, waiting)


def place_as(
    cluster: Cluster,
    wanted: Mapping[int, Sequence[TaskRange]],
    aggregators: Mapping[int, Sequence[int]],
) -> int:
    """Place pending queries, by id, on the nodes of their task ranges; return how many.

    `aggregators`: node indices by query; other queries with a key grouping get the least loaded
    node. Within the caller's transaction, at most `PASS` at once. Raises `VersionMoved`, also if
    a query is no longer pending, and `Conflict` if no node is active that could aggregate.
    """
    cluster.refresh_from_db(fields=["routing_version"])
    pending = list(Query.objects.filter(pk__in=wanted, state=Query.State.PENDING).order_by("id"))
    if len(pending) != len(wanted):
        raise VersionMoved(cluster.routing_version)
    if not pending:
        return 0
    work = _PendingWork(cluster.routing_version, pending, [], _streams(list(wanted)))
    nodes = {node.index: node for node in cluster.nodes.all()}
    chosen = {
        query.pk: _Place(
            nodes[wanted[query.pk][0][0]],
            () if query.task_count == 1 else tuple(wanted[query.pk]),
        )
        for query in pending
    }
    named = {pk: indices for pk, indices in aggregators.items() if indices}
    merged = _merged_as_wanted(
        cluster, pending, {pk: nodes[first] for pk, (first, *_) in named.items()}
    )
    chosen |= {
        pk: replace(chosen[pk], aggregator=node, more_aggregators=tuple(named.get(pk, ())[1:]))
        for pk, node in merged.items()
    }
    apply(cluster, _actions(work, chosen), TopologyChange(_summary(work, chosen)))
    return len(pending)


def _merged_as_wanted(
    cluster: Cluster, pending: Sequence[Query], named: Mapping[int, Node]
) -> dict[int, Node]:
    """Return who merges each query with a key grouping: whom it names, else the least loaded."""
    aggregators_by_query = {
        query.pk: named.get(query.pk) for query in pending if query.key_grouping
    }
    if None not in aggregators_by_query.values():
        return {pk: node for pk, node in aggregators_by_query.items() if node is not None}
    problem = read_online(cluster)
    if problem is None:
        raise Conflict("no_node", "No node of the cluster is active: none can merge")
    aggregators = AggregatorNodes(cluster, problem)
    for node in aggregators_by_query.values():
        if node is not None:
            aggregators.give(node)
    return {pk: node or aggregators.take() for pk, node in aggregators_by_query.items()}


@retry
def _run_pass(cluster_id: int) -> PlacementPass:
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    work = None if cluster is None else _find_work(cluster)
    if cluster is None or work is None:
        return PlacementPass()
    problem = read_online(cluster) if work.pending else None
    if version_of(cluster_id) != work.version:
        # What was read before and after the move does not fit together.
        raise VersionMoved(work.version)
    chosen = _choose(cluster, problem, work)
    actions = _actions(work, chosen)
    if actions:
        apply(cluster, actions, TopologyChange(_summary(work, chosen)))
    waiting = len(work.pending) - len(chosen)
    if waiting:
        ids = [query.pk for query in work.pending]
        rows = Query.objects.filter(pk__in=ids, state=Query.State.PENDING)
        rows.exclude(detail=NO_NODE).update(detail=NO_NODE)
    return PlacementPass(len(chosen), len(work.ending), waiting)


def _find_work(cluster: Cluster) -> _PendingWork | None:
    queries = Query.objects.filter(cluster=cluster).order_by("id")
    pending = list(queries.filter(state=Query.State.PENDING)[:PASS])
    leaving = Task.objects.filter(query__cluster=cluster, query__state=Query.State.ENDING)
    # The first task stands for the query.
    leaving = leaving.filter(index=0).order_by("query_id")
    ending = list(leaving.select_related("query")[:PASS])
    if not pending and not ending:
        return None
    ids = [query.pk for query in pending] + [task.query_id for task in ending]
    return _PendingWork(cluster.routing_version, pending, ending, _streams(ids))


def _streams(ids: Sequence[int]) -> dict[int, tuple[int, ...]]:
    read = streams_of(Q(query__in=ids))
    return {query: tuple(sorted(streams)) for query, streams in read.items()}


def _choose(
    cluster: Cluster, problem: OnlineProblem | None, work: _PendingWork
) -> dict[int, _Place]:
    """Return the place of each pending query; the leaving ones make room first."""
    if problem is None:
        return {}
    limits = arrival_limits(cluster, policy_of(cluster))
    for task in work.ending:
        problem.remove(work.streams[task.query_id], task.node_id)
    places = {
        query.pk: _place(problem, query, work.streams[query.pk], limits) for query in work.pending
    }
    if merged := [query.pk for query in work.pending if query.key_grouping]:
        # Once all are placed: what they read counts.
        aggregators = AggregatorNodes(cluster, problem)
        places |= {query: replace(places[query], aggregator=aggregators.take()) for query in merged}
    return places


def _place(
    problem: OnlineProblem, query: Query, streams: tuple[int, ...], limits: LoadLimits
) -> _Place:
    node, tasks = problem.place(streams, limits), query.task_count
    return _Place(node, task_ranges_over(problem.nodes, node, tasks) if tasks > 1 else ())


def _actions(work: _PendingWork, chosen: dict[int, _Place]) -> list[Action]:
    removals: list[Action] = [RemoveQuery(task.query_id) for task in work.ending]
    additions = [
        _addition(query, chosen[query.pk], work.streams[query.pk])
        for query in work.pending
        if query.pk in chosen
    ]
    return removals + additions


def _addition(query: Query, place: _Place, streams: tuple[int, ...]) -> Action:
    return AddQuery(
        query=query.pk,
        incarnation=query.incarnation,
        node=place.node.index,
        streams=streams,
        text=query.text,
        task_ranges=place.task_ranges,
        key_grouping=route_text(query.key_grouping, query.key_grouping_parameters),
        aggregator=NO_AGGREGATOR if place.aggregator is None else place.aggregator.index,
        more_aggregators=place.more_aggregators,
    )


def _summary(work: _PendingWork, chosen: dict[int, _Place]) -> str:
    parts = []
    if len(chosen) == 1:
        query = next(query for query in work.pending if query.pk in chosen)
        parts.append(f"{query.name} placed on {_node_text(chosen[query.pk])}")
    elif chosen:
        parts.append(f"{len(chosen)} queries placed")
    if len(work.ending) == 1:
        parts.append(f"{work.ending[0].query.name} removed")
    elif work.ending:
        parts.append(f"{len(work.ending)} queries removed")
    return ", ".join(parts)


def _node_text(place: _Place) -> str:
    others = len(place.task_ranges) - 1
    return f"{place.node.name} and {others} more" if others > 0 else place.node.name


def task_ranges_over(nodes: Sequence[Node], first: Node, tasks: int) -> tuple[TaskRange, ...]:
    """Return contiguous intervals of tasks, as many on each node as its share of all capacity.

    The intervals begin at `first`, which gets at least one task, and go round the nodes by index.
    A node whose share is less than a task may get none. What the shares leave over goes to those
    whose share was cut most (the method of largest remainders).
    """
    ordered = sorted(nodes, key=lambda node: (node.index < first.index, node.index))
    counts = _shares([node.capacity for node in ordered], tasks)
    if not counts[0]:
        counts[counts.index(max(counts))] -= 1
        counts[0] = 1
    task_ranges, start = [], 0
    for node, count in zip(ordered, counts, strict=True):
        if count:
            task_ranges.append((node.index, start, start + count))
            start += count
    return tuple(task_ranges)


def _shares(weights: Sequence[float], tasks: int) -> list[int]:
    total = sum(weights)
    exact = [tasks * weight / total for weight in weights]
    counts = [int(share) for share in exact]
    by_rest = sorted(range(len(weights)), key=lambda index: (counts[index] - exact[index], index))
    for index in by_rest[: tasks - sum(counts)]:
        counts[index] += 1
    return counts
