"""Changes of a query's key grouping, number of tasks, aggregator nodes and retention."""

from typing import Final

from controlplane.access.roles import require_operator
from controlplane.catalog import query_settings
from controlplane.catalog.queries import query_by_id
from controlplane.errors import Invalid
from controlplane.models import Cluster
from controlplane.queries.key_groupings import label_of, route_text
from controlplane.topology import aggregators, key_groupings
from dashboard.dialog_forms import cluster_dialog
from dashboard.forms import optional, read, whole_or
from dashboard.guards import PageRequest
from dashboard.queries.forms import form_faults
from dashboard.queries.key_grouping_forms import grouping_context, parameters_of
from dashboard.queries.retention_forms import UNITS, retention_of
from dashboard.responses import cluster_change

_COUNT: Final = whole_or("Must be a whole number")
_NODE: Final = whole_or("There is no node of this number")


@cluster_dialog(
    "query", "pk", form="_key_grouping_form.html", field="key_grouping",
    context=lambda cluster, pk: {"query": query_by_id(cluster, pk)},
    refused=lambda shown: {
        **grouping_context(shown["query"], shown["values"]),
        "faults_of": form_faults(shown["errors"], shown["values"].get("key_grouping", "")),
    },
)  # fmt: skip
def set_key_grouping(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """Change the key grouping of a query and its parameters."""
    query, values = query_by_id(cluster, pk), request.POST.dict()
    name, reason = str(values.get("key_grouping", "")), str(values.get("reason", ""))
    parameters, faults = parameters_of(values)
    if faults:
        raise Invalid(faults)
    query = key_groupings.set_key_grouping(request.actor, query, name, parameters, reason)
    label = label_of(route_text(query.key_grouping, query.key_grouping_parameters))
    return f"The key grouping of {query.name} is {label}."


@cluster_change("query", "pk")
def set_task_count(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """Change the number of tasks of a query."""
    require_operator(request.actor, cluster)
    query, tasks = query_by_id(cluster, pk), read(request.POST, tasks=_COUNT)["tasks"]
    key_groupings.set_task_count(request.actor, query, tasks, request.POST.get("reason", ""))
    return f"{query.name} has {tasks} tasks."


@cluster_change("query", "pk")
def set_aggregator(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """Move the aggregation to another node, by default the least loaded one."""
    query, index = query_by_id(cluster, pk), read(request.POST, node=optional(_NODE))["node"]
    reason = request.POST.get("reason", "")
    query = aggregators.set_aggregator(request.actor, query, index, reason)
    return f"{query.name} is merged on {query.aggregator}."


@cluster_change("query", "pk")
def set_aggregator_count(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """Change the number of aggregator nodes of a query."""
    require_operator(request.actor, cluster)
    query, count = query_by_id(cluster, pk), read(request.POST, count=_COUNT)["count"]
    reason = request.POST.get("reason", "")
    query = aggregators.set_aggregator_count(request.actor, query, count, reason)
    return f"{query.name} has {count} aggregator nodes."


@cluster_dialog(
    "query", "pk", form="_retention_form.html", field="retention_s",
    context=lambda cluster, pk: {"query": query_by_id(cluster, pk), "units": list(UNITS)},
)  # fmt: skip
def set_retention(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """Change the retention of a query."""
    query, values = query_by_id(cluster, pk), request.POST.dict()
    present = query.retention_s, query.retention_windows
    seconds, windows, faults = retention_of(values, present)
    if faults:
        raise Invalid(faults)
    reason = str(values.get("reason", ""))
    query_settings.set_retention(request.actor, query, seconds, windows, reason)
    return f"The retention of {query.name} is changed."
