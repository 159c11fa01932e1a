"""weir clusters list and show."""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any, Final

from controlplane.cli.backends import api_of
from controlplane.cli.backends.interface import cluster_path
from controlplane.cli.output import print_facts, print_json, print_rows
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
_FLEET: Final = (
    "name", "desired", "state", "nodes", "active_nodes", "streams", "running", "pending", "sample",
)  # fmt: skip


def list_clusters(given: Namespace) -> None:
    """Print the visible clusters."""
    rows = [_row(row) for row in api_of(given).get("/fleet")]
    if given.json:
        print_json(rows)
        return
    for row in rows:
        row["active"] = f"{row['active_nodes']}/{row['nodes']}"
        row[P95.name] = (row["sample"] or {}).get(P95.name)
    print_rows(given, rows, _COLUMNS, "no cluster: weir import FILE --apply makes one")


def show_cluster(given: Namespace) -> None:
    """Print a cluster and its nodes."""
    api, path = api_of(given), cluster_path(given)
    cluster = api.get(path)
    sample = api.get(f"{path}/sample") or {}
    facts = {
        "cluster": cluster["slug"],
        **{name: cluster[name] for name in ("name", "desired", "state")},
        "detail": cluster["state_detail"] or None,
        "routing": cluster["routing_version"],
        "applied": cluster["applied_version"],
        "imbalance": sample.get("imbalance"),
        "p95_ms": sample.get(P95.name),
    }
    nodes = api.get(f"{path}/nodes")
    if given.json:
        print_json(facts | {"nodes": nodes})
        return
    print_facts(facts)
    print_rows(given, nodes, _NODE_COLUMNS)


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    values = {name: row[name] for name in _FLEET}
    return {"cluster": row["slug"], **values, "proposals_waiting": row["waiting"]}
