"""The page of a cluster: measures, live charts, nodes, limits, start and stop."""

from typing import Any

from django.conf import settings
from django.http import HttpResponse, JsonResponse
from django.utils import timezone

from controlplane.catalog.queries import state_counts
from controlplane.catalog.routing_versions import routing_between
from controlplane.clusters import changes
from controlplane.clusters.listing import node_by_index, node_table
from controlplane.executions.progress import running
from controlplane.health.summary import health_of, is_idle
from controlplane.models import Cluster
from controlplane.proposals.listing import ProposalFilters, proposals_listing
from controlplane.telemetry.time_series import fitting_resolution, latest_values, samples
from controlplane.topology import nodes
from dashboard import thresholds
from dashboard.clusters.status import cluster_status
from dashboard.dialog_forms import cluster_dialog, whole_numbers
from dashboard.figures.cluster import NodeSeries, cluster_figures
from dashboard.figures.parts import VersionMark
from dashboard.figures.thinning import thin_samples, with_gaps
from dashboard.forms import number
from dashboard.guards import PageRequest, cluster_page
from dashboard.policies.decisions import why
from dashboard.responses import cluster_change, render_page
from dashboard.time_range import RANGES, TimeRange, time_range_of

SHOWN_VERSIONS = 8


@cluster_page
def overview(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render a cluster; the browser loads its charts from `charts`."""
    time_range = time_range_of(request.GET, timezone.now())
    numbers = _numbers(cluster)
    context = {"ranges": list(RANGES)} | numbers | _status(cluster, numbers["sample"])
    context |= _causes(cluster) | _nodes(cluster, time_range)
    context["masters"] = settings.SPARK_MASTERS
    return render_page(request, "cluster.html", context)


@cluster_page
def status(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render the status of the cluster."""
    return render_page(request, "_status.html", _status(cluster, latest_values(cluster) or {}))


@cluster_page
def aside(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render the causes of the status: health, execution, proposals and watch loops."""
    return render_page(request, "_cluster_aside.html", _causes(cluster))


@cluster_page
def node_list(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Return the nodes with their loads, and the routing versions of the time range."""
    time_range = time_range_of(request.GET, timezone.now())
    return render_page(request, "_cluster_nodes.html", _nodes(cluster, time_range))


@cluster_page
def numbers(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Return the headline numbers."""
    return render_page(request, "_cluster_numbers.html", _numbers(cluster))


@cluster_page
def charts(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Return figures and the samples for live updates, as JSON."""
    time_range = time_range_of(request.GET, timezone.now())
    points = thin_samples(samples(cluster, time_range.start, time_range.end))
    shown_nodes = [NodeSeries(n.index, n.name, n.capacity) for n in cluster.nodes.order_by("index")]
    marks = version_marks(cluster, time_range)
    start, end = time_range.milliseconds
    return JsonResponse(
        {
            "figures": cluster_figures(with_gaps(points), shown_nodes, marks),
            "samples": points,
            "resolution": _resolution(time_range, len(points)),
            "start": start,
            "end": end,
            "live": time_range.live,
        }
    )


def version_marks(cluster: Cluster, time_range: TimeRange) -> list[VersionMark]:
    """Return the routing versions that took effect in a time range, oldest first."""
    return [
        VersionMark(
            int(row.applied_at.timestamp() * 1000), row.version, row.reason, row.proposal_id
        )
        for row in reversed(routing_between(cluster, time_range.start, time_range.end))
        if row.applied_at
    ]


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
    return f"{node.name} has a capacity of {capacity:,.0f} records/s and {state}."


@cluster_change("cluster")
def set_master(request: PageRequest, cluster: Cluster) -> str:
    """Set the Spark master of the cluster."""
    master, reason = request.POST.get("master", ""), request.POST.get("reason", "")
    changes.set_master(request.actor, cluster, master, reason)
    return f"{cluster.name} runs on {cluster.master}."


@cluster_dialog("cluster", form="_cluster_nodes_form.html", field="nodes")
def set_nodes(request: PageRequest, cluster: Cluster) -> str:
    """Change the number of nodes."""
    count = whole_numbers(request.POST, "nodes")["nodes"]
    nodes.set_count(request.actor, cluster, count, request.POST.get("reason", ""))
    return f"{cluster.name} has {count} node{'' if count == 1 else 's'}."


@cluster_dialog("cluster", form="_cluster_limits_form.html", field="max_records")
def set_limits(request: PageRequest, cluster: Cluster) -> str:
    """Change the limits of micro-batches."""
    limits = whole_numbers(request.POST, *changes.LIMITS)
    changes.set_batch_limits(request.actor, cluster, limits, request.POST.get("reason", ""))
    return (
        f"A micro-batch of {cluster.name} has at most {limits['max_records']:,} records "
        f"and {limits['max_batch_mb']:,} MiB."
    )


def _numbers(cluster: Cluster) -> dict[str, Any]:
    sample = latest_values(cluster) or {}
    seen = cluster.last_sample_at
    age = (timezone.now() - seen).total_seconds() if seen else None
    fresh = thresholds.AGE_S.grade(age)
    idle = fresh in (thresholds.WARN, thresholds.BAD) and is_idle(cluster, timezone.now())
    return {
        "sample": sample,
        "counts": state_counts(cluster),
        "limits": {
            "imbalance": thresholds.IMBALANCE,
            "latency": thresholds.latency(cluster.trigger_ms),
        },
        "age_limits": None if idle else thresholds.AGE_S,
        "grades": {
            "imbalance": thresholds.IMBALANCE.grade(sample.get("imbalance")),
            "latency": thresholds.latency(cluster.trigger_ms).grade(sample.get("p95")),
            "age": thresholds.GOOD if idle else fresh,
        },
    }


def _status(cluster: Cluster, sample: dict[str, Any]) -> dict[str, Any]:
    return {"status": cluster_status(cluster, sample, timezone.now())}


def _causes(cluster: Cluster) -> dict[str, Any]:
    return {
        "ready": proposals_listing(cluster, ProposalFilters(state="ready", per_page=5)).page,
        "progress": running([cluster.pk]).get(cluster.pk),
        "why": why(cluster),
        "health": health_of(cluster, timezone.now()),
    }


def _nodes(cluster: Cluster, time_range: TimeRange) -> dict[str, Any]:
    return {
        "span": time_range,
        "nodes": [
            {"row": row, "grade": thresholds.LOAD.grade(row.share)} for row in node_table(cluster)
        ],
        "versions": routing_between(cluster, time_range.start, time_range.end, SHOWN_VERSIONS),
    }


def _resolution(time_range: TimeRange, seconds: int) -> int:
    """Return the seconds per displayed sample."""
    stored = fitting_resolution(time_range.start, time_range.end)
    width = (time_range.end - time_range.start).total_seconds()
    return max(stored, int(width / seconds)) if stored > 1 and seconds else stored
