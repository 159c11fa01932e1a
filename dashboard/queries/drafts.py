"""Preview and explanation beside the form of a query, and the words that its fields complete."""

from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpResponse

from controlplane.access.roles import require_operator
from controlplane.catalog import language
from controlplane.errors import Invalid, WeirError
from controlplane.explain.drafts import explanation
from controlplane.explain.drafts import preview as previews
from controlplane.explain.drafts.values import Preview
from controlplane.models import Cluster
from controlplane.numbers import result
from dashboard.guards import PageRequest, cluster_action
from dashboard.queries.forms import form_faults, labels, spec_of
from dashboard.queries.results import key_text
from dashboard.responses import refusal_text, render_page

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
