"""The page of the sinks of a query: their states, refused results, and a form for a new one."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args, get_origin

from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from pydantic.fields import FieldInfo

from controlplane.catalog.queries import query_by_id, row_of
from controlplane.errors import Invalid, WeirError
from controlplane.models import Cluster, Sink
from controlplane.numbers import counted
from controlplane.sinks import service
from controlplane.sinks.catalog import KINDS
from controlplane.sinks.service import SinkSpec
from controlplane.sinks.status import SinkState, SinkStatus, statuses_of, summary_text
from dashboard import thresholds
from dashboard.frame.headline import Headline
from dashboard.guards import PageRequest, cluster_action, cluster_page
from dashboard.lists import require_known
from dashboard.responses import cluster_change, notify, notify_refusal, render_page

# Refused results that the page shows of a sink.
SHOWN: Final = 20
_PREFIX: Final = "settings."
# The settings that are pairs of names and values.
_PAIRS: Final = frozenset(
    name for kind in KINDS.values() for name, info in kind.settings.model_fields.items()
    if get_origin(info.annotation) is Mapping
)  # fmt: skip


@cluster_page
def index(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Show the sinks of a query; `kind`: that of the form for a new one."""
    require_known(request, ("kind",))
    if request.htmx and not request.htmx.boosted:
        return render_page(request, "_sinks.html", _context(cluster, pk))
    return _page(request, cluster, pk, {"kind": request.GET.get("kind", "")}, {})


