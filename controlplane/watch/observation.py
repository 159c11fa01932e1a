"""Observation of a cluster: nodes, samples of the last minutes, exclusions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any, Final

from django.db.models import Count

from controlplane.models import Cluster, Exclusion, MetricSample, Query, ReachableMeasures, Task
from controlplane.policies.exclusions import live_exclusions
from controlplane.policies.measure_limits import reachable_of
from controlplane.policies.settings import PolicySettings
from controlplane.telemetry.arrivals.catching_up import CatchingUp, catching_up, load_of
from controlplane.wire.figures import figure_of

# The period of medians, so that one slow batch is not a problem.
WINDOW: Final = timedelta(seconds=60)
# The period of forecasts, in samples of 10 s.
TREND: Final = timedelta(minutes=10)


@dataclass(frozen=True)
class ObservedNode:
    """A node, the tasks assigned to it, and whether it is excluded from plans."""

    index: int
    name: str
    capacity: float
    active: bool
    tasks: int
    excluded: bool


@dataclass(frozen=True)
class WatchObservation:
    """The observation of a cluster in a cycle; samples and trend are ordered by time.

    `split_queries`: the number of running queries of several tasks. `excluded_queries`: the names
    of the queries that are excluded from plans. `reachable`: what placement reaches, None before it
    was computed.
    """

    cluster: Cluster
    policy: PolicySettings
    now: datetime
    nodes: Sequence[ObservedNode]
    samples: Sequence[Mapping[str, Any]]
    trend: Sequence[Mapping[str, Any]]
    split_queries: int
    excluded_queries: frozenset[str] = frozenset()
    reachable: ReachableMeasures | None = None

    @property
    def active(self) -> list[ObservedNode]:
        """Return the nodes that may host tasks."""
        return [node for node in self.nodes if node.active]

    def middle(self, name: str) -> float | None:
        """Return the median of a figure over the last minute, None if it is not known."""
        figure = figure_of(name).name
        known = [sample[figure] for sample in self.samples if sample.get(figure) is not None]
        return float(median(known)) if known else None

    def load(self, node: ObservedNode) -> float | None:
        """Return a node's median load over the last minute, in arriving records/s."""
        known = [
            load for sample in self.samples if (load := load_of(sample, node.index)) is not None
        ]
        return median(known) if known else None

    def catching_up(self) -> CatchingUp | None:
        """Return why the last minute shows an outage and not the load, None if it does."""
        return catching_up(self.samples, self.cluster.trigger_ms)


def observe(cluster: Cluster, policy: PolicySettings, now: datetime) -> WatchObservation:
    """Return the observation of a cluster."""
    split = Query.objects.filter(cluster=cluster, state=Query.State.RUNNING, task_count__gt=1)
    return WatchObservation(
        cluster=cluster,
        policy=policy,
        now=now,
        nodes=_nodes(cluster, now),
        samples=_samples(cluster, MetricSample.Resolution.RAW, now - WINDOW),
        trend=_samples(cluster, MetricSample.Resolution.TEN_SECONDS, now - TREND),
        split_queries=split.count(),
        excluded_queries=_excluded(cluster, Exclusion.Kind.QUERY, now),
        reachable=reachable_of([cluster.pk]).get(cluster.pk),
    )


def _nodes(cluster: Cluster, now: datetime) -> list[ObservedNode]:
    hosted = Task.objects.filter(
        node__cluster=cluster, since_version__lte=cluster.applied_version
    ).order_by()
    tasks = dict(hosted.values("node").annotate(n=Count("id")).values_list("node", "n"))
    excluded = _excluded(cluster, Exclusion.Kind.NODE, now)
    return [
        ObservedNode(
            index=node.index,
            name=node.name,
            capacity=node.capacity,
            active=node.active,
            tasks=tasks.get(node.pk, 0),
            excluded=node.name in excluded,
        )
        for node in cluster.nodes.order_by("index")
    ]


def _excluded(cluster: Cluster, kind: str, now: datetime) -> frozenset[str]:
    names = live_exclusions(cluster, now).filter(kind=kind)
    return frozenset(names.values_list("subject", flat=True))


def _samples(cluster: Cluster, resolution: int, since: datetime) -> list[Mapping[str, Any]]:
    rows = MetricSample.objects.filter(cluster=cluster, resolution=resolution, t__gt=since)
    return list(rows.order_by("t").values_list("values", flat=True))
