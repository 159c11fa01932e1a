"""The endpoint of the keys of a query: shares, loads, replays of key groupings, skew over time."""

from typing import Any, Final

from django.http import HttpRequest
from ninja import Query, Router

from controlplane.api.common.schemas import fields_of
from controlplane.api.common.security import cluster_of
from controlplane.catalog.queries import query_by_name
from controlplane.planners.partitioning.key_report import (
    HISTORY_S,
    SPAN_S,
    KeyReport,
    read_key_report,
)

router = Router(tags=["queries"])
_LONGEST_HISTORY_S: Final = 30 * 86_400


class KeyReportOut(fields_of(KeyReport)):  # type: ignore[misc]
    """The keys of a query; sampled_at is null if no sample was stored in the last span_s seconds.

    imbalance: the load of the most loaded task minus the mean, as a share of capacity. distinct is
    an estimate; memory: pairs of a key and a task. replay_error: the largest difference between
    predicted and measured loads under the present key grouping, as a share of capacity.
    """


@router.get("/{slug}/queries/{name}/keys", response=KeyReportOut)
def get_keys(
    request: HttpRequest,
    slug: str,
    name: str,
    span_s: int = Query(SPAN_S, ge=10, le=SPAN_S),  # type: ignore[type-arg]
    history_s: int = Query(HISTORY_S, ge=60, le=_LONGEST_HISTORY_S),  # type: ignore[type-arg]
) -> Any:
    """Return the keys of a query: shares, loads of tasks, and what other key groupings would give.

    Query parameters span_s (seconds of samples) and history_s (of the skew over time).
    """
    query = query_by_name(cluster_of(request), name)
    return read_key_report(query, span_s, history_s)
