"""Actions of all list pages: files of the filtered rows, saved views."""

from collections.abc import Callable
from typing import Final

from django.http import Http404, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme

from controlplane.errors import NotFound
from controlplane.lists import saved_views
from controlplane.lists.export import ExportFormat, exported
from controlplane.lists.kinds import ListKind, list_kind
from controlplane.models import Cluster
from dashboard.guards import PageRequest, anyone_action, anyone_page, cluster_page
from dashboard.lists.page import RANGE_NAMES, list_page, require_readable
from dashboard.responses import notify, notify_refusals
from dashboard.time_range import time_range_of

# Parameters of the pages that do not select rows of a file.
_OTHERS: Final = (*RANGE_NAMES, "fold", "cursor", "format", "algorithm")


@cluster_page
def cluster_file(request: PageRequest, cluster: Cluster, name: str) -> HttpResponseBase:
    """Return the filtered rows of a list of a cluster as a file."""
    return _file(request, _kind(name, is_of_cluster=True), f"{cluster.slug}-{name}")


@anyone_page
def site_file(request: PageRequest, name: str) -> HttpResponseBase:
    """Return the filtered rows of a list of all clusters as a file."""
    return _file(request, _kind(name, is_of_cluster=False), name)


def _kind(name: str, *, is_of_cluster: bool) -> ListKind:
    kind = list_kind(name)
    if kind.is_of_cluster is not is_of_cluster:
        raise NotFound("list", name)
    return kind


def _file(request: PageRequest, kind: ListKind, name: str) -> HttpResponseBase:
    time_range = None
    if kind.between is not None and any(part in request.GET for part in RANGE_NAMES):
        time_range = time_range_of(request.GET, timezone.now())
    shown = list_page(request, kind, time_range=time_range, others=_OTHERS)
    is_json = request.GET.get("format") == ExportFormat.JSON
    form = ExportFormat.JSON if is_json else ExportFormat.CSV
    return exported(require_readable(shown), kind.columns, name, form)


@anyone_action
def save(request: PageRequest) -> HttpResponseRedirect:
    """Save the filter and the order of a list under a name."""
    sent = request.POST

    def change() -> str:
        view = saved_views.save_view(
            request.actor, sent.get("list", ""), sent.get("name", ""), sent.get("filter", ""),
            sent.get("order", ""), is_default=bool(sent.get("is_default")),
        )  # fmt: skip
        return f"The view {view.name} is saved."

    return _changed(request, change)


@anyone_action
def change(request: PageRequest, pk: int) -> HttpResponseRedirect:
    """Rename a view, or make it the default or not."""
    sent = request.POST

    def renamed() -> str:
        default = {"yes": True, "no": False}.get(sent.get("default", ""))
        view = saved_views.change_view(request.actor, pk, name=sent.get("name"), is_default=default)
        if default is None:
            return f"The view is called {view.name}."
        opens = "opens with" if default else "no longer opens with"
        return f"The list {opens} the view {view.name}."

    return _changed(request, renamed)


@anyone_action
def delete(request: PageRequest, pk: int) -> HttpResponseRedirect:
    """Delete a view."""

    def removed() -> str:
        saved_views.delete_view(request.actor, pk)
        return "The view is deleted."

    return _changed(request, removed)


def _changed(request: PageRequest, change: Callable[[], str]) -> HttpResponseRedirect:
    """Apply a change of a view, and return to the list with its filter."""
    with notify_refusals(request):
        try:
            notify(request, change())
        except NotFound as missing:
            raise Http404(str(missing)) from None
    back = request.POST.get("back", "")
    if not url_has_allowed_host_and_scheme(back, {request.get_host()}, request.is_secure()):
        back = reverse("fleet")
    return HttpResponseRedirect(back)
