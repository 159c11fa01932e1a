"""Policy of a cluster, blackouts, exclusions, and decisions of the watch loops."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router, Status

from controlplane.api.common.lists import listed, requested_page
from controlplane.api.common.security import caller
from controlplane.api.policies.schemas import (
    BlackoutIn,
    BlackoutOut,
    DecisionOut,
    DecisionPage,
    ExclusionIn,
    ExclusionOut,
    PolicyIn,
    PolicyOut,
)
from controlplane.clusters.listing import cluster_by_slug
from controlplane.models import Blackout
from controlplane.policies import blackouts, exclusions
from controlplane.policies.store import update_policy
from controlplane.watch.history import (
    DecisionFilters,
    decisions_listing,
    last_decisions,
)

router = Router(tags=["policies"])


@router.get("/{slug}/policy", response=PolicyOut)
def get_policy(request: HttpRequest, slug: str) -> Any:
    """Return the cluster's policy, the defaults where none was set."""
    caller(request)
    return PolicyOut.of(cluster_by_slug(slug))


@router.patch("/{slug}/policy", response=PolicyOut)
def change_policy(request: HttpRequest, slug: str, body: PolicyIn) -> Any:
    """Change some settings of the policy. Requires the role admin."""
    actor, cluster = caller(request), cluster_by_slug(slug)
    update_policy(actor, cluster, body.changes(), body.reason)
    return PolicyOut.of(cluster)


@router.get("/{slug}/blackouts", response=list[BlackoutOut])
def list_blackouts(request: HttpRequest, slug: str) -> Any:
    """Return the blackouts."""
    caller(request)
    return Blackout.objects.filter(cluster=cluster_by_slug(slug))


@router.post("/{slug}/blackouts", response={201: BlackoutOut})
def add_blackout(request: HttpRequest, slug: str, body: BlackoutIn) -> Any:
    """Add a blackout. Requires the role admin."""
    actor, cluster = caller(request), cluster_by_slug(slug)
    row = blackouts.add_blackout(
        actor, cluster, reason=body.reason, cron=body.cron, minutes=body.minutes,
        starts_at=body.starts_at, ends_at=body.ends_at,
    )  # fmt: skip
    return Status(201, row)


@router.delete("/{slug}/blackouts/{int:pk}", response={204: None})
def remove_blackout(request: HttpRequest, slug: str, pk: int, reason: str = "") -> Any:
    """Delete a blackout. Requires the role admin."""
    blackouts.remove_blackout(caller(request), cluster_by_slug(slug), pk, reason[:2000])
    return Status(204, None)


@router.get("/{slug}/exclusions", response=list[ExclusionOut])
def list_exclusions(request: HttpRequest, slug: str) -> Any:
    """Return the exclusions by expiry."""
    caller(request)
    return exclusions.live_exclusions(cluster_by_slug(slug), timezone.now())


@router.post("/{slug}/exclusions", response={201: ExclusionOut})
def add_exclusion(request: HttpRequest, slug: str, body: ExclusionIn) -> Any:
    """Exclude an object from plans until a moment; a repeated request sets owner and end."""
    actor, cluster = caller(request), cluster_by_slug(slug)
    row = exclusions.add_exclusion(
        actor, cluster, body.kind, body.subject, body.reason, body.expires_at
    )
    return Status(201, row)


@router.delete("/{slug}/exclusions/{int:pk}", response={204: None})
def remove_exclusion(request: HttpRequest, slug: str, pk: int, reason: str = "") -> Any:
    """Delete an exclusion."""
    exclusions.remove_exclusion(caller(request), cluster_by_slug(slug), pk, reason[:2000])
    return Status(204, None)


@router.get("/{slug}/watch", response=list[DecisionOut])
def get_watch(request: HttpRequest, slug: str) -> Any:
    """Return the last decision of each watch loop."""
    caller(request)
    return [row for row in last_decisions(cluster_by_slug(slug)).values() if row is not None]


@router.get("/{slug}/decisions", response=DecisionPage)
def list_decisions(request: HttpRequest, response: HttpResponse, slug: str) -> Any:
    """List the decisions of the watch loops, newest first.

    Query parameters loop, code, cursor, limit (up to 1000).
    """
    caller(request)
    cluster, filters = cluster_by_slug(slug), DecisionFilters.of(request.GET)
    page = requested_page(request, decisions_listing(cluster, filters, "-first_at"))
    return listed(request, response, page) | {"decisions": page.rows}
