"""Submission of a query: the form and its live checks."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect

from controlplane.access.roles import require_operator
from controlplane.catalog import language
from controlplane.catalog.computations import output_columns
from controlplane.catalog.query_checks import Checked
from controlplane.errors import Fields, Invalid
from controlplane.models import Cluster
from controlplane.topology import queries
from dashboard.guards import PageRequest, cluster_action, cluster_page
from dashboard.queries.drafts import completions
from dashboard.queries.forms import (
    DEFAULTS,
    checked,
    form_faults,
    labels,
    shown_fields,
    spec_of,
    summaries,
    usable,
)
from dashboard.queries.key_grouping_forms import grouping_choices
from dashboard.queries.retention_forms import UNITS
from dashboard.responses import notify, render_page


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
    notify(request, f"{query.name} is submitted and waits for a node.")
    return redirect("query", cluster.slug, query.pk)


@cluster_action
def check(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render the faults of one field, or of the whole query."""
    values, field = request.POST.dict(), request.POST.get("field", "")
    if field == "text":
        context = _outcome(checked(cluster, values), values) | {"live": True}
        return render_page(request, "_query_outcome.html", context)
    faults = checked(cluster, values, is_draft=False).fields.get(field, [])
    return render_page(
        request, "_field_errors.html", {"field": field, "faults": faults, "checked": True}
    )


def _form(
    request: PageRequest,
    cluster: Cluster,
    values: dict[str, Any],
    errors: Fields,
    status: int = 200,
) -> HttpResponse:
    filled = DEFAULTS | values
    result = checked(cluster, filled)
    if errors:
        result = replace(result, fields=errors, computation=None)
    context = {
        "values": filled,
        "errors": errors,
        "key_groupings": grouping_choices(filled.get("key_grouping", ""), filled),
        "units": list(UNITS),
        "operators": language.operators(),
        "functions": language.functions() + language.registered_functions(),
        "aggregates": language.aggregates() + language.registered_aggregates(),
        "completions": completions(),
    }
    outcome = _outcome(result, filled)
    groups = shown_fields(filled, outcome["faults_of"])
    folded = ("key_grouping", *(field["name"] for field in groups["numbers"][1:]))
    more_open = any(outcome["faults_of"].get(name) for name in folded)
    context |= outcome | {"groups": groups, "more_open": more_open}
    return render_page(request, "query_new.html", context, status)


def _outcome(checked: Checked, values: Mapping[str, str]) -> dict[str, Any]:
    """Return the faults by field, or the columns that the results will have."""
    faults = form_faults(checked.fields, values.get("key_grouping", ""))
    columns = [] if checked.computation is None else output_columns(checked.computation)
    wrong = labels(field for field, messages in faults.items() if messages)
    return {
        "faults_of": faults,
        "wrong": wrong,
        "output": columns,
        "usable": usable(checked, values.get("streams", "")),
        "usable_kinds": {name: str(kind) for name, kind in checked.usable.items()},
        "summaries": summaries(checked),
    }
