"""weir clusters."""

from argparse import Namespace
from typing import Any

from controlplane.access.roles import VIEWER, require_member
from controlplane.cli.actors import actor_of, viewed
from controlplane.cli.output import print_facts, print_json, print_sentence, print_table
from controlplane.clusters import lifecycle, partitions
from controlplane.clusters.listing import NodeRow, node_table
from controlplane.errors import Invalid
from controlplane.health.fleet import FleetRow, fleet
from controlplane.telemetry.time_series import latest_values
from controlplane.topology import nodes
from controlplane.wire.figures import figure_of

P95 = figure_of("p95")


def listed(given: Namespace) -> None:
    """Print the visible clusters."""
    actor = actor_of(given)
    require_member(actor)
    rows = [row for row in fleet() if actor.may(VIEWER, row.cluster.pk)]
    if given.json:
        print_json([_row(row) for row in rows])
        return
    numbers = ("nodes", "streams", "queries", "proposals", f"{P95.label} {P95.unit}")
    columns = {"cluster": "name", "state": "text"} | dict.fromkeys(numbers, "number")
    table = [
        [r.cluster.slug, r.cluster.state, f"{r.active_nodes}/{r.nodes}", r.streams, r.running,
         r.waiting, (r.sample or {}).get(P95.name)]
        for r in rows
    ]  # fmt: skip
    print_table(columns, table, "no cluster: weir import FILE --apply makes one")


def shown(given: Namespace) -> None:
    """Print a cluster and its nodes."""
    _, cluster = viewed(given)
    nodes = node_table(cluster)
    sample = latest_values(cluster) or {}
    facts: dict[str, Any] = {
        "cluster": cluster.slug,
        "name": cluster.name,
        "desired": cluster.desired,
        "state": cluster.state,
        "detail": cluster.state_detail or None,
        "routing": cluster.routing_version,
        "applied": cluster.applied_version,
        "imbalance": sample.get("imbalance"),
        "p95_ms": sample.get(P95.name),
    }
    if given.json:
        print_json(facts | {"nodes": [_node(row) for row in nodes]})
        return
    print_facts(facts)
    columns = {"node": "number", "name": "name", "capacity": "number", "load": "number",
               "queries": "number", "streams": "number", "active": "text"}  # fmt: skip
    print_table(columns, [list(_node(row).values())[:7] for row in nodes])


def start(given: Namespace) -> None:
    """Start a cluster's application."""
    actor, cluster = viewed(given)
    lifecycle.start(actor, cluster, given.reason)
    _request(given, cluster)


def stop(given: Namespace) -> None:
    """Stop a cluster's application."""
    actor, cluster = viewed(given)
    lifecycle.stop(actor, cluster, given.reason)
    _request(given, cluster)


def set_nodes(given: Namespace) -> None:
    """Change the number of nodes, while the cluster runs."""
    actor, cluster = viewed(given)
    count = nodes.set_count(actor, cluster, given.nodes, given.reason)
    if given.json:
        print_json({"cluster": cluster.slug, "before": count.before, "nodes": count.after})
    else:
        print_sentence(f"{cluster.slug} has {count.after} nodes; it had {count.before}")


def limit(given: Namespace) -> None:
    """Set the limits of a cluster's micro-batches."""
    actor, cluster = viewed(given)
    values = {name: getattr(given, name) for name in partitions.LIMITS}
    wanted = {name: value for name, value in values.items() if value is not None}
    if not wanted:
        raise Invalid({"limit": ["Give --max-records or --max-batch-mb, or both"]})
    cluster = partitions.set_batch_limits(actor, cluster, wanted, given.reason)
    limits = {name: getattr(cluster, name) for name in partitions.LIMITS}
    if given.json:
        print_json({"cluster": cluster.slug, **limits})
    else:
        print_facts({"cluster": cluster.slug, **limits})


def _request(given: Namespace, cluster: Any) -> None:
    if given.json:
        print_json({"cluster": cluster.slug, "desired": cluster.desired, "state": cluster.state})
    else:
        print_sentence(f"{cluster.slug} is to be {cluster.desired}; it is {cluster.state}")


def _row(row: FleetRow) -> dict[str, Any]:
    return {
        "cluster": row.cluster.slug,
        "name": row.cluster.name,
        "desired": row.cluster.desired,
        "state": row.cluster.state,
        "nodes": row.nodes,
        "active_nodes": row.active_nodes,
        "streams": row.streams,
        "running": row.running,
        "pending": row.pending,
        "proposals_waiting": row.waiting,
        "sample": row.sample,
    }


def _node(row: NodeRow) -> dict[str, Any]:
    return {
        "index": row.node.index,
        "name": row.node.name,
        "capacity": row.node.capacity,
        "load": row.load,
        "queries": row.queries,
        "streams": row.streams,
        "active": row.node.active,
        "emulated": row.node.emulated,
        "busy": row.busy,
    }
