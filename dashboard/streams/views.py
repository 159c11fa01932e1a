"""Pages of streams: the list, and one stream with its readers and drop rules."""

from typing import Any

from django.http import HttpResponse

from controlplane.catalog.queries import QueryFilters, queries_listing
from controlplane.catalog.streams import (
    StreamFilters,
    StreamRow,
    stream_by_id,
    streams_listing,
)
from controlplane.models import Cluster
from controlplane.records.dead_letter_list import ABOUT
from controlplane.topology import drop_rules
from controlplane.wire.dead_letters import Reason
from controlplane.wire.schema import kind_text
from dashboard.guards import PageRequest, cluster_page
from dashboard.lists import list_filters
from dashboard.responses import cluster_change, render_list, render_page
from dashboard.streams.admission import (
    admission_context,
    split_nodes_context,
    what_if_form,
)
from dashboard.streams.drop_rule_forms import drop_rules_context, drop_spec

PER_PAGE = 100
SUGGESTED = 12


@cluster_page
def index(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Show a page of streams."""
    filters = list_filters(request, StreamFilters, {"per_page": PER_PAGE})
    context = {
        "filters": filters,
        "page": streams_listing(cluster, filters).page,
        "splits": range(cluster.splits),
    }
    if not request.htmx:
        context |= split_nodes_context(cluster) | what_if_form({}, {})
    return render_list(request, "streams.html", "_streams_table.html", context)


@cluster_page
def detail(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Show a stream and the live queries that read it."""
    row = stream_by_id(cluster, pk)
    defaults = {"state": "live", "per_page": PER_PAGE}
    filters = list_filters(request, QueryFilters, defaults, stream=row.stream.name)
    context = {"row": row, "page": queries_listing(cluster, filters).page}
    parts = _schema_context(row) | drop_rules_context(row.stream) | admission_context(row.stream)
    return render_page(request, "stream.html", context | parts)


def _schema_context(row: StreamRow) -> dict[str, Any]:
    """Return the context of a stream's schema, with the kinds of columns in queries."""
    schema = row.schema
    columns = [
        {"name": column.name, "type": column.type, "nullable": column.nullable,
         "kinds": kind_text(schema, column.name)}
        for column in (schema.columns if schema else ())
    ]  # fmt: skip
    dead = [(ABOUT[Reason(reason)], count) for reason, count in (row.dead or {}).items()]
    return {"schema": schema, "columns": columns, "dead": dead}


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
