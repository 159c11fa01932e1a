"""Pages of a stream's drop rules: table, change and deletion."""

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from controlplane.catalog.streams import stream_by_id
from controlplane.models import Cluster
from controlplane.topology import drop_rules
from dashboard.guards import PageRequest, cluster_page
from dashboard.responses import notify, notify_refusals, render_page
from dashboard.streams.drop_rule_forms import drop_rules_context, drop_spec


@cluster_page
def index(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Render the drop rules of a stream."""
    context = {"cluster": cluster} | drop_rules_context(stream_by_id(cluster, pk).stream)
    return render_page(request, "_drops.html", context)


@require_POST
@cluster_page
def set_drop(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponseRedirect:
    """Create or change a drop rule."""
    stream, values = stream_by_id(cluster, pk).stream, request.POST.dict()
    query, reason = str(values.get("query", "")), str(values.get("reason", ""))
    with notify_refusals(request):
        spec = drop_spec(stream, values)
        drop = drop_rules.set_drop(request.actor, stream, spec, query, reason)
        text = f"{drop_rules.share_text(spec.share)} of its {drop_rules.windows_text(drop.value)}"
        notify(request, f"{drop_rules.edge_text(drop)} drops {text}.")
    return _back(cluster, pk)


@require_POST
@cluster_page
def lift(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponseRedirect:
    """Delete a drop rule."""
    stream, values = stream_by_id(cluster, pk).stream, request.POST
    with notify_refusals(request):
        left = drop_rules.lift(
            request.actor, stream, values.get("query", ""), values.get("reason", "")
        )
        later = " after the windows that it already affects" if left else ""
        notify(request, f"Records are kept again{later}.")
    return _back(cluster, pk)


def _back(cluster: Cluster, pk: int) -> HttpResponseRedirect:
    return redirect(reverse("stream", args=[cluster.slug, pk]))
