"""Submission of a query: the form, its live checks, preview and explanation beside it.

The fields complete words of the language.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect

from controlplane.access.roles import require_operator
from controlplane.catalog import language
from controlplane.catalog.computations import output_columns
from controlplane.catalog.query_checks import Checked
from controlplane.errors import Fields, Invalid, WeirError
from controlplane.explain.drafts import explanation
from controlplane.explain.drafts import preview as previews
from controlplane.explain.drafts.values import Preview
from controlplane.models import Cluster
from controlplane.numbers import result
from controlplane.topology import queries
from dashboard.guards import PageRequest, cluster_action, cluster_page
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
from dashboard.queries.results import key_text
from dashboard.queries.retention_forms import UNITS
from dashboard.responses import notify, refusal_text, render_page


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


# Words of the language that no table of functions has.
_KEYWORDS: Final = ("and", "or", "not", "is", "null", "in", "like", "case", "when", "then", "else",
                    "end", "cast", "as", "true", "false", "between")  # fmt: skip


@cluster_action
def preview(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render the preview of the form's query, or why there is none."""
    require_operator(request.actor, cluster)
    values = request.POST.dict()
    try:
        newest = previews.preview(request.actor, cluster, spec_of(cluster, values))
    except WeirError as refusal:
        return _refused(request, "_query_preview.html", refusal)
    return render_page(request, "_query_preview.html", {"preview": newest, "table": _table(newest)})


@cluster_action
def cancel_preview(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Cancel the preview that the user waits for."""
    previews.cancel(request.actor, cluster)
    return HttpResponse(status=204)


@cluster_action
def explain(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render what the form's query would read, share and keep, and its node."""
    values = request.POST.dict()
    try:
        draft = explanation.explain(cluster, spec_of(cluster, values))
    except WeirError as refusal:
        return _refused(request, "_query_explanation.html", refusal)
    return render_page(request, "_query_explanation.html", {"draft": draft})


def completions() -> dict[str, list[dict[str, str]]]:
    """Return functions, aggregates and keywords for the fields of the form."""
    functions = language.functions() + language.registered_functions()
    aggregates = language.aggregates() + language.registered_aggregates()
    return {
        "function": [_word(entry) for entry in functions],
        "aggregate": [_word(entry) for entry in aggregates],
        "keyword": [{"name": word, "about": "keyword"} for word in _KEYWORDS],
    }


def _word(entry: language.LanguageEntry) -> dict[str, str]:
    name = entry.written.partition("(")[0]
    return {"name": name, "written": entry.written, "about": f"{entry.gives}: {entry.about}"}


def _refused(request: PageRequest, template: str, refusal: WeirError) -> HttpResponse:
    """Render a refusal: the fields with faults, whose faults stand beside them, or its text."""
    if isinstance(refusal, Invalid):
        fields = refusal.rows.get(0) or refusal.fields
        shown = [field for field, faults in form_faults(fields).items() if faults]
        wrong = labels(shown) or [_label(name) for name in fields]
        return render_page(request, template, {"wrong": wrong})
    return render_page(request, template, {"refusal": refusal_text(refusal)})


def _label(field: str) -> str:
    return field.rpartition(".")[2].replace("_", " ")


def _table(preview: Preview) -> Mapping[str, Any]:
    """Return the columns of the windows and their formatted rows."""
    first = preview.windows[0] if preview.windows else None
    keys = list(first.key) if first else []
    names = list(first.values) if first else []
    rows = [
        {
            "start": window.start,
            "keys": [key_text(window.key[name]) for name in keys],
            "values": [window.errors.get(name) or result(window.values[name]) for name in names],
        }
        for window in preview.windows
    ]
    return {"keys": keys, "values": names, "rows": rows}
