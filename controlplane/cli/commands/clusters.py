"""weir clusters."""

from argparse import Namespace
from typing import Any, Final

from controlplane.access.roles import VIEWER, require_member
from controlplane.cli.actors import actor_of, viewed
from controlplane.cli.output import (
    print_facts,
    print_json,
    print_rows,
    values_of,
)
from controlplane.clusters.listing import NodeRow, node_table
from controlplane.health.fleet import FleetRow, fleet
from controlplane.telemetry.time_series import latest_values
from controlplane.wire.figures import figure_of

P95: Final = figure_of("p95")
_COLUMNS: Final = {
    "cluster": ("cluster", "name"), "state": ("state", "text"), "nodes": ("active", "number"),
    "streams": ("streams", "number"), "queries": ("running", "number"),
    "proposals": ("proposals_waiting", "number"), f"{P95.label} {P95.unit}": (P95.name, "number"),
}  # fmt: skip
_NODE_COLUMNS: Final = {
    "node": ("index", "number"), "name": ("name", "name"), "capacity": ("capacity", "number"),
    "load": ("load", "number"), "queries": ("queries", "number"), "streams": ("streams", "number"),
    "active": ("active", "text"),
}  # fmt: skip


def list_clusters(given: Namespace) -> None:
    """Print the visible clusters."""
    actor = actor_of(given)
    require_member(actor)
    rows = [_row(row) for row in fleet() if actor.may(VIEWER, row.cluster.pk)]
    if given.json:
        print_json(rows)
        return
    for row in rows:
        row["active"] = f"{row['active_nodes']}/{row['nodes']}"
        row[P95.name] = (row["sample"] or {}).get(P95.name)
    print_rows(given, rows, _COLUMNS, "no cluster: weir import FILE --apply makes one")


def show_cluster(given: Namespace) -> None:
    """Print a cluster and its nodes."""
    _, cluster = viewed(given)
    sample = latest_values(cluster) or {}
    facts = {
        "cluster": cluster.slug,
        **values_of(cluster, "name desired state"),
        "detail": cluster.state_detail or None,
        **values_of(cluster, "", routing="routing_version", applied="applied_version"),
        "imbalance": sample.get("imbalance"),
        "p95_ms": sample.get(P95.name),
    }
    rows = [_node(row) for row in node_table(cluster)]
    if given.json:
        print_json(facts | {"nodes": rows})
        return
    print_facts(facts)
    print_rows(given, rows, _NODE_COLUMNS)


def _row(row: FleetRow) -> dict[str, Any]:
    return {
        **values_of(row.cluster, "name desired state", cluster="slug"),
        **values_of(row, "nodes active_nodes streams running pending sample"),
        "proposals_waiting": row.waiting,
    }


def _node(row: NodeRow) -> dict[str, Any]:
    return {
        **values_of(row.node, "index name capacity active emulated"),
        **values_of(row, "load queries streams busy"),
    }
