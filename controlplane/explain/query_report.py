"""The report on a query: what it costs, why it is on its nodes, which queries share its work."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isnan
from typing import Final

from django.db.models import Count, QuerySet

from controlplane.catalog.query_costs import processor_percents
from controlplane.explain.causes.evidence import Evidence
from controlplane.explain.remedies import waiting_plans
from controlplane.explain.service import explanation_of
from controlplane.explain.subjects import ExplanationSubject, SubjectKind
from controlplane.explain.values import Explanation, Remedy
from controlplane.models import Cluster, Node, Query, QueryStream, RoutingVersion, Step, Task
from controlplane.policies.grades import Grade
from controlplane.watch.observation import ClusterObservation
from controlplane.wire.routing.route import TaskRange, task_ranges_from

# Rows of queries with the same computation.
SHARED: Final = 8


@dataclass(frozen=True)
class TaskPlacement:
    """Tasks [first, stop) of a query on a node, and the routing version that put them there.

    `proposal`, `step`: of the plan that moved them, None if no plan did; `actor`: who decided.
    `readers`: the number of other queries on the node that read one of its streams.
    """

    node: int
    node_name: str
    first: int
    stop: int
    version: int
    time: datetime | None = None
    proposal: int | None = None
    step: int | None = None
    actor: str = ""
    readers: int = 0


@dataclass(frozen=True)
class SharedQuery:
    """A query with the same computation on a node: each record is aggregated once for both.

    `records_per_s`: of the streams that both read.
    """

    id: int
    name: str
    node_name: str
    records_per_s: float


@dataclass(frozen=True)
class QueryReport:
    """A query now; None for what is not measured.

    `explanation`: of the latency of the slowest of its nodes, named in its finding;
    `slowest_is_full`: whether its load is above its limit. `evaluations_per_s`: of its tasks;
    `node_share`: the largest part of the records of one of its nodes, `node_share_name`.
    `processor`: an estimate of the part of a second that its nodes compute for it
    (`catalog.query_costs`). `shared_count`: of all queries that share its computation.
    """

    query: Query
    placements: Sequence[TaskPlacement]
    explanation: Explanation
    slowest_is_full: bool
    evaluations_per_s: float | None
    source_per_s: float
    stream_count: int
    state_bytes: int | None
    node_share: float | None
    node_share_name: str
    processor: float | None
    shared: Sequence[SharedQuery]
    shared_count: int
    waiting: Sequence[Remedy]


def query_report(query: Query, now: datetime | None = None) -> QueryReport:
    """Return the report on a query of a cluster."""
    cluster = query.cluster
    evidence = Evidence(ClusterObservation.of_moment(cluster, now=now))
    observed = evidence.observed
    streams = {stream.pk: stream.weight for stream in query.streams.all()}
    placements = _placements(query, list(streams))
    hosts = sorted({row.node for row in placements})
    subject = ExplanationSubject(SubjectKind.QUERY, query.name)
    explanation = explanation_of(evidence, subject)
    own = [measure for measure in observed.task_measures if measure.query == query.pk]
    shares = _shares(observed, query.pk)
    share_node, share = max(shares.items(), key=lambda row: row[1], default=(-1, None))
    alike = alike_queries(cluster, query.text, hosts, streams).exclude(pk=query.pk)
    shared, count = shared_queries(alike, hosts, streams)
    load = next((fact for fact in explanation.facts if fact.name == "load"), None)
    return QueryReport(
        query=query, placements=placements, explanation=explanation,
        slowest_is_full=load is not None and load.grade == Grade.BAD,
        evaluations_per_s=sum(measure.evaluations_per_s for measure in own) if own else None,
        source_per_s=sum(streams.values()), stream_count=len(streams),
        state_bytes=sum(measure.state_bytes for measure in own) if own else None,
        node_share=share,
        node_share_name=next((n.name for n in observed.nodes if n.index == share_node), ""),
        processor=_processor(observed, query.pk), shared=shared, shared_count=count,
        waiting=waiting_plans(cluster, "query", query.pk),
    )  # fmt: skip


def _placements(query: Query, streams: Sequence[int]) -> list[TaskPlacement]:
    """Return the ranges of tasks with the routing versions that put them on their nodes."""
    tasks = list(Task.objects.filter(query=query).select_related("node").order_by("index"))
    begins = [(task.index, task.node.index) for task in tasks]
    ranges: Sequence[TaskRange] = task_ranges_from(begins, query.task_count) if begins else ()
    numbers = {task.since_version for task in tasks}
    rows = RoutingVersion.objects.filter(cluster=query.cluster, version__in=numbers).defer("ops")
    versions = {row.version: row for row in rows}
    steps = dict(Step.objects.filter(version__in=rows).values_list("version_id", "number"))
    readers = _readers(query, {task.node_id for task in tasks}, streams)
    result = []
    for task, (node, first, stop) in zip(tasks, ranges, strict=True):
        row = versions.get(task.since_version)
        result.append(
            TaskPlacement(
                node, task.node.name, first, stop, task.since_version,
                None if row is None else row.created_at,
                None if row is None else row.proposal_id,
                None if row is None else steps.get(row.pk),
                "" if row is None else row.actor, readers.get(task.node_id, 0),
            )
        )  # fmt: skip
    return result


def _readers(query: Query, nodes: set[int], streams: Sequence[int]) -> dict[int, int]:
    """Return the number of other queries on each node (by id) that read one of the streams."""
    rows = Task.objects.filter(node__in=nodes, query__subscriptions__stream__in=streams)
    counted = rows.exclude(query=query).order_by().values("node")
    return dict(counted.annotate(n=Count("query", distinct=True)).values_list("node", "n"))


def _processor(observed: ClusterObservation, query: int) -> float | None:
    """Return the estimated part of a second that nodes compute for a query, None if unknown."""
    times = observed.recent_means(observed.series["busy"]).tolist()
    busy = {node: value for node, value in enumerate(times) if not isnan(value)}
    percent = processor_percents(observed.task_measures, busy).get(query)
    return None if percent is None else percent / 100


def _shares(observed: ClusterObservation, query: int) -> dict[int, float]:
    """Return the part of a query in the processed records of each node, by its index."""
    own, totals = defaultdict[int, float](float), defaultdict[int, float](float)
    for measure in observed.task_measures:
        totals[measure.node] += measure.evaluations_per_s
        if measure.query == query:
            own[measure.node] += measure.evaluations_per_s
    return {node: rate / totals[node] for node, rate in own.items() if rate}


def alike_queries(
    cluster: Cluster, text: str, hosts: Sequence[int], streams: Collection[int]
) -> QuerySet[Query]:
    """Return the running queries with this stored text, a common stream and a common node."""
    return Query.objects.filter(
        cluster=cluster, state=Query.State.RUNNING, text=text,
        subscriptions__stream__in=streams, tasks__node__index__in=hosts,
    ).distinct()  # fmt: skip


def shared_queries(
    alike: QuerySet[Query], hosts: Sequence[int], streams: Mapping[int, float]
) -> tuple[list[SharedQuery], int]:
    """Return the first of these queries with the records/s that they share, and their number.

    `streams`: records/s of the streams that may be common, by id.
    """
    rows = list(alike.order_by("name").only("id", "name", "cluster")[:SHARED])
    reads: dict[int, float] = {}
    common = QueryStream.objects.filter(query__in=rows, stream__in=streams)
    for reader, stream in common.values_list("query_id", "stream_id"):
        reads[reader] = reads.get(reader, 0.0) + streams[stream]
    nodes = Node.objects.filter(tasks__query__in=rows, index__in=hosts)
    places = dict(nodes.values_list("tasks__query", "name"))
    listed = [
        SharedQuery(row.pk, row.name, places.get(row.pk, ""), reads.get(row.pk, 0.0))
        for row in rows
    ]
    count = len(rows) if len(rows) < SHARED else alike.count()
    return sorted(listed, key=lambda row: -row.records_per_s), count
