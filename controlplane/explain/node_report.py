"""The report on a node: its explanation, tasks, keys, and history."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from controlplane.clusters.listing import node_by_index
from controlplane.explain.causes.evidence import Evidence
from controlplane.explain.change import NearbyChange
from controlplane.explain.changes import changes_of_node, newest_versions
from controlplane.explain.node_keys import NodeKeys
from controlplane.explain.node_work import HostedQuery
from controlplane.explain.service import explanation_of
from controlplane.explain.subjects import ExplanationSubject, SubjectKind
from controlplane.explain.values import Explanation
from controlplane.models import Cluster, Node
from controlplane.watch.observation import ClusterObservation

# The history of a node lists the changes of this time.
HISTORY: Final = timedelta(days=7)
HISTORY_ROWS: Final = 20


@dataclass(frozen=True)
class NodeReport:
    """A node at a moment; `tasks`: its queries, the most records first; `history`: newest first.

    `keys`: None without samples.
    """

    node: Node
    explanation: Explanation
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
    node, evidence = (
        node_by_index(cluster, index),
        Evidence(ClusterObservation.of_moment(cluster, time, now)),
    )
    own, observed = evidence.of_node(node), evidence.observed
    start, work = observed.time - HISTORY, own.work
    versions = newest_versions(cluster, start, observed.time)
    history = changes_of_node(cluster, index, start, observed.time, work.weights, versions)
    subject = ExplanationSubject(SubjectKind.NODE, str(index), time)
    return NodeReport(
        node=node,
        explanation=explanation_of(evidence, subject),
        tasks=sorted(work.queries.values(), key=lambda task: -(task.records_per_s or 0.0)),
        keys=own.keys,
        history=history[::-1][:HISTORY_ROWS],
    )