@cluster_action
def add(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Add a sink; the form is shown again with what is wrong."""
    query, values = query_by_id(cluster, pk), request.POST.dict()
    try:
        sink = service.add(request.actor, query, _spec(request.POST))
    except Invalid as invalid:
        return _page(request, cluster, pk, values, invalid.fields, 422)
    except WeirError as refusal:
        notify_refusal(request, refusal)
        return _page(request, cluster, pk, values, {}, 409)
    notify(request, f"{sink.name} was added.")
    return redirect("query-sinks", cluster.slug, pk)


@cluster_change("query-sinks", "pk")
def pause(request: PageRequest, cluster: Cluster, pk: int, sink: str) -> str:
    """Pause a sink."""
    row = service.set_paused(request.actor, _sink(cluster, pk, sink), paused=True)
    return f"{row.name} is paused; results wait."


@cluster_change("query-sinks", "pk")
def resume(request: PageRequest, cluster: Cluster, pk: int, sink: str) -> str:
    """Resume a sink."""
    row = service.set_paused(request.actor, _sink(cluster, pk, sink), paused=False)
    return f"{row.name} continues."


@cluster_change("query-sinks", "pk")
def retry(request: PageRequest, cluster: Cluster, pk: int, sink: str) -> str:
    """Let a failing sink try again."""
    return f"{service.retry(request.actor, _sink(cluster, pk, sink)).name} tries again."


@cluster_change("query-sinks", "pk")
def replay(request: PageRequest, cluster: Cluster, pk: int, sink: str) -> str:
    """Write stored results again, from a start on."""
    start = request.POST.get("start", "")
    row = service.replay(request.actor, _sink(cluster, pk, sink), start or service.OLDEST)
    return f"{row.name} writes the stored results again."


@cluster_change("query-sinks", "pk")
def replay_refused(request: PageRequest, cluster: Cluster, pk: int, sink: str) -> str:
    """Write refused results again."""
    count = service.replay_refused(request.actor, _sink(cluster, pk, sink))
    return f"{counted(count, 'results')} will be written again."


@cluster_change("query-sinks", "pk")
def delete_refused(request: PageRequest, cluster: Cluster, pk: int, sink: str) -> str:
    """Delete refused results."""
    count = service.delete_refused(request.actor, _sink(cluster, pk, sink))
    return f"{counted(count, 'refused results')} were deleted."


@cluster_change("query-sinks", "pk")
def remove(request: PageRequest, cluster: Cluster, pk: int, sink: str) -> str:
    """Remove a sink."""
    service.remove(request.actor, _sink(cluster, pk, sink))
    return f"{sink} was removed; what it has written stays."


def _sink(cluster: Cluster, pk: int, name: str) -> Sink:
    return service.sink_of(query_by_id(cluster, pk), name)


def _page(
    request: PageRequest, cluster: Cluster, pk: int,
    values: Mapping[str, str], errors: Mapping[str, list[str]], status: int = 200,
) -> HttpResponse:  # fmt: skip
    kind = KINDS.get(values.get("kind", ""), next(iter(KINDS.values())))
    form = {
        "kind": kind, "kinds": [item for item in KINDS.values() if item.is_offered],
        "errors": errors, "values": values,
        "fields": [_field(name, info, values, errors)
                   for name, info in kind.settings.model_fields.items()],
    }  # fmt: skip
    return render_page(request, "query_sinks.html", _context(cluster, pk) | form, status)


def _context(cluster: Cluster, pk: int) -> dict[str, Any]:
    query = query_by_id(cluster, pk)
    statuses = statuses_of(service.sinks_of(query))
    refused = {status.sink.pk: list(service.refused_of(status.sink)[:SHOWN])
               for status in statuses if status.refused_kept}  # fmt: skip
    return {
        "query": query, "row": row_of(query), "headline": sinks_headline(statuses),
        "summary": summary_text(statuses),
        "sinks": [(status, refused.get(status.sink.pk, [])) for status in statuses],
    }  # fmt: skip


def sinks_headline(statuses: Sequence[SinkStatus]) -> Headline:
    """Return how many sinks fail, are behind or lose results, and why the first of them does."""
    failing = (SinkState.FAILING, SinkState.BEHIND)
    bad = [status for status in statuses if status.is_losing or status.state in failing]
    if not statuses:
        return Headline("No sink", "Results are read on the page, by SQL and through the API.")
    if not bad:
        return Headline(f"{counted(len(statuses), 'sinks')}: {summary_text(statuses)}", "",
                        thresholds.GOOD)  # fmt: skip
    first = bad[0]
    what = f"{len(bad)} of {counted(len(statuses), 'sinks')} " + (
        f"loses results: {first.sink.name}"
        if first.is_losing
        else f"{first.state}: {first.sink.name} is {first.lag_s:,.0f} s behind"
    )
    why = first.sink.error or "Results wait; the query and the other sinks are not slowed."
    if first.is_losing:
        why = f"{first.sink.lost:,} results left the retention of the query before it read them."
    return Headline(what, why, thresholds.BAD)


def _field(
    name: str, info: FieldInfo, values: Mapping[str, str], errors: Mapping[str, list[str]]
) -> dict[str, Any]:
    """Return a setting as a field of the form."""
    default = "" if info.is_required() or info.default_factory else str(info.default)
    is_choice = isinstance(default, str) and bool(get_args(info.annotation)) and all(
        isinstance(choice, str) for choice in get_args(info.annotation)
    )  # fmt: skip
    full = f"{_PREFIX}{name}"
    return {
        "name": full, "title": info.title, "hint": info.description or "",
        "value": values.get(full, default), "required": info.is_required(),
        "choices": get_args(info.annotation) if is_choice else (),
        "is_number": info.annotation is int, "faults": errors.get(full, []),
    }  # fmt: skip


def _spec(values: QueryDict) -> SinkSpec:
    """Return the sink of a form; an empty setting has its default."""
    settings: dict[str, Any] = {
        name.removeprefix(_PREFIX): value for name, value in values.items()
        if name.startswith(_PREFIX) and isinstance(value, str) and value.strip()
    }  # fmt: skip
    for name in _PAIRS & settings.keys():
        settings[name] = _pairs(name, settings[name])
    fields = {name: str(values[name]) for name in ("name", "kind", "mode", "corrections", "start")
              if values.get(name)}  # fmt: skip
    given: dict[str, Any] = {"name": "", "kind": "", "settings": settings, **fields}
    return SinkSpec(**given)


def _pairs(field: str, text: str) -> dict[str, str]:
    """Read pairs such as window_start=minute, n=orders. Raises `Invalid`."""
    pairs = [pair.strip().partition("=") for pair in text.split(",")]
    if not all(sign and name.strip() and value.strip() for name, sign, value in pairs):
        raise Invalid({f"{_PREFIX}{field}": ["Write name=value, name=value, …"]})
    return {name.strip(): value.strip() for name, _, value in pairs}
