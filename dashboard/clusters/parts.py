"""Parts of the page of a cluster that are refreshed automatically."""

from dataclasses import replace
from typing import Any, Final

from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone

from controlplane.alerts.measures import AlertMeasure
from controlplane.alerts.readings import ClusterReadings
from controlplane.alerts.statuses import cluster_statuses
from controlplane.catalog.queries import state_counts
from controlplane.cluster_spec.following import followed
from controlplane.clusters.flow import FlowUnit, flow_of
from controlplane.health.liveness.status import host_of
from controlplane.health.summary import health_of
from controlplane.models import Cluster, Proposal, Stream
from controlplane.policies.store import policy_of
from controlplane.proposals.executions.progress import running
from controlplane.proposals.listing import UNLISTED
from dashboard.clusters.charts import readings_in
from dashboard.clusters.first_steps import first_steps
from dashboard.clusters.headline import headline_of, range_headline
from dashboard.clusters.node_rows import node_bars, node_table
from dashboard.clusters.scenarios import open_rows
from dashboard.clusters.strip import strip_of
from dashboard.figures.flow import FlowBar, flow_drawing
from dashboard.frame.readings import span_text, tiles_of
from dashboard.guards import PageRequest, cluster_page
from dashboard.lists import require_known
from dashboard.navigation import statuses_of
from dashboard.policies.decisions import why
from dashboard.proposals.list_rows import list_row
from dashboard.range_parameters import requested_range
from dashboard.responses import render_page
from dashboard.time_range import TimeRange

_WAITING: Final = 3


@cluster_page
def summary(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render the chip, the headline and the tiles."""
    context = summary_of(request, cluster, requested_range(request))
    return render_page(request, "_cluster_summary.html", context)


@cluster_page
def cards(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render the running execution, waiting proposals, watch loops and incidents."""
    require_known(request, ())
    return render_page(request, "_cluster_cards.html", cards_of(cluster))


@cluster_page
def strip(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render the time strip."""
    return render_page(
        request, "_cluster_strip.html", strip_context(cluster, requested_range(request))
    )


@cluster_page
def nodes(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render the nodes with their means over the range: as bars or as a table."""
    time_range = requested_range(request)
    readings = readings_in(cluster, time_range)
    if request.htmx.target == "bars":
        bars = {"table": node_bars(cluster, readings), "tile_span": span_text(readings)}
        return render_page(request, "_cluster_bars.html", bars)
    return render_page(request, "_cluster_nodes.html", nodes_of(cluster, time_range, readings))


@cluster_page
def flow(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render the flow of records or bytes through the cluster."""
    unit = FlowUnit.BYTES if request.GET.get("unit") == FlowUnit.BYTES else FlowUnit.RECORDS
    readings = readings_in(cluster, requested_range(request, "unit"))
    measured = flow_of(cluster, readings.end - readings.period, readings.end, unit)
    drawing = flow_drawing(measured, readings[AlertMeasure.LOAD].limit)
    context = {
        "unit": unit.value,
        "units": [known.value for known in FlowUnit],
        "drawing": replace(drawing, bars=[_linked(cluster, bar) for bar in drawing.bars]),
        "has_aggregators": bool(measured.aggregators),
        "tile_span": span_text(readings),
    }
    return render_page(request, "_cluster_flow.html", context)


def _linked(cluster: Cluster, bar: FlowBar) -> FlowBar:
    """Return a bar of the flow with the URL of its page."""
    if bar.key is None or bar.kind == "split":
        return replace(bar, url=reverse("streams", args=[cluster.slug]))
    name = "stream" if bar.kind == "stream" else "node"
    return replace(bar, url=reverse(name, args=[cluster.slug, bar.key]))


def summary_of(request: PageRequest, cluster: Cluster, time_range: TimeRange) -> dict[str, Any]:
    """Return the context of the summary: of the present, or of a past range."""
    if time_range.live:
        # A part that is read again needs no other cluster; a page has the statuses of all.
        rows = (
            cluster_statuses({cluster.pk}, timezone.now()) if request.htmx else statuses_of(request)
        )
        row = next(row for row in rows if row.cluster.pk == cluster.pk)
        known, headline = row.readings, headline_of(row)
    else:
        known = readings_in(cluster, time_range)
        headline = range_headline(cluster, known)
    tiles = tiles_of(known)
    return {
        "span": time_range,
        "readings": known,
        "headline": headline,
        "past_range": "" if time_range.live else f"{time_range.text}:",
        "tiles": tiles if any(tile.value is not None for tile in tiles) else [],
        "tile_span": span_text(known),
        "window_text": "" if time_range.live else "mean of the range",
        "counts": state_counts(cluster),
        "streams": Stream.objects.filter(cluster=cluster).count(),
        "followed": followed(cluster),
        "host": host_of(cluster),
    }


def cards_of(cluster: Cluster) -> dict[str, Any]:
    """Return the context of the cards."""
    waiting = Proposal.awaiting_approval().filter(cluster=cluster)
    newest = waiting.defer(*UNLISTED).select_related("cluster").order_by("-requested_at", "-pk")
    policy = policy_of(cluster)
    return {
        "ready": [list_row(proposal, policy) for proposal in newest[:_WAITING]],
        "waiting": waiting.count(),
        "progress": running([cluster.pk]).get(cluster.pk),
        "why": why(cluster, policy, timezone.now()),
        "health": health_of(cluster, timezone.now()),
        "first_steps": first_steps(cluster),
        **open_rows(cluster),
    }


def strip_context(cluster: Cluster, time_range: TimeRange) -> dict[str, Any]:
    """Return the context of the time strip."""
    return {"span": time_range, "strip": strip_of(cluster, time_range, timezone.now())}


def nodes_of(cluster: Cluster, time_range: TimeRange, readings: ClusterReadings) -> dict[str, Any]:
    """Return the context of the nodes."""
    return {
        "span": time_range,
        "table": node_table(cluster, time_range, readings),
        "tile_span": span_text(readings),
        "load_limit": readings[AlertMeasure.LOAD],
    }
