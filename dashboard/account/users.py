"""Actions of administrators on the log-ins of other users; their form is on the page of grants."""

from django.http import HttpResponse
from django.shortcuts import redirect

from controlplane.access.logins import login_sessions, second_factor
from dashboard.guards import PageRequest, anyone_action
from dashboard.responses import notify, notify_refusals


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
