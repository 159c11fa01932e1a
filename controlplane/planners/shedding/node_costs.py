"""The time of nodes per record of a query: measured, or estimated from other nodes.

A node's time per delivered record is divided among the queries that it computes: its time per
record and query is that time over the number of queries per delivered record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import median_high
from typing import Final

from controlplane.errors import Conflict
from controlplane.planners.shedding.groups import QueryGroup, query_groups
from controlplane.planners.shedding.inputs import (
    LEAST_NODES,
    CostSource,
    NodeSeconds,
    SheddingInput,
)
from controlplane.planning.measured.costs import SURE, NodeWork
from controlplane.plans.snapshot import ClusterSnapshot

# The most names in a message.
_NAMED: Final = 5


@dataclass(frozen=True)
class NodeCost:
    """The seconds of a node per record of a query, and how they are known.

    Per delivered record on an emulated node. `error`: the standard error, None if it is not known.
    `fixed_s`: seconds per micro-batch that `seconds` excludes. `usable`: the share of its time that
    is left for records. `source`: None without a cost.
    """

    node: int
    name: str
    source: CostSource | None
    seconds: float = 0.0
    error: float | None = None
    fixed_s: float = 0.0
    usable: float = 1.0


class NodeCosts:
    """The costs of the nodes that have queries. Raises `Conflict` no_costs if a node has none."""

    def __init__(self, given: SheddingInput, groups: Sequence[QueryGroup]) -> None:
        self.emulated = {node.node: node.seconds or 0.0 for node in given.nodes if node.emulated}
        self.rows = node_costs(given, groups)
        missing = [row.name for row in self.rows if row.source is None]
        if missing:
            message = (
                f"No telemetry shows the time per record of {names_listed(missing)}: wait until"
                " the cluster processes records, or emulate the capacities of the nodes"
            )
            raise Conflict("no_costs", message, {"nodes": missing})
        self._by_node = {row.node: row for row in self.rows}
        # A node that only merges has no cost of its own.
        self._usable = given.usable()
        split = given.split_seconds or 0.0
        # A declared capacity is what a split node can process, a measured one needs usable time.
        self.split = split / self._usable if given.split_measured else split

    def of(self, node: int) -> float:
        """Return the usable time per record of a query; 0 on an emulated node: see `Delivery`."""
        row = self._by_node.get(node)
        if node in self.emulated or row is None:
            return 0.0
        return row.seconds / row.usable

    def merging(self, node: int, seconds: float) -> float:
        """Return the usable time of an aggregator node for so many seconds of work."""
        row = self._by_node.get(node)
        return seconds / (self._usable if row is None or self.is_emulated(node) else row.usable)

    def is_emulated(self, node: int) -> bool:
        """Return whether the capacity of a node is emulated."""
        return node in self.emulated

    @property
    def is_provisional(self) -> bool:
        """Return whether the cost of a node is assumed."""
        return any(row.source is CostSource.ASSUMED for row in self.rows)


def measured_node(index: int, name: str, capacity: float, work: NodeWork | None) -> NodeSeconds:
    """Return a node that is not emulated, with what its telemetry shows."""
    row = NodeSeconds(index, name, None, emulated=False, capacity=capacity)
    if work is None:
        return row
    line = work.line
    row = row._replace(quotient=work.quotient)
    if line is not None:
        row = row._replace(slope=round(line.slope, 12), error=round(line.error, 12))
    if line is not None and line.is_sure:
        fixed_s = round(line.fixed, 6)
        return row._replace(seconds=row.slope, source=CostSource.SLOPE, fixed_s=fixed_s)
    if work.busy_quotient is not None:
        return row._replace(seconds=work.busy_quotient, source=CostSource.BUSY)
    return row


def costs_of(snapshot: ClusterSnapshot | None) -> tuple[NodeCost, ...]:
    """Return the costs of the nodes with queries in a snapshot, none without its input."""
    given = None if snapshot is None else snapshot.input(SheddingInput)
    if snapshot is None or given is None:
        return ()
    return tuple(node_costs(given, query_groups(snapshot, given)))


def node_costs(given: SheddingInput, groups: Sequence[QueryGroup]) -> list[NodeCost]:
    """Return the costs of the nodes with queries, each from the best source that it has.

    Its own measurement; the pooled slope of the nodes with its capacity; the median of at least two
    measured nodes. Else it is assumed that all nodes need the same time: that of the only measured
    one, or at most the least quotient of a node's time and its records.
    """
    used = {node for group in groups for node, _ in group.shares}
    ratios = _ratios(given, groups)
    nodes = [node for node in given.nodes if node.node in used]
    rows = [_own_cost(node, given, ratios.get(node.node, 1.0)) for node in nodes]
    measured = [row.seconds for row in rows if row.source in (CostSource.BUSY, CostSource.SLOPE)]
    pooled = _pooled(nodes, ratios)
    quotients = [
        node.quotient * ratios[node.node] for node in nodes if node.quotient and node.node in ratios
    ]
    result = []
    for node, row in zip(nodes, rows, strict=True):
        if row.source is not None:
            result.append(row)
        elif node.capacity in pooled:
            seconds, error = pooled[node.capacity]
            result.append(replace(row, source=CostSource.POOLED, seconds=seconds, error=error))
        elif len(measured) >= LEAST_NODES:
            result.append(replace(row, source=CostSource.OTHERS, seconds=median_high(measured)))
        elif measured or quotients:
            seconds = min(measured or quotients)
            result.append(replace(row, source=CostSource.ASSUMED, seconds=seconds))
        else:
            result.append(row)
    return result


def _own_cost(node: NodeSeconds, given: SheddingInput, ratio: float) -> NodeCost:
    """Return the cost by the node's own measurement, without a source if it has none."""
    if node.emulated:
        return NodeCost(node.node, node.name, CostSource.EMULATED, node.seconds or 0.0)
    row = NodeCost(
        node.node, node.name, None, fixed_s=node.fixed_s, usable=given.usable(node.fixed_s)
    )
    if node.seconds is None:
        return row
    error = None if node.error is None else node.error * ratio
    return replace(
        row, source=node.source or CostSource.BUSY, seconds=node.seconds * ratio, error=error
    )


