"""Decorators that authorize pages and actions (POST) and translate errors into statuses.

`admit_senders` is the middleware that does so before the body of a write is read, also by Django's
CSRF check.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, cast

from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseNotAllowed
from django.template.loader import render_to_string
from django.views.decorators.http import require_POST
from django_htmx.middleware import HtmxDetails

from controlplane.access.roles import (
    ADMIN,
    OPERATOR,
    VIEWER,
    Actor,
    actor_of,
    require_member,
    require_viewer,
)
from controlplane.alerts.statuses import ClusterStatus
from controlplane.clusters.audiences import (
    READS,
    Audience,
    admit,
    any_admins,
    members,
    webhook_managers,
)
from controlplane.clusters.listing import visible_cluster
from controlplane.errors import Forbidden, NotFound
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


# Who may send something to a page, by the name of its URL: others than operators. None: anyone;
# "": users with a session.
_SENDERS: Final[Mapping[str, Audience | None]] = {
    name: audience
    for audience, names in (
        (None, "login login-code login-factor healthz readyz metrics"),
        ("", """logout account password-change session-end sessions-end second-factor
            second-factor-start second-factor-confirm second-factor-remove confirm"""),
        (VIEWER, "query-check query-explain sql-login stream-what-if stream-schema-preview"),
        (members, "view-save view-change view-delete token-make token-revoke"),
        (any_admins, "cluster-import grants grant-set grant-revoke"),
        (webhook_managers, """webhook-add webhook webhook-change webhook-switch webhook-secret
            webhook-test webhook-remove webhook-again"""),
        (ADMIN, """sink-add sink-remove sink-replay
            cluster-create cluster-master stuck-batch skip-batch incident-decide
            policy-change policy-revert blackout-add blackout-remove audit-verify
            user-sessions-end user-factor-remove"""),
    )
    for name in names.split()
}  # fmt: skip


def admit_senders(get_response: Callable[..., Any]) -> Callable[..., Any]:
    """Return the middleware that refuses a write to a page before its body is read.

    An address that takes forms only, opened as a page, is answered with a page that explains it.
    """

    def respond(request: HttpRequest) -> Any:
        response = get_response(request)
        if isinstance(response, HttpResponseNotAllowed) and request.method == "GET":
            response.content = render_to_string("405.html", request=request)
            # Computed of the empty answer before.
            response.headers.pop("Content-Length", None)
        return response

    respond.process_view = _refused  # type: ignore[attr-defined]
    return respond


def _refused(request: HttpRequest, view: object, args: object, parts: object) -> Any:
    """Return the redirect of an anonymous sender to the log-in, None for an admitted one."""
    match = request.resolver_match
    assert match is not None
    audience = _SENDERS.get(match.url_name or "", OPERATOR)
    # Operations have authentication of their own.
    if request.method in READS or audience is None or "ninja" in match.app_names:
        return None
    if not request.user.is_authenticated:
        return redirect_to_login(request.get_full_path())
    if "admin" in match.app_names:
        if not request.user.is_staff:
            raise PermissionDenied
    elif audience:
        with _translated(request):
            admit(request, actor_of(request), audience)
    return None


@contextmanager
def _translated(request: HttpRequest) -> Iterator[None]:
    """Translate `Forbidden` into a 403, and `NotFound` into a 404."""
    try:
        yield
    except Forbidden as refusal:
        # The audit log has it.
        request.refusal = str(refusal)  # type: ignore[attr-defined]
        raise PermissionDenied(str(refusal)) from None
    except NotFound as missing:
        raise Http404(str(missing)) from None


def anyone_page(view: Page[P]) -> Anyone[P]:
    """Require a viewer of any cluster; `Forbidden` is a 403, `NotFound` a 404."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        page = cast("PageRequest", request)
        page.actor = getattr(request, "actor", None) or actor_of(request)
        page.cluster, page.statuses = getattr(request, "cluster", None), None
        with _translated(request):
            require_member(page.actor)
            return view(page, *args, **kwargs)

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
        cluster = request.cluster or visible_cluster(request.actor, slug)
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
