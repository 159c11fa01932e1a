"""Nodes of a proposal: the matrix of moves, and the loads before and after."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from controlplane.models import Cluster
from controlplane.planning.plan_summary import PlanSummary

# Rows that a person can compare at a glance; the nodes with the most moves are shown.
MAX_MATRIX: Final = 16
MAX_LOADS: Final = 24


def node_names(cluster: Cluster) -> dict[int, str]:
    """Return the names of all nodes by index, in their order."""
    return dict(cluster.nodes.order_by("index").values_list("index", "name"))


def matrix_of(summary: PlanSummary, names: Mapping[int, str]) -> dict[str, Any] | None:
    """Return the matrix of the nodes with the most moves, None if nothing moves.

    `hidden`: moves between nodes that are not shown; `query` of a cell: the filter of its actions.
    """
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
        {
            "name": names.get(source, f"node {source}"),
            "cells": [_cell(moves, source, target) for target in everything],
            "total": sum(moves.get((source, target), 0) for target in everything),
        }
        for source in everything
    ]
    totals = [sum(moves.get((source, node), 0) for source in everything) for node in everything]
    return {
        "rows": rows,
        "columns": everything,
        "column_totals": totals,
        "most": max(moves.values()),
        "total": sum(moves.values()),
        "hidden": sum(moves.values()) - sum(totals),
    }


def _cell(moves: Mapping[tuple[int, int], int], source: int, target: int) -> dict[str, Any]:
    query = f"from:{source} to:{target}"
    return {
        "moves": moves.get((source, target), 0), "query": query, "is_self": source == target
    }  # fmt: skip


def load_rows(
    before: Mapping[str, Any], after: Mapping[str, Any], cluster: Cluster, names: Mapping[int, str]
) -> dict[str, Any] | None:
    """Return the loads of the nodes by index before and after a plan, None without one.

    `hidden`: how many change less and are not shown; `top`: the largest.
    """
    declared = dict(cluster.nodes.values_list("index", "capacity"))
    shares = [_shares(values, declared, sorted(names)) for values in (before, after)]
    if not shares[0]:
        return None
    rows: list[dict[str, Any]] = [
        {"name": names.get(index, f"node {index}"), "before": was, "after": becomes}
        for index, (was, becomes) in enumerate(zip(*shares, strict=False))
    ]
    ranked = sorted(rows, key=lambda row: -max(abs(row["after"] - row["before"]), row["after"]))
    shown = ranked[:MAX_LOADS]
    return {
        "rows": [row for row in rows if row in shown],
        "hidden": len(rows) - len(shown),
        "top": max((max(was, becomes) for was, becomes in zip(*shares, strict=False)), default=0.0),
    }


def _shares(
    values: Mapping[str, Any], declared: Mapping[int, float], indices: Sequence[int]
) -> list[float]:
    rates = values.get("rates") or []
    capacities = values.get("capacities") or [declared[index] for index in indices]
    return [
        rate / capacity if capacity else 0.0
        for rate, capacity in zip(rates, capacities, strict=False)
    ]
