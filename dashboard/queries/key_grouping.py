"""Forms of a query's key grouping, number of tasks and aggregator node."""

from typing import Any

from django.http import HttpResponseRedirect
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from controlplane.catalog.queries import query_by_id
from controlplane.errors import Invalid
from controlplane.models import Cluster
from controlplane.topology import aggregators, key_groupings
from controlplane.wire.routing.key_groupings import KEY_GROUPINGS
from dashboard.guards import PageRequest, cluster_page
from dashboard.responses import notify, notify_refusals


@cluster_page
def set_key_grouping(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponseRedirect:
    """Change the key grouping of a query."""
    query, values = query_by_id(cluster, pk), request.POST
    with notify_refusals(request):
        query = key_groupings.set_key_grouping(
            request.actor, query, values.get("key_grouping", ""), values.get("reason", "")
        )
        notify(
            request,
            f"Keys of {query.name} find their task {KEY_GROUPINGS[query.key_grouping].title}.",
        )
    return redirect("query", cluster.slug, pk)


@cluster_page
def set_task_count(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponseRedirect:
    """Change the number of tasks of a query."""
    query, values = query_by_id(cluster, pk), request.POST
    with notify_refusals(request):
        tasks = _count(values.get("tasks", ""))
        key_groupings.set_task_count(request.actor, query, tasks, values.get("reason", ""))
        notify(request, f"{query.name} has {tasks} tasks.")
    return redirect("query", cluster.slug, pk)


@cluster_page
def set_aggregator(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponseRedirect:
    """Move the aggregation to another node."""
    query, values = query_by_id(cluster, pk), request.POST
    with notify_refusals(request):
        index = _index(values.get("node", ""))
        query = aggregators.set_aggregator(request.actor, query, index, values.get("reason", ""))
        notify(request, f"{query.name} is merged on {query.aggregator}.")
    return redirect("query", cluster.slug, pk)


@cluster_page
def set_aggregator_count(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponseRedirect:
    """Change the number of aggregator nodes of a query."""
    query, values = query_by_id(cluster, pk), request.POST
    with notify_refusals(request):
        count = _count(values.get("count", ""))
        query = aggregators.set_aggregator_count(
            request.actor, query, count, values.get("reason", "")
        )
        notify(request, f"{query.name} has {count} aggregator nodes.")
    return redirect("query", cluster.slug, pk)


def _count(text: str) -> int:
    """Return a number of tasks or nodes."""
    if not text.strip().isdecimal() or len(text) > 6:  # noqa: PLR2004 - no query has a million
        raise Invalid({"tasks": [f"Must be a whole number, not {text[:40] or 'empty'}"]})
    return int(text)


def _index(text: str) -> int | None:
    """Return the node's index, None for the least loaded node."""
    if not text.strip():
        return None
    if not text.strip().isdecimal() or len(text) > 6:  # noqa: PLR2004 - no cluster has a million
        raise Invalid({"node": [f"There is no node {text[:40]}"]})
    return int(text)


post_key_grouping: Any = require_POST(set_key_grouping)
post_task_count: Any = require_POST(set_task_count)
post_aggregator_count: Any = require_POST(set_aggregator_count)
post_aggregator: Any = require_POST(set_aggregator)