def _pooled(
    nodes: Sequence[NodeSeconds], ratios: Mapping[int, float]
) -> dict[float, tuple[float, float]]:
    """Return the sure slopes of the nodes of a capacity, per record of a query, and their errors.

    The mean by the inverse of their variances: the slope of one line per node, all with one slope.
    """
    rows: dict[float, list[tuple[float, float]]] = {}
    for node in nodes:
        if node.slope is not None and node.error and node.node in ratios and not node.emulated:
            ratio = ratios[node.node]
            rows.setdefault(node.capacity, []).append((node.slope * ratio, node.error * ratio))
    result = {}
    for capacity, slopes in rows.items():
        if len(slopes) < LEAST_NODES:
            continue
        weight = sum(1 / error**2 for _, error in slopes)
        slope = sum(value / error**2 for value, error in slopes) / weight
        if slope > SURE / sqrt(weight):
            result[capacity] = slope, 1 / sqrt(weight)
    return result


def _ratios(given: SheddingInput, groups: Sequence[QueryGroup]) -> dict[int, float]:
    """Return the records/s that are delivered to each node over those of its queries, by index."""
    rates = given.rates
    delivered: dict[tuple[int, int], float] = {}
    computed: dict[int, float] = {}
    for group in groups:
        for node, part in group.shares:
            for stream in group.leader.streams:
                records = rates[stream] * part
                computed[node] = computed.get(node, 0.0) + records
                delivered[node, stream] = max(delivered.get((node, stream), 0.0), records)
    received: dict[int, float] = {}
    for (node, _), records in delivered.items():
        received[node] = received.get(node, 0.0) + records
    return {node: received[node] / records for node, records in computed.items() if records}


def names_listed(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
