"""What is known of a cluster and its nodes around a moment, for the ranked list of changes."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np

from algorithms.vocabulary import Floats
from controlplane.explain.cause import Cause, CauseCode
from controlplane.explain.causes.node_speed import speed_causes
from controlplane.explain.causes.stream_rises import StreamRises
from controlplane.explain.change import NearbyChange
from controlplane.explain.changes import capacities_set, changes_of_node, newest_versions
from controlplane.explain.node_keys import NodeKeys, read_node_keys
from controlplane.explain.node_work import NodeQueries, read_node_work
from controlplane.models import Node, RoutingVersion
from controlplane.watch.observation import ClusterObservation, LevelShift
from controlplane.watch.series_shifts import largest_shifts

# A value so many times beyond its limit counts no more than this.
_MOST_PRESSURE: Final = 10.0


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of a cluster around a moment; each part is read once, when it is used."""

    observed: ClusterObservation
    _of_nodes: dict[int, "NodeEvidence"] = field(default_factory=dict)

    def of_node(self, node: Node) -> "NodeEvidence":
        """Return what is known of a node."""
        return self._of_nodes.setdefault(node.index, NodeEvidence(self, node))

    @cached_property
    def rises(self) -> StreamRises:
        """Return the changes of the rates of all streams."""
        history, settled = self.observed.rates, self.observed.settled
        place = bisect_left(history.starts, settled)
        since = replace(
            history, rates=history.rates[:, place:], starts=history.starts[place:]
        )  # fmt: skip
        return StreamRises.of(since, self.observed.stream_names)

    @cached_property
    def speeds(self) -> Mapping[int, Cause]:
        """Return the nodes that are slow or process no records, by index."""
        return speed_causes(self.observed)

    @cached_property
    def versions(self) -> Sequence[RoutingVersion]:
        """Return the routing versions of the observed time, newest first."""
        return newest_versions(self.observed.cluster, self.observed.start, self.observed.until)

    @cached_property
    def lowered(self) -> frozenset[int]:
        """Return the nodes whose capacity was set in the observed time, by index."""
        return capacities_set(self.versions)

    @cached_property
    def shifts(self) -> list[LevelShift]:
        """Return the largest change of the load of each node."""
        observed = self.observed
        shifts = largest_shifts(observed.known(observed.series.loads).T)
        return [observed.level_shift(shifts, node.index) for node in observed.nodes]

    @cached_property
    def pressures(self) -> Floats:
        """Return how far load, latency and backlog of each node are towards their limits.

        1 at the limit of the one that is farthest; a backlog counts from a second of work on.
        """
        observed, policy = self.observed, self.observed.policy
        count, capacities = len(observed.nodes), observed.capacities
        loads = np.array([load or 0.0 for load in observed.loads]) / capacities / policy.watch_load
        late = observed.recent_means(observed.series["node_p95"])[:count] / policy.latency_ms
        backlog = observed.recent_means(observed.series["node_waiting"])[:count] / capacities
        worst = np.nan_to_num(np.maximum(loads, np.fmax(late, backlog)))
        pressures: Floats = np.minimum(worst, _MOST_PRESSURE)
        return pressures


@dataclass(frozen=True, eq=False)
class NodeEvidence:
    """What is known of a node."""

    cluster: Evidence
    node: Node

    @property
    def observed(self) -> ClusterObservation:
        """Return the observation of the cluster."""
        return self.cluster.observed

    @cached_property
    def work(self) -> NodeQueries:
        """Return the present queries of the node with their streams."""
        observed = self.observed
        return read_node_work(observed.cluster, self.node.index, observed.task_measures)

    @cached_property
    def weights(self) -> Floats:
        """Return the part of each stream of `rises` that the node receives, float64[s]."""
        return self.cluster.rises.weights(self.work.weights)

    @cached_property
    def load(self) -> float:
        """Return the load in records/s, 0 without data."""
        return self.observed.load(self.node.index) or 0.0

    @property
    def shift(self) -> LevelShift:
        """Return the largest change of the load."""
        return self.cluster.shifts[self.node.index]

    @cached_property
    def keys(self) -> NodeKeys | None:
        """Return the frequent keys of its records, None without samples."""
        return read_node_keys(
            self.observed, self.work, self.cluster.rises.former_rates, self.shift.time
        )

    @cached_property
    def changes(self) -> Sequence[NearbyChange]:
        """Return what changed at the node in the observed time, oldest first."""
        observed = self.observed
        return changes_of_node(
            observed.cluster, self.node.index, observed.start, observed.until, self.work.weights,
            self.cluster.versions,
        )  # fmt: skip

    @property
    def disturbing(self) -> list[NearbyChange]:
        """Return the changes since the cluster had filled."""
        return [change for change in self.changes if change.time >= self.observed.settled]

    def named(self, code: CauseCode, **values: object) -> Cause:
        """Return a cause on the node with these values."""
        cause = Cause(code, node=self.node.index, node_name=self.node.name)
        return replace(cause, **values)  # type: ignore[arg-type]
