"""Forms of a cluster's number of nodes and limits of micro-batches."""

from django.http import HttpResponse
from django.urls import reverse

from controlplane.access.roles import require_operator
from controlplane.clusters import partitions
from controlplane.models import Cluster
from controlplane.topology import nodes
from dashboard.dialog_forms import answer, whole_numbers
from dashboard.guards import PageRequest, cluster_action


@cluster_action
def set_nodes(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Change the number of nodes."""
    require_operator(request.actor, cluster)

    def change() -> str:
        count = whole_numbers(request.POST, "nodes")["nodes"]
        nodes.set_count(request.actor, cluster, count, request.POST.get("reason", ""))
        return f"{cluster.name} has {count} node{'' if count == 1 else 's'}."

    return answer(
        request,
        change,
        page=reverse("cluster", args=[cluster.slug]),
        form="_cluster_nodes_form.html",
        context={"cluster": cluster},
        field="nodes",
    )


@cluster_action
def set_limits(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Change the limits of micro-batches."""
    require_operator(request.actor, cluster)

    def change() -> str:
        limits = whole_numbers(request.POST, *partitions.LIMITS)
        reason = request.POST.get("reason", "")
        partitions.set_batch_limits(request.actor, cluster, limits, reason)
        return (
            f"A micro-batch of {cluster.name} has at most {limits['max_records']:,} records "
            f"and {limits['max_batch_mb']:,} MiB."
        )

    return answer(
        request,
        change,
        page=reverse("cluster", args=[cluster.slug]),
        form="_cluster_limits_form.html",
        context={"cluster": cluster},
        field="max_records",
    )
