"""Nodes of a proposal: the matrix of moves, and the loads before and after."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from controlplane.models import Cluster
from controlplane.planning.plan_summary import PlanSummary

# Rows that a person can compare at a glance; the nodes with the most moves are shown.
MAX_MATRIX: Final = 16
MAX_LOADS: Final = 24


@dataclass(frozen=True)
class NodeLoad:
    """A node with its load over its capacity before and after."""

    index: int
    name: str
    before: float
    after: float


@dataclass(frozen=True)
class LoadRows:
    """The loads of nodes; `hidden`: how many change less and are not shown; `top`: the largest."""

    rows: Sequence[NodeLoad]
    hidden: int
    top: float


@dataclass(frozen=True)
class MatrixCell:
    """The moves between two nodes; `query` selects them in the filter of the actions."""

    moves: int
    query: str
    is_self: bool


@dataclass(frozen=True)
class MatrixRow:
    """The moves from one node, and their sum."""

    index: int
    name: str
    cells: Sequence[MatrixCell]
    total: int


@dataclass(frozen=True)
class Matrix:
    """The moves from rows to columns; `hidden`: moves between nodes that are not shown."""

    rows: Sequence[MatrixRow]
    columns: Sequence[int]
    column_totals: Sequence[int]
    most: int
    total: int
    hidden: int


def node_names(cluster: Cluster) -> dict[int, str]:
    """Return the names of all nodes by index, in their order."""
    return dict(cluster.nodes.order_by("index").values_list("index", "name"))


def matrix_of(summary: PlanSummary, names: Mapping[int, str]) -> Matrix | None:
    """Return the matrix of the nodes with the most moves, None if nothing moves."""
    if not summary.flows:
        return None
    counts: dict[int, int] = {}
    for flow in summary.flows:
        for node in (flow.source, flow.target):
            counts[node] = counts.get(node, 0) + flow.moves
    everything = sorted(names.keys() | counts.keys())
    if len(everything) > MAX_MATRIX:
        busiest = sorted(counts, key=lambda node: -counts[node])[:MAX_MATRIX]
        everything = sorted(busiest)
    moves = {(flow.source, flow.target): flow.moves for flow in summary.flows}
    rows = [
        MatrixRow(
            source,
            names.get(source, f"node {source}"),
            [
                MatrixCell(moves.get((source, target), 0), f"from:{source} to:{target}",
                           source == target)
                for target in everything
            ],
            sum(moves.get((source, target), 0) for target in everything),
        )
        for source in everything
    ]  # fmt: skip
    shown = sum(row.total for row in rows)
    total = sum(moves.values())
    return Matrix(
        rows=rows,
        columns=everything,
        column_totals=[
            sum(moves.get((source, target), 0) for source in everything) for target in everything
        ],
        most=max(moves.values()),
        total=total,
        hidden=total - shown,
    )


def load_rows(
    before: Mapping[str, Any], after: Mapping[str, Any], cluster: Cluster, names: Mapping[int, str]
) -> LoadRows | None:
    """Return the loads of the nodes by index, None without a plan."""
    declared = dict(cluster.nodes.values_list("index", "capacity"))
    shares = [_shares(values, declared, sorted(names)) for values in (before, after)]
    if not shares[0]:
        return None
    rows = [
        NodeLoad(index, names.get(index, f"node {index}"), *pair)
        for index, pair in enumerate(zip(*shares, strict=False))
    ]
    top = max((max(row.before, row.after) for row in rows), default=0.0)
    if len(rows) <= MAX_LOADS:
        return LoadRows(rows, 0, top)
    ranked = sorted(rows, key=lambda row: -max(abs(row.after - row.before), row.after))[:MAX_LOADS]
    return LoadRows(sorted(ranked, key=lambda row: row.index), len(rows) - MAX_LOADS, top)


def _shares(
    values: Mapping[str, Any], declared: Mapping[int, float], indices: Sequence[int]
) -> list[float]:
    rates = values.get("rates") or []
    capacities = values.get("capacities") or [declared[index] for index in indices]
    return [
        rate / capacity if capacity else 0.0
        for rate, capacity in zip(rates, capacities, strict=False)
    ]
