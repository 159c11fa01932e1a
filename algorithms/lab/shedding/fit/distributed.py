"""D-FIT: each node computes its own table and exchanges messages with its neighbours alone.

After a change the nodes send what differs from what they sent before: a summary or settings if a
number in them changed, and the rows of their table that are gone, new or have another score. The
tables are those that C-FIT computes, bit by bit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from algorithms.errors import PlanningError
from algorithms.lab.shedding.fit.central import FitPlan, NodeState, assemble, epsilon_parameter
from algorithms.lab.shedding.fit.leaf import Settings
from algorithms.lab.shedding.fit.local import LocalModel
from algorithms.lab.shedding.fit.node import (
    Summary,
    build_table,
    child_settings,
    root_settings,
    summarize,
)
from algorithms.lab.shedding.fit.quadtree import PointQuadtree
from algorithms.lab.shedding.fit.table import Delta, Table, empty_table
from algorithms.lab.shedding.fit.tree import Cluster, ClusterTree
from algorithms.shedding.network import Network
from algorithms.shedding.problem import SheddingPlan, SheddingProblem
from algorithms.vocabulary import Parameters, Progress, silent


@dataclass(frozen=True)
class Traffic:
    """What nodes sent: messages, rows of tables that were inserted or removed, and bytes."""

    messages: int = 0
    rows: int = 0
    bytes: int = 0

    def plus(self, size: int, rows: int = 0) -> "Traffic":
        """Return the traffic with one more message."""
        return Traffic(self.messages + 1, self.rows + rows, self.bytes + size)


class FitNode:
    """A node with what it received: summaries and tables of its children, and its settings."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.local = LocalModel.of(cluster)
        self.summaries: dict[str, Summary] = {}
        self.tables: dict[str, Table] = {}
        self.settings: Settings | None = None
        self.summary: Summary | None = None
        self.sent: dict[str, Settings] = {}
        self.table: Table | None = None
        self.state: NodeState | None = None
        self.is_current = False

    def change(self, cluster: Cluster) -> None:
        """Update the operators of the node; forget what its neighbours have from it if they change.

        A neighbour changes if it is another node, or other streams connect the two.
        """
        if cluster == self.cluster:
            return
        before = self.cluster
        self.cluster, self.local = cluster, LocalModel.of(cluster)
        self.is_current = False
        if (before.parent, before.streams) != (cluster.parent, cluster.streams):
            self.summary, self.table, self.settings = None, None, None
        kept = {name for name, pairs in cluster.outlets.items()
                if before.outlets.get(name) == pairs}  # fmt: skip
        for received in (self.summaries, self.tables, self.sent):
            for name in received.keys() - kept:
                received.pop(name)

    def summarize(self) -> Summary | None:
        """Return the summary for the parent if it changed."""
        summary = summarize(self.local, {name: self.summaries[name] for name in self._children})
        if self.summary is not None and self.summary.key == summary.key:
            return None
        self.summary, self.is_current = summary, False
        return summary

    def receive_summary(self, child: str, summary: Summary) -> None:
        """Store the summary of a child."""
        self.summaries[child], self.is_current = summary, False

    def receive_settings(self, settings: Settings) -> None:
        """Store the settings from the parent."""
        self.settings, self.is_current = settings, False

    def set_root_settings(self, epsilon: float) -> None:
        """Update the settings of a node without a parent."""
        assert self.summary is not None
        settings = root_settings(self.summary, epsilon)
        if self.settings is None or self.settings.key != settings.key:
            self.receive_settings(settings)

    def changed_settings(self) -> dict[str, Settings]:
        """Return the settings of the children for which they changed."""
        assert self.settings is not None
        worths = {name: self.summaries[name].worth for name in self._children}
        result = {
            child: settings
            for child, settings in child_settings(self.local, worths, self.settings).items()
            if child not in self.sent or self.sent[child].key != settings.key
        }
        self.sent.update(result)
        return result

    def update_table(self) -> Delta | None:
        """Return the rows that changed, for the parent; None if there are none."""
        if self.is_current:
            return None
        assert self.settings is not None
        assert self.summary is not None
        worths = {name: self.summaries[name].worth for name in self._children}
        tables = {name: self.tables[name] for name in self._children}
        table, plans = build_table(self.local, self.summary, worths, self.settings, tables)
        index = PointQuadtree.of(table) if self.cluster.parent is None else None
        free = self.local.free_values(self.local.outlet_values(worths)[1])
        self.state = NodeState(self.local, free, table, plans, index)
        self.is_current = True
        before = self.table if self.table is not None else empty_table(table.rates.shape[1])
        self.table = table
        delta = Delta.between(before, table)
        return None if delta.is_empty else delta

    def receive_rows(self, child: str, delta: Delta) -> None:
        """Apply the changed rows of a child to what the node has from it."""
        known = self.tables.get(child, empty_table(delta.streams))
        self.tables[child], self.is_current = delta.apply(known), False

    @property
    def _children(self) -> tuple[str, ...]:
        return tuple(self.cluster.outlets)


