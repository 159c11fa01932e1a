"""Policy of a cluster, blackouts, exclusions, and decisions of the watch loops."""

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils import timezone

from controlplane.access.roles import ADMIN, require
from controlplane.alerts.readings import cluster_readings
from controlplane.errors import Fields, Invalid
from controlplane.lists.kinds import KINDS
from controlplane.models import Blackout, Cluster, Exclusion, Policy
from controlplane.pagination.folding import period_of
from controlplane.pagination.pages import optional_whole
from controlplane.policies import blackouts, exclusions
from controlplane.policies.blackouts import cron_text
from controlplane.policies.description import summary
from controlplane.policies.measure_limits import reachable_of
from controlplane.policies.store import (
    changes_of,
    policy_of,
    policy_row,
    revert_change,
    stored_settings,
    update_policy,
)
from controlplane.watch.decision_folding import folded_decisions
from dashboard.forms import moment, number, optional, read_some
from dashboard.guards import PageRequest, cluster_action, cluster_page
from dashboard.lists.page import RANGE_NAMES, list_page, render_list_page
from dashboard.policies.decisions import decision_row, decisions_headline, why
from dashboard.policies.forms import form_sections, policy_changes
from dashboard.policies.history import change_rows
from dashboard.responses import cluster_change, notify, render_page
from dashboard.time_range import time_range_of

# An exclusion lasts less than a year.
MOST_HOURS = 24 * 365
DECISIONS_RANGE: Final = "24h"


@cluster_page
def index(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render the policy with its description and its form."""
    return _policy_page(request, cluster, policy_row(cluster))


@cluster_action
def change(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Change the policy, unless it was changed after the form was rendered."""
    require(request.actor, ADMIN, cluster)
    before = policy_row(cluster)
    sent = dict(request.POST.lists())
    if request.POST.get("stamp", "") != _version(before):
        text = f"{before.changed_by} has changed the policy meanwhile: this is how it is now."
        return _policy_page(request, cluster, before, note=text, status=409)
    try:
        changes = policy_changes(sent)
        reason = request.POST.get("reason", "")
        update_policy(request.actor, cluster, changes, reason[:2000])
    except Invalid as invalid:
        return _policy_page(request, cluster, before, sent, invalid.fields, status=422)
    notify(request, f"The policy of {cluster.name} is as you set it.")
    return redirect("policy", cluster.slug)


@cluster_change("policy")
def revert(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """Give the settings of a change their values before it."""
    revert_change(request.actor, cluster, pk)
    return "The settings of the change have their earlier values again."


@cluster_change("policy")
def blackout_add(request: PageRequest, cluster: Cluster) -> str:
    """Add a blackout: by a cron line, or a range."""
    values = request.POST
    ranged = values.get("how") == "range"
    names = ("starts_at", "ends_at") if ranged else ()
    times, faults = read_some(values, dict.fromkeys(names, optional(moment)))
    if faults:
        raise Invalid({"starts_at": ["A range has two moments"]})
    blackouts.add_blackout(
        request.actor,
        cluster,
        reason=values.get("reason", ""),
        cron="" if ranged else values.get("cron", "")[:100] or "-",
        minutes=0 if ranged else optional_whole(values, "minutes") or 0,
        starts_at=times.get("starts_at"),
        ends_at=times.get("ends_at"),
    )
    return "The blackout was added."


@cluster_change("policy")
def blackout_remove(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """Remove a blackout."""
    blackouts.remove_blackout(request.actor, cluster, pk, request.POST.get("reason", ""))
    return "The blackout was deleted."


@cluster_change("policy")
def exclusion_add(request: PageRequest, cluster: Cluster) -> str:
    """Add an exclusion for some hours."""
    values = request.POST
    hours = number(values.get("hours", ""))
    # The service rejects an exclusion that ends now.
    length = timedelta(hours=hours if 0 < hours < MOST_HOURS else 0)
    row = exclusions.add_exclusion(
        request.actor,
        cluster,
        values.get("kind", ""),
        values.get("subject", "").strip(),
        values.get("reason", ""),
        timezone.now() + length,
    )
    return f"No plan moves {row.kind} {row.subject} until {row.expires_at:%Y-%m-%d %H:%M} UTC."


@cluster_change("policy")
def exclusion_remove(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """Delete an exclusion."""
    exclusions.remove_exclusion(request.actor, cluster, pk, request.POST.get("reason", ""))
    return "The exclusion was deleted."


@cluster_page
def decisions(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render the last decision of each watch loop, and the decisions of a time range.

    Repeats of an outcome are folded, unless the address has fold=no.
    """
    time_range = time_range_of(request.GET, timezone.now(), DECISIONS_RANGE)
    others = {*RANGE_NAMES, "fold"}
    shown = list_page(request, KINDS["decisions"], time_range=time_range, others=others)
    is_folded = request.GET.get("fold") != "no"
    if shown.listing is not None and is_folded:
        folded = folded_decisions(shown.listing, period_of(time_range.length))
        shown = replace(shown, page=folded.page)
    last = why(cluster, policy_of(cluster), timezone.now())
    rows = [decision_row(row) for row in shown.page.rows]
    quiet = [] if shown.is_filtered else [row for row in rows if row.is_quiet]
    context = {
        "rows": rows,
        "loud": [row for row in rows if row not in quiet],
        "quiet": quiet,
        "why": last,
        "is_folded": is_folded,
        "span": time_range,
        "headline": decisions_headline(last),
    }
    return render_list_page(request, "decisions.html", "_decisions_table.html", shown, context)


def _policy_page(
    request: PageRequest,
    cluster: Cluster,
    policy: Policy,
    sent: dict[str, list[str]] | None = None,
    faults: Fields | None = None,
    *,
    note: str = "",
    status: int = 200,
) -> HttpResponse:
    now, settings = timezone.now(), stored_settings(policy)
    context = {
        "policy": policy,
        "summary": summary(settings),
        "limits": [row for row in cluster_readings(cluster).readings if row.kind.placed],
        "reachable": reachable_of([cluster.pk]).get(cluster.pk),
        "sections": form_sections(settings, sent, faults),
        "faults": faults or {},
        "note": note,
        "stamp": _version(policy),
        "changes": change_rows(changes_of(cluster), settings),
        "blackouts": [_blackout(row) for row in Blackout.objects.filter(cluster=cluster)],
        "exclusions": exclusions.live_exclusions(cluster, now),
        "kinds": Exclusion.Kind.values,
        "nodes": cluster.nodes.order_by("index"),
    }
    return render_page(request, "policy.html", context, status)


def _blackout(row: Blackout) -> dict[str, Any]:
    until = blackouts.blackout_until(row, timezone.now())
    over = row.ends_at is not None and row.ends_at <= timezone.now()
    schedule = cron_text(row.cron) if row.cron else ""
    return {"row": row, "schedule": schedule, "until": until, "over": over}


def _version(policy: Policy) -> str:
    """Return the version of the policy, which detects concurrent changes."""
    return policy.changed_at.isoformat() if policy.changed_at else ""
