"""The page of a cluster, and its changes: nodes, limits, start and stop."""

from typing import Any

from django.http import HttpResponse

from controlplane.access.roles import OPERATOR, require
from controlplane.clusters import changes
from controlplane.clusters.listing import node_by_index
from controlplane.models import Cluster
from controlplane.topology import nodes
from controlplane.wire.network.destinations import masters
from dashboard.clusters import parts
from dashboard.clusters.scenarios import scenario_form
from dashboard.dialog_forms import cluster_dialog
from dashboard.forms import number, read, whole
from dashboard.guards import PageRequest, cluster_page
from dashboard.range_parameters import requested_range
from dashboard.responses import cluster_change, render_page


@cluster_page
def overview(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render a cluster; the browser loads its charts and its flow."""
    time_range = requested_range(request)
    context: dict[str, Any] = parts.summary_of(request, cluster, time_range)
    context |= parts.cards_of(cluster) | parts.strip_context(cluster, time_range)
    context |= parts.nodes_of(cluster, time_range, context["readings"])
    context |= scenario_form(cluster)
    context["masters"] = masters()
    return render_page(request, "cluster.html", context)


@cluster_page
def capacity_form(request: PageRequest, cluster: Cluster, index: int) -> HttpResponse:
    """Render the form that changes a node."""
    require(request.actor, OPERATOR, cluster)
    context = {"node": node_by_index(cluster, index)}
    return render_page(request, "_cluster_node_form.html", context)


@cluster_change("cluster")
def set_desired_state(request: PageRequest, cluster: Cluster, verb: str) -> str:
    """Start or stop the cluster."""
    change = changes.start if verb == "start" else changes.stop
    change(request.actor, cluster, request.POST.get("reason", ""))
    return f"Asked {cluster.name} to {verb}."


@cluster_change("cluster")
def set_capacity(request: PageRequest, cluster: Cluster, index: int) -> str:
    """Change the capacity of a node, and whether planners assign work to it."""
    node, values = node_by_index(cluster, index), request.POST
    # The service rejects nan.
    capacity = number(values.get("capacity", ""))
    nodes.configure(
        request.actor,
        node,
        values.get("reason", ""),
        capacity=capacity,
        emulated=bool(values.get("emulated")),
        active={"yes": True, "no": False}.get(values.get("active", "")),
    )
    state = "takes new work" if node.active else "takes no new work"
    return f"{node.name} has a capacity of {capacity:,.0f} deliveries/s and {state}."


@cluster_change("cluster")
def set_master(request: PageRequest, cluster: Cluster) -> str:
    """Set the Spark master of the cluster."""
    master, reason = request.POST.get("master", ""), request.POST.get("reason", "")
    changes.set_master(request.actor, cluster, master, reason)
    return f"{cluster.name} runs on {cluster.master}."


@cluster_dialog("cluster", form="_cluster_nodes_form.html", field="nodes")
def set_nodes(request: PageRequest, cluster: Cluster) -> str:
    """Change the number of nodes."""
    count = read(request.POST, nodes=whole)["nodes"]
    nodes.set_count(request.actor, cluster, count, request.POST.get("reason", ""))
    return f"{cluster.name} has {count} node{'' if count == 1 else 's'}."


@cluster_dialog("cluster", form="_cluster_limits_form.html", field="max_records")
def set_limits(request: PageRequest, cluster: Cluster) -> str:
    """Change the limits of micro-batches."""
    limits = read(request.POST, **dict.fromkeys(changes.LIMITS, whole))
    changes.set_batch_limits(request.actor, cluster, limits, request.POST.get("reason", ""))
    return (
        f"A micro-batch of {cluster.name} has at most {limits['max_records']:,} records "
        f"and {limits['max_batch_mb']:,} MiB."
    )
