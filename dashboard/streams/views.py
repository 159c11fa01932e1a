"""Pages of streams: the list, and one stream with its readers and drop rules."""

from typing import Any

from django.http import HttpResponse

from controlplane.catalog.streams import StreamFilters, stream_by_id, streams_listing
from controlplane.lists.kinds import KINDS
from controlplane.models import Cluster
from controlplane.topology import drop_rules, streams
from dashboard.guards import PageRequest, cluster_page
from dashboard.lists.page import list_page, render_list_page
from dashboard.responses import cluster_change, render_page
from dashboard.streams.admission import split_nodes_context, what_if_form
from dashboard.streams.drop_rule_forms import drop_rules_context, drop_spec
from dashboard.streams.headline import list_headline
from dashboard.streams.losses import streams_with_drops

SUGGESTED = 12


@cluster_page
def index(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Show a page of streams."""
    shown = list_page(request, KINDS["streams"])
    context: dict[str, Any] = {"headline": list_headline(cluster)}
    context["dropping"] = streams_with_drops(cluster)
    if not request.htmx:
        context |= split_nodes_context(cluster) | what_if_form({}, {})
    return render_list_page(request, "streams.html", "_streams_table.html", shown, context)


@cluster_page
def suggest(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Return the streams whose name or title contains the text, the busiest first."""
    text = request.GET.get("find", "")
    filters = StreamFilters(text=text.strip()[:100], order="-rate", per_page=SUGGESTED)
    return render_page(
        request, "_stream_suggestions.html", {"page": streams_listing(cluster, filters).page}
    )


@cluster_page
def list_drop_rules(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Render the drop rules of a stream."""
    context = drop_rules_context(stream_by_id(cluster, pk).stream)
    return render_page(request, "_drops.html", context)


@cluster_change("stream", "pk")
def set_drop(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """Create or change a drop rule."""
    stream, values = stream_by_id(cluster, pk).stream, request.POST.dict()
    query, reason = str(values.get("query", "")), str(values.get("reason", ""))
    spec = drop_spec(stream, values)
    drop = drop_rules.set_drop(request.actor, stream, spec, query, reason)
    text = f"{drop_rules.share_text(spec.share)} of its {drop_rules.windows_text(drop.value)}"
    return f"{drop_rules.edge_text(drop)} drops {text}."


@cluster_change("stream", "pk")
def lift_drop(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """Delete a drop rule."""
    stream, values = stream_by_id(cluster, pk).stream, request.POST
    left = drop_rules.lift(request.actor, stream, values.get("query", ""), values.get("reason", ""))
    later = " after the windows that it already affects" if left else ""
    return f"Records are kept again{later}."


@cluster_change("streams")
def delete(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """Delete a stream whose name is typed."""
    stream, values = stream_by_id(cluster, pk).stream, request.POST
    confirm, reason = values.get("confirm", "").strip(), values.get("reason", "")[:300]
    streams.delete(request.actor, stream, confirm, reason)
    return f"Stream {stream.name} is deleted with its records."
