"""Pages of the own second factor: set up by its first code, removed by a code."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from controlplane.access.logins import second_factor
from controlplane.access.logins.login_sessions import KEY
from controlplane.access.logins.reauthentication import person_of
from dashboard.account.qr_code import qr_code
from dashboard.account.views import account_page, faults_of, own_page
from dashboard.guards import PageRequest
from dashboard.responses import notify, notify_refusals, render_page

# The id of the setup: only the session that started it sees the secret.
_STARTED = "second_factor_setup"


@own_page
def show(request: PageRequest) -> HttpResponse:
    """Show the secret of a started setup, as text and QR code."""
    return _setup_page(request, {})


@require_POST
@own_page
def start(request: PageRequest) -> HttpResponse:
    """Start to set up a factor."""
    with notify_refusals(request):
        request.session[_STARTED] = second_factor.start(request.actor)
        return redirect("second-factor")
    return redirect("account")


@require_POST
@own_page
def confirm(request: PageRequest) -> HttpResponse:
    """Activate the factor by its first code; only this response has the recovery codes."""
    user = person_of(request.actor)
    setup = request.session.get(_STARTED)
    if not setup:
        return redirect("account")
    with notify_refusals(request):
        code, session = request.POST.get("code", ""), request.session.get(KEY, "")
        codes, faults, status = faults_of(
            lambda: second_factor.confirm(request.actor, user, setup, code, session), "code"
        )
        if codes is None:
            return _setup_page(request, {"errors": faults}, status)
        del request.session[_STARTED]
        return render_page(request, "second_factor.html", {"codes": codes})
    return redirect("account")


@require_POST
@own_page
def remove(request: PageRequest) -> HttpResponse:
    """Remove the factor, after a code."""
    with notify_refusals(request):
        code = request.POST.get("code", "")
        done, faults, status = faults_of(lambda: second_factor.remove(request.actor, code), "code")
        if done is None:
            return account_page(request, {"factor_errors": faults}, status)
        notify(request, "The second factor is removed.")
    return redirect("account")


def _setup_page(request: PageRequest, more: dict[str, Any], status: int = 200) -> HttpResponse:
    started = request.session.get(_STARTED, "")
    setup = second_factor.setup_of(person_of(request.actor), started)
    if setup is None:
        return redirect("account")
    context = {"setup": setup, "qr_code": qr_code(setup.address), "errors": {}}
    return render_page(request, "second_factor.html", context | more, status)
