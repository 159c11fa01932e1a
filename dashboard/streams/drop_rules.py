"""Drop rules of a stream: table, change and deletion."""

from django.http import HttpResponse

from controlplane.catalog.streams import stream_by_id
from controlplane.models import Cluster
from controlplane.topology import drop_rules
from dashboard.guards import PageRequest, cluster_page
from dashboard.responses import cluster_change, render_page
from dashboard.streams.drop_rule_forms import drop_rules_context, drop_spec


@cluster_page
def index(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
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
def lift(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """Delete a drop rule."""
    stream, values = stream_by_id(cluster, pk).stream, request.POST
    left = drop_rules.lift(request.actor, stream, values.get("query", ""), values.get("reason", ""))
    later = " after the windows that it already affects" if left else ""
    return f"Records are kept again{later}."
