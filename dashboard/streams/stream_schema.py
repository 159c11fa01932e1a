"""Pages that declare a stream and change its schema."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from django.http import HttpResponse
from django.shortcuts import redirect

from algorithms.admission.metadata import CHARACTERISTICS
from controlplane.access.roles import Actor, require_operator
from controlplane.catalog.computations import schema_of
from controlplane.catalog.streams import StreamListRow, stream_by_id
from controlplane.errors import Conflict, Fields, Forbidden, Invalid, WeirError
from controlplane.models import Cluster
from controlplane.records.bodies import Format
from controlplane.records.kept_samples import assign_sample, keep_sample
from controlplane.topology import streams
from controlplane.topology.schemas.inference import infer
from controlplane.topology.streams import StreamSpec, preview, set_schema
from dashboard.forms import number_or, optional, read_some
from dashboard.guards import PageRequest, cluster_page
from dashboard.responses import notify, refusal_text, render_page
from dashboard.streams.admission import submitted_characteristics
from dashboard.streams.schema_forms import (
    BLANK,
    columns_in,
    form_of,
    form_of_post,
    form_of_sample,
    sample_in,
    schema_in,
)
from dashboard.streams.source_forms import KIND, other_source_in, source_inputs
from dashboard.streams.topic_forms import (
    FORMATS,
    MECHANISMS,
    PROTOCOLS,
    fields_in,
    sample_context,
    sampled_context,
    source_in,
    topics_context,
)

_MORE: Final = 5


@cluster_page
def new(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render the form of a new stream, infer a schema from a sample, or declare the stream."""
    require_operator(request.actor, cluster)
    if request.method != "POST":
        return _new(request, cluster, {"form": form_of(None)})
    if step := _STEPS.get(request.POST.get("action", "")):
        return step(request, cluster)
    try:
        spec = _spec(request)
        (stream,) = streams.register(request.actor, cluster, [spec])
    except Forbidden:
        raise
    except Invalid as invalid:
        errors = _unprefixed(invalid.rows.get(0) or invalid.fields)
        context = {"form": form_of_post(request.POST, errors), "errors": errors}
        return _new(request, cluster, context, 422)
    except WeirError as refusal:
        context = {"form": form_of_post(request.POST), "refusal": refusal_text(refusal)}
        return _new(request, cluster, context, 409)
    assign_sample(request.actor, request.POST.get("kept_sample", ""), stream)
    notify(request, f"{stream.name} is declared with {len(stream.schema['columns'])} columns.")
    return redirect("stream", cluster.slug, stream.pk)


