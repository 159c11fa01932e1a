"""The report on a node: its explanation, means over five minutes, tasks, keys, history."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone

from algorithms.vocabulary import Floats
from controlplane.alerts.measures import KINDS, AlertMeasure
from controlplane.clusters.listing import node_by_index
from controlplane.explain.change import NearbyChange
from controlplane.explain.changes import changes_of_node, newest_versions
from controlplane.explain.node_findings import load_limit
from controlplane.explain.node_keys import NodeKeys
from controlplane.explain.node_work import HostedQuery, read_node_work
from controlplane.explain.observation import FULL, ClusterObservation, mean
from controlplane.explain.service import explain_node, read_evidence
from controlplane.explain.subjects import ExplanationSubject, SubjectKind
from controlplane.explain.units import ValueUnit
from controlplane.explain.values import Explanation
from controlplane.models import Cluster, Node
from controlplane.policies.grades import Grade

TILE_TIME: Final = timedelta(minutes=5)
# The history of a node lists the changes of this time.
HISTORY: Final = timedelta(days=7)
HISTORY_ROWS: Final = 20


@dataclass(frozen=True)
class NodeTile:
    """The mean of a figure of a node over five minutes, and over the five minutes before.

    `limit`: None if there is none; `setting`: of the policy, "" for a limit of the node itself.
    """

    name: str
    value: float | None
    before: float | None
    unit: ValueUnit
    limit: float | None = None
    setting: str = ""
    grade: Grade = Grade.UNKNOWN


@dataclass(frozen=True)
class NodeReport:
    """A node at a moment; `tasks`: its queries, the most records first; `history`: newest first.

    `median_queries`: of the queries on the cluster's nodes. `keys`: None without samples.
    """

    node: Node
    explanation: Explanation
    tiles: Sequence[NodeTile]
    tasks: Sequence[HostedQuery]
    keys: NodeKeys | None
    history: Sequence[NearbyChange]

    @property
    def records_per_s(self) -> float:
        """Return the records/s that its tasks process."""
        return sum(task.records_per_s or 0.0 for task in self.tasks)


def node_report(
    cluster: Cluster, index: int, time: datetime | None = None, now: datetime | None = None
) -> NodeReport:
    """Return the report on a node; `time`: None for now. Raises `NotFound`."""
    present = now or timezone.now()
    node = node_by_index(cluster, index)
    observed = ClusterObservation(cluster, min(time or present, present), present)
    work = read_node_work(cluster, index)
    subject = ExplanationSubject(SubjectKind.NODE, str(index), time)
    tasks = sorted(work.queries.values(), key=lambda task: -(task.records_per_s or 0.0))
    start = observed.time - HISTORY
    versions = newest_versions(cluster, start, observed.time)
    history = changes_of_node(cluster, index, start, observed.time, work.weights, versions)
    evidence = read_evidence(observed, node, work, versions)
    return NodeReport(
        node=node,
        explanation=explain_node(observed, subject, evidence),
        tiles=_tiles(observed, node, len(tasks)),
        tasks=tasks,
        keys=evidence.keys,
        history=history[::-1][:HISTORY_ROWS],
    )


def _tiles(observed: ClusterObservation, node: Node, queries: int) -> list[NodeTile]:
    series, policy, place = observed.series, observed.policy, node.index
    limit = float(policy.latency_ms)
    rows: list[tuple[str, Floats, ValueUnit, float | None, str]] = [
        ("load", series.loads, ValueUnit.RATE, load_limit(observed, node), "watch_load"),
        # A second of work: then records wait for longer than a micro-batch.
        ("backlog", series.waiting, ValueUnit.RECORDS, node.capacity, ""),
        ("latency", series.p95_by_node, ValueUnit.MS, limit, "latency_ms"),
        ("busy", series.busy, ValueUnit.SHARE, FULL, ""),
        ("state", series.state, ValueUnit.BYTES, None, ""),
    ]
    tiles = [
        _tile(observed, name, values[:, place], unit, limit, setting)
        for name, values, unit, limit, setting in rows
        if values.shape[1] > place
    ]
    return [*tiles, NodeTile("queries", float(queries), None, ValueUnit.COUNT)]


def _tile(
    observed: ClusterObservation, name: str, values: Floats, unit: ValueUnit, limit: float | None,
    setting: str,
) -> NodeTile:  # fmt: skip
    start, end = observed.time - TILE_TIME, observed.time + timedelta(seconds=1)
    value = mean(observed.series.between(values, start, end))
    before = mean(observed.series.between(values, start - TILE_TIME, start))
    grade = Grade.UNKNOWN
    if limit is not None:
        grade = KINDS[AlertMeasure.LOAD].grade(value, limit, observed.policy.dead_band)
    return NodeTile(name, value, before, unit, limit, setting, grade)
