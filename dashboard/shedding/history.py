"""The history of a ladder: when which rung dropped records, and what it cost each query."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.http import HttpResponse

from controlplane.models import Cluster, Query, SheddingInterval
from controlplane.shedding.history import intervals, totals
from controlplane.shedding.interval_costs import IntervalCost, interval_costs
from dashboard.guards import PageRequest, cluster_page
from dashboard.responses import render_page

# The time of the history on the page, and its rows.
HISTORY: Final = timedelta(days=7)
HISTORY_ROWS: Final = 20
# The edges and queries of a row that are named.
_EDGES: Final = 3
_QUERIES: Final = 20


@cluster_page
def history(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Return the table of the history."""
    return render_page(request, "_shedding_history.html", history_context(cluster))


def history_context(cluster: Cluster) -> dict[str, Any]:
    """Return the newest intervals with their costs, and the totals of all."""
    stop = datetime.now(UTC)
    rows = intervals(cluster, stop - HISTORY, stop)
    shown = rows[:HISTORY_ROWS]
    streams = dict(cluster.streams.values_list("id", "name"))
    readers = {query for row in shown for _, query, _ in row.by_edge[:_EDGES]}
    queries = dict(Query.objects.filter(pk__in=readers).values_list("id", "name"))
    costs = interval_costs(cluster, shown)
    return {
        "history": [_shown(cost, streams, queries) for cost in costs],
        "history_totals": totals(rows),
    }


def _shown(cost: IntervalCost, streams: dict[int, str], queries: dict[int, str]) -> dict[str, Any]:
    return {
        "cost": cost,
        "row": cost.row,
        "edges": _edges(cost.row, streams, queries),
        "queries": cost.queries[:_QUERIES],
        "more_queries": max(0, cost.lossy_queries - _QUERIES),
    }


def _edges(
    row: SheddingInterval, streams: dict[int, str], queries: dict[int, str]
) -> Sequence[dict[str, Any]]:
    """Return the edges that dropped the most, by name."""
    return [
        {
            "stream": streams.get(stream, f"stream {stream}"),
            "query": queries.get(query, ""),
            "records": records,
        }
        for stream, query, records in row.by_edge[:_EDGES]
    ]