@cluster_page
def change(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Render the form of a stream's schema, or change the schema."""
    row = stream_by_id(cluster, pk)
    if request.method != "POST":
        return _change(request, cluster, row, {"form": form_of(schema_of(row.stream.schema))})
    require_operator(request.actor, cluster)
    try:
        new_schema = schema_in(request.POST)
        set_schema(request.actor, row.stream, new_schema, request.POST.get("reason", "")[:300])
    except Invalid as invalid:
        return _invalid(request, cluster, row, invalid)
    except Conflict as refusal:
        context = {"form": form_of_post(request.POST), "refused": True}
        if refusal.code == "schema_incompatible":
            context["changes"] = preview(row.stream, new_schema)
        else:
            context["refusal"] = str(refusal)
        return _change(request, cluster, row, context, 409)
    notify(request, f"The schema of {row.stream.name} is changed.")
    return redirect("stream", cluster.slug, pk)


@cluster_page
def preview_change(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Render the form with the effects of a change, or with more columns."""
    row = stream_by_id(cluster, pk)
    if request.method != "POST":
        return redirect("stream-schema", cluster.slug, pk)
    if request.POST.get("action") == "more":
        form = form_of_post(request.POST, blank=_MORE + BLANK)
        return _change(request, cluster, row, {"form": form})
    try:
        changes = preview(row.stream, schema_in(request.POST))
    except Invalid as invalid:
        return _invalid(request, cluster, row, invalid)
    context = {"form": form_of_post(request.POST), "changes": changes, "previewed": True}
    return _change(request, cluster, row, context)


def _invalid(
    request: PageRequest, cluster: Cluster, row: StreamListRow, invalid: Invalid
) -> HttpResponse:
    form = form_of_post(request.POST, invalid.fields)
    return _change(request, cluster, row, {"form": form, "errors": invalid.fields}, 422)


def _other_context(actor: Actor, cluster: Cluster, values: Any) -> dict[str, Any]:
    """Return the columns of another source than a topic. Raises as `sample`, and `Invalid`."""
    source = other_source_in(values)
    if not source:
        raise Invalid({KIND: ["Choose one of the kinds"]})
    return sampled_context(actor, cluster, source)


def _ask_source(
    request: PageRequest, cluster: Cluster, context_of: Callable[..., dict[str, Any]]
) -> HttpResponse:
    """Render the form with what the place of a source answered, or with its error."""
    try:
        context = context_of(request.actor, cluster, request.POST)
    except Forbidden:
        raise
    except Invalid as invalid:
        errors = _unprefixed(invalid.fields)
        context = {"form": form_of_post(request.POST, errors), "errors": errors}
        return _new(request, cluster, context, 422)
    except WeirError as refusal:
        context = {"form": form_of_post(request.POST), "refusal": refusal_text(refusal)}
        return _new(request, cluster, context, 409)
    return _new(request, cluster, context, stream_name=request.POST.get("topic", ""))


def _infer_schema(request: PageRequest, cluster: Cluster) -> HttpResponse:
    try:
        sample = sample_in(request.FILES.get("sample"), request.POST.get("format", ""))
        inferred = infer(sample.body, sample.kind)
    except Invalid as invalid:
        context = {"form": form_of_post(request.POST), "errors": invalid.fields}
        return _new(request, cluster, context, 422)
    kept = keep_sample(request.actor, sample.file, sample.body, sample.kind)
    context = {"form": form_of_sample(inferred), "sampled": inferred, "kept_sample": kept}
    return _new(request, cluster, context, stream_name=sample.stream_name)


# What the form of a new stream does besides the declaration, by its button.
_STEPS: Final[Mapping[str, Callable[[PageRequest, Cluster], HttpResponse]]] = {
    "sample": _infer_schema,
    "topics": partial(_ask_source, context_of=topics_context),
    "topic": partial(_ask_source, context_of=sample_context),
    "source": partial(_ask_source, context_of=_other_context),
    "more": lambda request, cluster: _new(
        request, cluster, {"form": form_of_post(request.POST, blank=_MORE + BLANK)}
    ),
}


def _spec(request: PageRequest) -> StreamSpec:
    values, rate = request.POST, optional(number_or("Must be a number of records/s"))
    given, faults = read_some(values, {"stream": str, "title": str, "declared_rate": rate})
    if not columns_in(values):
        faults["columns"] = ["Name at least one column"]
    if faults:
        raise Invalid(faults)
    schema = schema_in(values).to_json()
    declared = submitted_characteristics(values.dict()) or None
    return StreamSpec(
        given["stream"], given["title"], schema, given["declared_rate"], characteristics=declared,
        source=_source(values),
    )  # fmt: skip


def _source(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the source of a form, {} for none. Raises `Invalid`."""
    topic, other = source_in(values), other_source_in(values)
    if topic and other:
        raise Invalid({KIND: ["Choose a topic or another source, not both"]})
    return topic or other


def _unprefixed(fields: Fields) -> Fields:
    """Return faults by the names of the form's fields."""
    return {
        name.removeprefix("schema.").removeprefix("source."): messages
        for name, messages in fields.items()
    }


def _new(
    request: PageRequest,
    cluster: Cluster,
    context: dict[str, Any],
    status: int = 200,
    stream_name: str = "",
) -> HttpResponse:
    values = {
        name: request.POST.get(name, "") for name in ("stream", "title", "declared_rate", "format")
    }
    values["stream"] = values["stream"] or stream_name
    given = request.POST if request.method == "POST" else request.GET
    more = {
        "values": values,
        "formats": list(Format),
        "kept_sample": request.POST.get("kept_sample", ""),
        "source": fields_in(request.POST),
        "formats_of_topics": FORMATS,
        "source_kind": request.POST.get(KIND, ""),
        "source_inputs": source_inputs(request.POST, context.get("errors", {})),
        "protocols": PROTOCOLS,
        "mechanisms": MECHANISMS,
        "admitted": [(item, given.get(item.name, "")) for item in CHARACTERISTICS],
        "has_characteristics": any(given.get(item.name) for item in CHARACTERISTICS),
    }
    return render_page(request, "stream_new.html", more | context, status)


def _change(
    request: PageRequest,
    cluster: Cluster,
    row: StreamListRow,
    context: dict[str, Any],
    status: int = 200,
) -> HttpResponse:
    changes = context.get("changes", [])
    more = {
        "row": row,
        "reason": request.POST.get("reason", ""),
        "is_refused": any(change.refusal for change in changes),
    }
    return render_page(request, "stream_schema.html", more | context, status)
