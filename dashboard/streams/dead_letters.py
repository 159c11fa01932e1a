"""Pages of dead letters: list, export, replay and deletion."""

from collections.abc import Collection
from typing import Final

from django.http import HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from redis.exceptions import RedisError

from controlplane.access.roles import require_operator
from controlplane.connections import redis_client
from controlplane.errors import Invalid
from controlplane.models import Cluster
from controlplane.pagination.cursors import PageRange, Slice
from controlplane.records import dead_letters
from controlplane.records.dead_letter_list import (
    ABOUT,
    DeadLetterFilters,
    DeadLetterListing,
    exported,
)
from controlplane.records.dead_letters import DeadLetterSelection, Replayed
from controlplane.wire.dead_letters import read_counts
from dashboard.guards import PageRequest, cluster_action, cluster_page
from dashboard.lists import require_known
from dashboard.responses import notify, notify_refusals, render_list
from dashboard.streams.headline import dead_letters_headline

# A longer list is not read: the list of streams has a filter.
_SELECTABLE: Final = 200
FILTERS: Final = ("stream", "reason", "cursor", "limit")


@cluster_page
def index(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Show a page of dead letters, the newest first."""
    require_known(request, FILTERS)
    away = False
    try:
        filters = DeadLetterFilters.of(cluster, request.GET.dict())
        page = DeadLetterListing(cluster, filters).after(PageRange.of(request.GET))
        counts = read_counts(redis_client(), cluster.slug)
    except RedisError:
        filters, page, counts, away = DeadLetterFilters(), Slice([], ""), {}, True
    chosen = [filters.stream.pk] if filters.stream else []
    context = {
        "page": page, "filters": filters, "away": away, "reasons": ABOUT.items(),
        "headline": dead_letters_headline(counts, is_kept=bool(page.rows)),
        "streams": _stream_names(cluster, {*counts, *chosen}),
    }  # fmt: skip
    return render_list(request, "dead_letters.html", "_dead_letters_table.html", context)


def _stream_names(cluster: Cluster, pks: Collection[int]) -> list[str]:
    """Return the names of streams in their order: those with dead letters can be selected."""
    streams = cluster.streams.filter(pk__in=pks).order_by("name")
    return list(streams.values_list("name", flat=True)[:_SELECTABLE])


@cluster_page
def export(request: PageRequest, cluster: Cluster) -> HttpResponseBase:
    """Return dead letters as a file."""
    require_known(request, {*FILTERS, "format"})
    filters = DeadLetterFilters.of(cluster, request.GET)
    form = "csv" if request.GET.get("format") == "csv" else "ndjson"
    return exported(cluster, filters, form)


@cluster_action
def replay(request: PageRequest, cluster: Cluster) -> HttpResponseRedirect:
    """Append the selected dead letters again, or all matches of the filters."""
    require_operator(request.actor, cluster)
    with notify_refusals(request):
        choice = _choice(request, cluster)
        done = dead_letters.replay(request.actor, cluster, choice, request.POST.get("zone", ""))
        notify(request, _outcome(done))
    return _back(request, cluster)


@cluster_action
def delete(request: PageRequest, cluster: Cluster) -> HttpResponseRedirect:
    """Delete the selected dead letters, or all matches of the filters."""
    require_operator(request.actor, cluster)
    reason = request.POST.get("why", "")[:300]
    with notify_refusals(request):
        choice = _choice(request, cluster)
        removed = dead_letters.delete(request.actor, cluster, choice, reason)
        notify(request, f"{removed:,} dead letter{'' if removed == 1 else 's'} deleted.")
    return _back(request, cluster)


def _outcome(done: Replayed) -> str:
    text = f"{done.appended:,} appended again, {done.left:,} stay"
    first = next(iter(done.faults.values()), "")
    more = "; others were not tried" if done.next is not None else ""
    return f"{text}{f' ({first})' if first else ''}{more}."


def _choice(request: PageRequest, cluster: Cluster) -> DeadLetterSelection:
    if request.POST.get("all") == "1":
        return DeadLetterSelection(None, DeadLetterFilters.of(cluster, request.POST))
    ids = request.POST.getlist("id")
    if not ids:
        raise Invalid({"id": ["Choose one or more"]})
    return DeadLetterSelection(ids)


def _back(request: PageRequest, cluster: Cluster) -> HttpResponseRedirect:
    kept = {name: request.POST[name] for name in ("stream", "reason") if request.POST.get(name)}
    query = f"?{urlencode(kept)}" if kept else ""
    return redirect(f"{reverse('dead-letters', args=[cluster.slug])}{query}")
