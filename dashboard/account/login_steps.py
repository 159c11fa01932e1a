"""Pages of the second step of a log-in: a code, or the setup of a factor that the site requires."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from controlplane.access.logins import second_factor, second_step
from controlplane.access.logins.second_step import WaitingUser
from controlplane.errors import Busy, Conflict, Invalid
from dashboard.account.login import login_page, refused
from dashboard.account.qr_code import qr_code

_EXPIRED = Conflict("step_expired", "This step took too long, or has not begun: log in")


@require_http_methods(["GET", "POST"])
def enter_code(request: HttpRequest) -> HttpResponse:
    """Ask for the code of the second factor, and begin the session after it."""
    waiting = second_step.waiting_user(request)
    if waiting is None:
        return _expired(request)
    if request.method == "GET":
        return _code_page(request, {})
    actor = second_step.actor_in(request, waiting.user)
    try:
        factor = second_factor.verify(actor, waiting.user, request.POST.get("code", ""))
    except Invalid as invalid:
        return _code_page(request, {"errors": invalid.fields}, 422)
    except Busy as locked:
        return refused(_code_page(request, {"refusal": locked}), locked)
    second_step.finish(request, waiting, factor)
    return redirect(waiting.wanted)


@require_http_methods(["GET", "POST"])
def set_up_factor(request: HttpRequest) -> HttpResponse:
    """Show the secret of a factor that the site requires, and begin the session after its code.

    The response to the right code has the recovery codes, once.
    """
    waiting = second_step.waiting_user(request)
    if waiting is None:
        return _expired(request)
    if request.method == "GET":
        return _setup_page(request, waiting, {})
    actor = second_step.actor_in(request, waiting.user)
    try:
        code = request.POST.get("code", "")
        codes = second_factor.confirm(actor, waiting.user, waiting.setup, code)
    except Invalid as invalid:
        return _setup_page(request, waiting, {"errors": invalid.fields}, 422)
    except Conflict:
        return _expired(request)
    second_step.finish(request, waiting, second_factor.AUTHENTICATOR)
    return render(
        request, "dashboard/login_recovery.html", {"codes": codes, "wanted": waiting.wanted}
    )


def _code_page(request: HttpRequest, more: dict[str, Any], status: int = 200) -> HttpResponse:
    return render(request, "dashboard/login_code.html", more, status=status)


def _setup_page(
    request: HttpRequest, waiting: WaitingUser, more: dict[str, Any], status: int = 200
) -> HttpResponse:
    setup = second_factor.setup_of(waiting.user, waiting.setup)
    if setup is None:
        return _expired(request)
    context = {"setup": setup, "qr_code": qr_code(setup.address)}
    return render(request, "dashboard/login_factor.html", context | more, status=status)


def _expired(request: HttpRequest) -> HttpResponse:
    response = login_page(request, _EXPIRED)
    response.status_code = 400
    return response