class DistributedTables:
    """The nodes of a network, which keep their tables up to date with it.

    `traffic`: what they sent since the start; `last`: for the last network. Plans are those of
    `FitTables` for the same network. Raises what `FitTables.of` raises; after an error in a change
    there are no tables, `plan` raises it again, and the next change builds all tables.
    """

    def __init__(self, network: Network, epsilon: float, progress: Progress = silent) -> None:
        self.epsilon = epsilon
        self.nodes: dict[str, FitNode] = {}
        self.error: PlanningError | None = None
        self.traffic = self.last = Traffic()
        self.change(network, progress)

    def change(self, network: Network, progress: Progress = silent) -> Traffic:
        """Let the nodes adopt a changed network; return what they sent."""
        tree = ClusterTree.of(network)
        before, self.nodes, self.error = self.nodes, {}, None
        for name, cluster in tree.clusters.items():
            node = before.get(name)
            self.nodes[name] = node if node is not None else FitNode(cluster)
            self.nodes[name].change(cluster)
        self.tree, self.last = tree, Traffic()
        try:
            self._send_summaries()
            self._send_settings()
            self._send_tables(progress)
        except PlanningError as error:
            # Some nodes have received a change and others not: the next one sends everything.
            self.nodes, self.error = {}, error
            raise
        self.traffic = _sum(self.traffic, self.last)
        return self.last

    def _send_summaries(self) -> None:
        for name, node in self.nodes.items():
            summary, parent = node.summarize(), node.cluster.parent
            if summary is not None and parent is not None:
                self.last = self.last.plus(summary.size)
                self.nodes[parent].receive_summary(name, summary)

    def _send_settings(self) -> None:
        for node in reversed(self.nodes.values()):
            if node.cluster.parent is None:
                node.set_root_settings(self.epsilon)
            for child, settings in node.changed_settings().items():
                self.last = self.last.plus(settings.size)
                self.nodes[child].receive_settings(settings)

    def _send_tables(self, progress: Progress) -> None:
        for number, (name, node) in enumerate(self.nodes.items()):
            delta, parent = node.update_table(), node.cluster.parent
            if delta is not None and parent is not None:
                self.last = self.last.plus(delta.size, delta.rows.size + len(delta.removed))
                self.nodes[parent].receive_rows(name, delta)
            progress((number + 1) / len(self.nodes))

    @property
    def states(self) -> Mapping[str, NodeState]:
        """Return the table of each node."""
        return {name: node.state for name, node in self.nodes.items() if node.state is not None}

    @property
    def rows(self) -> int:
        """Return the number of rows in the tables of the roots."""
        return sum(self.states[name].table.size for name in self.tree.roots)

    def plan(self, problem: SheddingProblem) -> SheddingPlan:
        """Return the plan that the nodes apply for the rates of a problem with the same network."""
        if self.error is not None:
            raise self.error
        return assemble(self.tree, self.states, problem)


def _sum(first: Traffic, second: Traffic) -> Traffic:
    return Traffic(first.messages + second.messages, first.rows + second.rows,
                   first.bytes + second.bytes)  # fmt: skip


@dataclass(frozen=True)
class DistributedFitPlan(FitPlan):
    """A plan of nodes that exchange tables; `traffic`: what they sent to build them."""

    traffic: Traffic = Traffic()

    @classmethod
    def of_nodes(cls, nodes: DistributedTables, problem: SheddingProblem) -> Self:
        """Return the plan of nodes for a problem."""
        plan = nodes.plan(problem)
        return cls(plan.keep, plan.outcome, nodes.rows, nodes.traffic)


@dataclass(frozen=True)
class DFit(Parameters):
    """Feasible input tables that nodes compute and exchange with their neighbours (section 6)."""

    epsilon: float = epsilon_parameter()

    def solve(self, problem: SheddingProblem, progress: Progress = silent) -> DistributedFitPlan:
        """Return the plan that the nodes apply. Raises `BadProblem`, `TooLarge`."""
        nodes = DistributedTables(problem.network, self.epsilon, progress)
        return DistributedFitPlan.of_nodes(nodes, problem)
