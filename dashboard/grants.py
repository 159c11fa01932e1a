"""Pages of grants, and actions of administrators on the log-ins of other users."""

from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect

from controlplane.access import grants
from controlplane.access.grants import GrantFilters
from controlplane.access.logins import login_sessions, second_factor
from controlplane.access.roles import ADMIN, ROLES, Actor
from controlplane.clusters.listing import visible_cluster
from controlplane.errors import Forbidden, Invalid
from controlplane.models import Cluster
from dashboard.guards import PageRequest, anyone_action, anyone_page
from dashboard.lists import list_filters
from dashboard.responses import notify, notify_refusals, render_list

PER_PAGE = 100


@anyone_page
def list_grants(request: PageRequest) -> HttpResponse:
    """Render the grants on the clusters that the actor administers, and the form of a new one."""
    filters = list_filters(request, GrantFilters, {"per_page": PER_PAGE})
    context = {
        "filters": filters,
        "page": grants.grants_listing(request.actor, filters).page,
        "without_grants": grants.roles_without_grants(request.actor),
        "roles": ROLES,
        "is_admin_of_all": request.actor.may(ADMIN),
    }
    return render_list(request, "grants.html", "_grants_table.html", context)


@anyone_action
def set_grant(request: PageRequest) -> HttpResponse:
    """Grant a role on a cluster or on all, or change it."""
    values = request.POST
    with notify_refusals(request):
        cluster = _cluster(request.actor, values)
        row = grants.grant(
            request.actor,
            values.get("user", "").strip(),
            values.get("role", ""),
            cluster,
            values.get("reason", ""),
        )
        notify(request, f"{row.user} is {row.role} {_place(cluster)}.")
    return redirect("grants")


@anyone_action
def revoke_grant(request: PageRequest) -> HttpResponse:
    """Revoke a grant."""
    values = request.POST
    with notify_refusals(request):
        cluster = _cluster(request.actor, values)
        user = values.get("user", "")
        grants.revoke(request.actor, user, cluster, values.get("reason", ""))
        notify(request, f"The grant of {user} {_place(cluster)} was revoked.")
    return redirect("grants")


def _cluster(actor: Actor, values: QueryDict) -> Cluster | None:
    """Return the cluster that a form names, None for all. An absent field names none."""
    if "cluster" not in values:
        if not actor.may(ADMIN):
            raise Forbidden(ADMIN)
        raise Invalid({"cluster": ["Choose a cluster, or all clusters"]})
    slug = str(values["cluster"])
    return visible_cluster(actor, slug) if slug else None


def _place(cluster: Cluster | None) -> str:
    return "on all clusters" if cluster is None else f"on {cluster.slug}"


@anyone_action
def end_sessions(request: PageRequest) -> HttpResponse:
    """End all sessions of a user."""
    user, reason = request.POST.get("user", "").strip(), request.POST.get("reason", "")
    with notify_refusals(request):
        count = login_sessions.end_all_of(request.actor, user, reason)
        notify(request, f"{count} sessions of {user} have ended.")
    return redirect("grants")


@anyone_action
def remove_factor(request: PageRequest) -> HttpResponse:
    """Remove the second factor of a user who lost it."""
    user, reason = request.POST.get("user", "").strip(), request.POST.get("reason", "")
    with notify_refusals(request):
        second_factor.remove_of(request.actor, user, reason)
        notify(request, f"The second factor of {user} is removed. The user's sessions have ended.")
    return redirect("grants")
