"""Decorators that authorize pages and actions (POST) and translate errors into statuses."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_POST
from django_htmx.middleware import HtmxDetails

from controlplane.access.roles import Actor, actor_of, require_member, require_viewer
from controlplane.alerts.statuses import ClusterStatus
from controlplane.clusters.listing import visible_cluster
from controlplane.errors import Forbidden, Invalid, NotFound
from controlplane.models import Cluster

P = ParamSpec("P")


class PageRequest(HttpRequest):
    """An authorized request; actor and cluster (None for a page of no cluster) are read once.

    `statuses`: of the visible clusters, if the page has read them already.
    """

    actor: Actor
    cluster: Cluster | None
    statuses: Sequence[ClusterStatus] | None
    htmx: HtmxDetails


Anyone = Callable[Concatenate[HttpRequest, P], HttpResponseBase]
Page = Callable[Concatenate[PageRequest, P], HttpResponseBase]
ClusterPage = Callable[Concatenate[PageRequest, Cluster, P], HttpResponseBase]


def anyone_page(view: Page[P]) -> Anyone[P]:
    """Require a viewer of any cluster; `Forbidden` is a 403, `NotFound` a 404, `Invalid` a 422."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        page = cast("PageRequest", request)
        page.actor, page.cluster, page.statuses = actor_of(request), None, None
        try:
            require_member(page.actor)
            return view(page, *args, **kwargs)
        except Forbidden as refusal:
            # The audit log has it.
            request.refusal = str(refusal)  # type: ignore[attr-defined]
            raise PermissionDenied(str(refusal)) from None
        except NotFound as missing:
            raise Http404(str(missing)) from None
        except Invalid as refusal:
            # A form shows its own faults: this is a value of the URL, or one that no form sends.
            return render(request, "422.html", {"faults": refusal.fields}, status=422)

    return cast("Anyone[P]", login_required(guarded))


def viewer_page(view: Page[P]) -> Anyone[P]:
    """Require a viewer of all clusters."""

    @wraps(view)
    def seen(request: PageRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        require_viewer(request.actor)
        return view(request, *args, **kwargs)

    return anyone_page(seen)


def cluster_page(view: ClusterPage[...]) -> Callable[..., HttpResponseBase]:
    """Load the cluster of the URL's `slug`; for others than its viewers it is unknown: 404.

    The actor has the role on that cluster, on the page and in the services.
    """

    @wraps(view)
    def loaded(request: PageRequest, slug: str, **parts: Any) -> HttpResponseBase:
        cluster = visible_cluster(request.actor, slug)
        request.actor, request.cluster = request.actor.on(cluster), cluster
        return view(request, cluster, **parts)

    return anyone_page(loaded)


def anyone_action(view: Page[P]) -> Anyone[P]:
    """Require a POST by a viewer of any cluster."""
    return require_POST(anyone_page(view))


def viewer_action(view: Page[P]) -> Anyone[P]:
    """Require a POST by a viewer of all clusters."""
    return require_POST(viewer_page(view))


def cluster_action(view: ClusterPage[...]) -> Callable[..., HttpResponseBase]:
    """Require a POST by a viewer of the URL's cluster."""
    return require_POST(cluster_page(view))
