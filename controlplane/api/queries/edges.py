"""Endpoints of drop rules, key groupings and aggregator nodes of running queries."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from ninja import Query, Router

from algorithms.partitioning.catalog import GROUPINGS
from controlplane.api.common.security import caller, cluster_of
from controlplane.api.queries.schemas import (
    AggregatorIn,
    AggregatorsIn,
    DropIn,
    DropOut,
    KeyGroupingIn,
    KeyGroupingOut,
    QueryOut,
    RetentionIn,
    SheddingIn,
    TasksIn,
)
from controlplane.catalog import query_settings
from controlplane.catalog.drop_rules import drop_rules_of
from controlplane.catalog.queries import query_by_id, query_by_name, row_of
from controlplane.catalog.streams import stream_by_key
from controlplane.topology import aggregators, drop_rules, key_groupings
from controlplane.topology.drop_rules import DropSpec

router = Router(tags=["edges"])
groupings = Router(tags=["edges"])
DROPS = "/{slug}/streams/{key}/drops"
QUERY = "/{slug}/queries/{name}"


@router.get(DROPS, response=list[DropOut])
def list_drop_rules(request: HttpRequest, slug: str, key: str) -> Any:
    """Return the drop rules of a stream: of its input, and of its edges to queries."""
    stream = stream_by_key(cluster_of(request), key)
    return [DropOut.of(drop) for drop in drop_rules_of(stream)]


@router.put(DROPS, response=DropOut)
def set_drop_rule(request: HttpRequest, slug: str, key: str, body: DropIn) -> Any:
    """Create or change a drop rule of a stream (by id or name)."""
    actor, stream = caller(request), stream_by_key(cluster_of(request), key)
    spec = DropSpec(body.share, body.window_s, body.slide_s, body.batch)
    return DropOut.of(drop_rules.set_drop(actor, stream, spec, body.query or "", body.reason))


@router.delete(DROPS, response=list[DropOut])
def remove_drop_rule(
    request: HttpRequest,
    slug: str,
    key: str,
    query: str | None = Query(None, min_length=1),  # type: ignore[type-arg]
    reason: str = "",
) -> Any:
    """Delete a drop rule, without a query that of the input; return the remaining ones.

    A drop of whole windows ends with one that is to come: it stays, with a last step of share 0,
    until its last window is over.
    """
    actor, stream = caller(request), stream_by_key(cluster_of(request), key)
    drop_rules.lift(actor, stream, query or "", reason[:2000])
    return [DropOut.of(drop) for drop in drop_rules_of(stream)]


@groupings.get("", response=list[KeyGroupingOut])
def list_key_groupings(request: HttpRequest) -> Any:
    """List the key groupings that a query can have, with their parameters."""
    return list(GROUPINGS.values())


@router.post(f"{QUERY}/key-grouping", response=QueryOut)
def set_key_grouping(request: HttpRequest, slug: str, name: str, body: KeyGroupingIn) -> Any:
    """Change the key grouping of a running query that has an aggregator node."""
    values = body.key_grouping, body.key_grouping_parameters, body.reason
    return _changed(request, slug, name, key_groupings.set_key_grouping, *values)


@router.post(f"{QUERY}/tasks", response=QueryOut)
def set_task_count(request: HttpRequest, slug: str, name: str, body: TasksIn) -> Any:
    """Change the number of tasks of a running query that has an aggregator node."""
    return _changed(request, slug, name, key_groupings.set_task_count, body.tasks, body.reason)


@router.post(f"{QUERY}/aggregator", response=QueryOut)
def set_aggregator(request: HttpRequest, slug: str, name: str, body: AggregatorIn) -> Any:
    """Move the aggregation of a running query to another node."""
    return _changed(request, slug, name, aggregators.set_aggregator, body.node, body.reason)


@router.post(f"{QUERY}/aggregators", response=QueryOut)
def set_aggregator_count(request: HttpRequest, slug: str, name: str, body: AggregatorsIn) -> Any:
    """Spread the aggregation of a running query over a number of nodes."""
    change = aggregators.set_aggregator_count
    return _changed(request, slug, name, change, body.count, body.reason)


@router.post(f"{QUERY}/retention", response=QueryOut, tags=["queries"])
def set_retention(request: HttpRequest, slug: str, name: str, body: RetentionIn) -> Any:
    """Change the retention of a query's windows."""
    values = body.retention_s, body.retention_windows, body.reason
    return _changed(request, slug, name, query_settings.set_retention, *values)


@router.post(f"{QUERY}/shedding", response=QueryOut, tags=["shedding"])
def set_shedding(request: HttpRequest, slug: str, name: str, body: SheddingIn) -> Any:
    """Change the weight and the floor of a query in load shedding."""
    values = body.shedding_weight, body.shedding_floor, body.reason
    return _changed(request, slug, name, query_settings.set_shedding, *values)


def _changed(
    request: HttpRequest, slug: str, name: str, change: Callable[..., object], *values: Any
) -> QueryOut:
    """Apply a change to the newest query of a name and return the query."""
    actor, cluster = caller(request), cluster_of(request)
    query = query_by_name(cluster, name)
    change(actor, query, *values)
    return QueryOut.of(row_of(query_by_id(cluster, query.pk)))
