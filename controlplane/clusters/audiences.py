"""Who may send a request to an address, checked before its body is read.

An audience is a role on the cluster that the address names (on all, if it names none), or a
function that raises for others. Services check again what they need.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.http import HttpRequest

from controlplane.access.roles import ADMIN, Actor, require, require_member, require_operator
from controlplane.clusters.listing import visible_cluster
from controlplane.errors import Forbidden
from controlplane.integrations.webhooks import webhook_by_id

Audience = str | Callable[[Actor, HttpRequest], object]
READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def admit(request: HttpRequest, actor: Actor, audience: Audience) -> None:
    """Set the actor and the cluster of a request, once.

    Raises `NotFound` for an unknown cluster and for one that the actor may not view, and
    `Forbidden` for an actor outside the audience.
    """
    if hasattr(request, "actor"):
        return
    if audience is producers:
        actor = actor.as_producer()
    slug = parts_of(request).get("slug")
    if slug is not None:
        cluster = request.cluster = visible_cluster(actor, slug)  # type: ignore[attr-defined]
        actor = actor.on(cluster)
    if callable(audience):
        audience(actor, request)
    else:
        require(actor, audience)
    request.actor = actor  # type: ignore[attr-defined]


def parts_of(request: HttpRequest) -> Mapping[str, Any]:
    """Return the parts of a request's address by name."""
    return request.resolver_match.kwargs if request.resolver_match else {}


def by_default(actor: Actor, request: HttpRequest) -> None:
    """Admit members to reads, and operators to writes."""
    if request.method in READS:
        require_member(actor)
    else:
        require_operator(actor)


def producers(actor: Actor, request: HttpRequest) -> None:
    """Admit as by default, and tokens of producers as those of operators."""
    by_default(actor, request)


def members(actor: Actor, request: HttpRequest) -> None:
    """Admit those who view at least one cluster: they have rows of their own."""
    require_member(actor)


def any_admins(actor: Actor, request: HttpRequest) -> None:
    """Admit admins of at least one cluster: the body or the rows name it."""
    if not actor.is_any_admin:
        raise Forbidden(ADMIN)


def webhook_managers(actor: Actor, request: HttpRequest) -> None:
    """Admit those who manage the webhook in the address, or any without one."""
    any_admins(actor, request)
    if "pk" in parts_of(request):
        webhook_by_id(actor, parts_of(request)["pk"])
