"""The history of a ladder: when which rung dropped records, and what it cost each query."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.http import HttpResponse

from controlplane.models import Cluster, Query, SheddingInterval
from controlplane.planners.shedding.episodes import QUIET, episodes
from controlplane.planners.shedding.history import totals
from controlplane.planners.shedding.interval_costs import IntervalCost
from dashboard.guards import PageRequest, cluster_page
from dashboard.responses import render_page

# The time of the history on the page, and its rows.
HISTORY: Final = timedelta(days=7)
HISTORY_ROWS: Final = 20
# The edges and queries of an episode that are named.
_EDGES: Final = 3
_QUERIES: Final = 20
# The intervals of an episode that are listed.
_INTERVALS: Final = 50


@cluster_page
def history(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Return the table of the history."""
    return render_page(request, "_shedding_history.html", history_context(cluster))


def history_context(cluster: Cluster) -> dict[str, Any]:
    """Return the newest episodes with their costs, and the totals of all."""
    stop = datetime.now(UTC)
    rows = episodes(cluster, stop - HISTORY, stop, stop)
    shown = rows[:HISTORY_ROWS]
    streams = dict(cluster.streams.values_list("id", "name"))
    readers = {query for row in shown for _, query, _ in row.cost.row.by_edge[:_EDGES]}
    queries = dict(Query.objects.filter(pk__in=readers).values_list("id", "name"))
    return {
        "history": [
            _shown(episode.cost, streams, queries)
            | {
                "episode": episode,
                "intervals": episode.intervals[:_INTERVALS],
                "more_intervals": max(0, len(episode.intervals) - _INTERVALS),
            }
            for episode in shown
        ],
        "history_quiet": QUIET,
        "history_totals": totals([cost.row for row in rows for cost in row.intervals]),
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
