"""The explanation of a query before its submission: what it reads, shares, keeps, and its node."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controlplane.explain.query_report import SharedQuery, alike_queries, shared_queries
from controlplane.models import Cluster, Node, QueryStream, Stream
from controlplane.planning.online import OnlineProblem, read_online
from controlplane.policies.measure_limits import arrival_limits
from controlplane.policies.store import policy_of
from controlplane.queries.spec import QuerySpec
from controlplane.topology import queries
from controlplane.topology.aggregators import AggregatorNodes
from controlplane.topology.placement import task_ranges_over
from controlplane.topology.queries import ResolvedQuery
from controlplane.watch.observation import ClusterObservation
from controlplane.wire.aggregates.layout import layout_of
from controlplane.wire.query import Computation

# Columns of a row of state that name its owner: query, incarnation, task, stream, pane.
_OWNERS: Final = 5
_CELL_BYTES: Final = 8
# A sketch of a window, about.
_SKETCH_BYTES: Final = 512


@dataclass(frozen=True)
class DraftStream:
    """A stream that the query would read: records/s, and False if they are only declared."""

    name: str
    records_per_s: float
    is_measured: bool


@dataclass(frozen=True)
class DraftPlace:
    """The node that the online placement would choose now, for the first task.

    `queries`: that it has; `received`: how many of the streams it receives already; `added_per_s`:
    records/s of the others, which would be delivered to it. `task_ranges`: [node, first, stop) of
    all tasks if there are several; `aggregator`: the name of the node that would merge.
    """

    node: int
    node_name: str
    queries: int
    received: int
    added_per_s: float
    task_ranges: Sequence[tuple[int, int, int]] = ()
    aggregator: str = ""


@dataclass(frozen=True)
class StateEstimate:
    """The expected bytes of state: between `least` and `most`.

    `is_measured`: True if they follow from a running query with the same computation; otherwise
    `least` is that of one key in each open window, `most` that of one key for each record.
    """

    least: int
    most: int
    is_measured: bool


@dataclass(frozen=True)
class DraftExplanation:
    """What a query would read, share and keep; `place`: None if no node is active."""

    streams: Sequence[DraftStream]
    records_per_s: float
    shared: Sequence[SharedQuery]
    shared_count: int
    state: StateEstimate
    place: DraftPlace | None


def explain(cluster: Cluster, spec: QuerySpec) -> DraftExplanation:
    """Return the explanation of a query for the present state of a cluster; changes nothing.

    Raises `Invalid` by field.
    """
    query = queries.resolved(cluster, spec)
    streams = list(Stream.objects.filter(pk__in=query.streams).defer("schema").order_by("name"))
    weights = {stream.pk: stream.weight for stream in streams}
    total = sum(weights.values())
    problem = read_online(cluster)
    place = None if problem is None else _place(cluster, problem, query, spec, weights)
    hosts = [] if place is None else _hosts(place)
    alike = alike_queries(cluster, query.text.to_text(), hosts, query.streams)
    shared, count = shared_queries(alike, hosts, weights)
    return DraftExplanation(
        streams=[DraftStream(s.name, s.weight, bool(s.rate)) for s in streams],
        records_per_s=total,
        shared=shared,
        shared_count=count,
        state=_state(cluster, query.computation, total, [row.id for row in shared], len(streams)),
        place=place,
    )


def _place(
    cluster: Cluster,
    problem: OnlineProblem,
    query: ResolvedQuery,
    spec: QuerySpec,
    weights: Mapping[int, float],
) -> DraftPlace:
    """Return the place that the online placement chooses, as `topology.placement` does."""
    node = problem.place(query.streams, arrival_limits(cluster, policy_of(cluster)))
    readers = QueryStream.objects.filter(stream__in=query.streams, query__tasks__node=node)
    received = set(readers.values_list("stream", flat=True))
    several = task_ranges_over(problem.nodes, node, spec.tasks) if spec.tasks > 1 else ()
    merged = AggregatorNodes(cluster, problem).take().name if spec.key_grouping else ""
    return DraftPlace(
        node=node.index,
        node_name=node.name,
        queries=_hosted(node),
        received=len(received),
        added_per_s=sum(weights[stream] for stream in query.streams if stream not in received),
        task_ranges=several,
        aggregator=merged,
    )


def _hosted(node: Node) -> int:
    return node.tasks.values("query").distinct().count()


def _hosts(place: DraftPlace) -> list[int]:
    return [node for node, _, _ in place.task_ranges] or [place.node]


def _state(
    cluster: Cluster, computation: Computation, rate: float, alike: Sequence[int], streams: int
) -> StateEstimate:
    """Return the expected state at `rate` records/s; `alike`: ids of queries that compute it."""
    tasks = ClusterObservation.of_moment(cluster).task_measures
    measured = [row for row in tasks if row.query in alike and row.evaluations_per_s]
    if measured:
        per_record = sum(row.state_bytes for row in measured) / sum(
            row.evaluations_per_s for row in measured
        )
        size = round(per_record * rate)
        return StateEstimate(size, size, is_measured=True)
    layout, window = layout_of(computation), computation.window
    columns = _OWNERS + len(layout.schema.keys) + len(layout.schema.slots)
    row_bytes = columns * _CELL_BYTES + len(layout.sketches) * _SKETCH_BYTES
    open_ms = window.size_ms + computation.lateness_ms
    least = row_bytes * (math.ceil(open_ms / window.pane_ms) + 1) * streams
    records = math.ceil(rate * open_ms / 1000)
    if computation.join is None and not computation.key:
        return StateEstimate(least, least, is_measured=False)
    return StateEstimate(least, max(least, row_bytes * records), is_measured=False)
