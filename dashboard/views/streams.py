"""Streams: the list and one of them with the queries that read it."""

from django.http import HttpResponse

from controlplane.models import Cluster
from controlplane.selectors.queries import QueryFilters, queries_page
from controlplane.selectors.streams import StreamFilters, stream_by_id, streams_page
from dashboard.drops import drops_context
from dashboard.guards import PageRequest, cluster_page
from dashboard.shown import show, show_list

PER_PAGE = 100
SUGGESTED = 12


@cluster_page
def index(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Show a page of streams."""
    filters = StreamFilters.of({"per_page": PER_PAGE} | request.GET.dict())
    context = {
        "cluster": cluster,
        "filters": filters,
        "page": streams_page(cluster, filters),
        "splits": range(cluster.splits),
    }
    return show_list(request, "streams.html", "_streams_table.html", context)


@cluster_page
def detail(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Show a stream and the live queries that read it."""
    row = stream_by_id(cluster, pk)
    filters = QueryFilters.of(
        {"state": "live", "per_page": PER_PAGE} | request.GET.dict() | {"stream": row.stream.name}
    )
    context = {"cluster": cluster, "row": row, "page": queries_page(cluster, filters)}
    return show(request, "stream.html", context | drops_context(row.stream))


@cluster_page
def suggest(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Return the streams whose name or title holds the text, busiest first."""
    text = request.GET.get("find", "")
    filters = StreamFilters(text=text.strip()[:100], order="-rate", per_page=SUGGESTED)
    return show(request, "_stream_suggestions.html", {"page": streams_page(cluster, filters)})
