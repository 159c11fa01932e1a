"""Submitting a query: the form, and its checks while it is filled in."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from controlplane.errors import Fields, Invalid
from controlplane.models import Cluster
from controlplane.selectors import language
from controlplane.services.access import require_operator
from controlplane.services.texts import output_columns
from controlplane.topology import queries
from controlplane.topology.queries import Checked
from controlplane.wire.routing.key_groupings import KEY_GROUPINGS
from dashboard.guards import PageRequest, cluster_page
from dashboard.query_forms import (
    DEFAULTS,
    checked,
    labels,
    shown_faults,
    spec_of,
    summaries,
    usable,
)
from dashboard.retention_forms import UNITS
from dashboard.shown import show, tell


@cluster_page
def new(request: PageRequest, cluster: Cluster) -> HttpResponse | HttpResponseRedirect:
    """Show the form, or submit what it holds."""
    require_operator(request.actor)
    if request.method != "POST":
        return _form(request, cluster, DEFAULTS | request.GET.dict(), {})
    values = request.POST.dict()
    try:
        query = queries.submit(request.actor, cluster, spec_of(cluster, values))
    except Invalid as invalid:
        return _form(request, cluster, values, invalid.fields, status=422)
    tell(request, f"{query.name} is submitted and waits for a node.")
    return redirect("query", cluster.slug, query.pk)


@cluster_page
def check(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Return what is wrong with one field of the form, or with all that the query computes."""
    values, field = request.POST.dict(), request.POST.get("field", "")
    if field == "text":
        context = _outcome(checked(cluster, values), values) | {"live": True}
        return show(request, "_query_outcome.html", context)
    faults = _faults(cluster, values).get(field, [])
    return show(request, "_field_errors.html", {"field": field, "faults": faults, "checked": True})


def _form(
    request: PageRequest,
    cluster: Cluster,
    values: dict[str, Any],
    errors: Fields,
    status: int = 200,
) -> HttpResponse:
    filled = DEFAULTS | values
    found = checked(cluster, filled)
    if errors:
        found = replace(found, fields=errors, computation=None)
    context = {
        "cluster": cluster,
        "values": filled,
        "errors": errors,
        "schemes": KEY_GROUPINGS.values(),
        "units": list(UNITS),
        "operators": language.operators(),
        "functions": language.functions() + language.registered_functions(),
        "aggregates": language.aggregates() + language.registered_aggregates(),
    }
    return show(request, "query_new.html", context | _outcome(found, filled), status)


def _outcome(found: Checked, values: Mapping[str, str]) -> dict[str, Any]:
    """Return the faults by field, or the columns that the results will have."""
    faults = shown_faults(found.fields)
    columns = [] if found.computation is None else output_columns(found.computation)
    wrong = labels(field for field, told in faults.items() if told)
    return {
        "faults_of": faults,
        "wrong": wrong,
        "output": columns,
        "usable": usable(found, values.get("streams", "")),
        "summaries": summaries(found),
    }


def _faults(cluster: Cluster, values: dict[str, str]) -> Fields:
    try:
        queries.check(cluster, [spec_of(cluster, values)])
    except Invalid as invalid:
        return invalid.rows.get(0) or invalid.fields
    return {}


post_check: Any = require_POST(check)
