"""The page on which users confirm to be present, before a change of what gives access.

It has the data of the form that was refused with `ConfirmationNeeded`, and sends it again. Users
with a password enter it; others log in once more at the provider of single sign-on, in another tab.
"""

from collections.abc import Callable
from typing import Final, cast

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from controlplane.access.logins.reauthentication import confirm_password, record_confirmation
from controlplane.access.roles import actor_of
from controlplane.errors import ConfirmationNeeded
from dashboard.account.views import faults_of, own_page
from dashboard.guards import PageRequest
from dashboard.responses import notify_refusals

_FIELD: Final = "own_password"
_NOT_OF_THE_FORM: Final = ("csrfmiddlewaretoken", _FIELD)
# What in Django's admin changes no user and no group.
_WITHOUT_CHANGES: Final = ("/admin/login/", "/admin/logout/")


def ask_for_confirmation(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Return the middleware that shows the page; each change in Django's admin needs it, too."""

    def respond(request: HttpRequest) -> HttpResponse:
        path = request.path
        is_change = request.method == "POST" and path.startswith("/admin/")
        is_change &= path not in _WITHOUT_CHANGES and getattr(request.user, "is_staff", False)
        confirmed = not is_change or actor_of(request).is_confirmed
        return get_response(request) if confirmed else _page(request, request.get_full_path())

    def process_exception(request: HttpRequest, error: Exception) -> HttpResponse | None:
        needed = isinstance(error, ConfirmationNeeded)
        return _page(request, request.get_full_path()) if needed else None

    respond.process_exception = process_exception  # type: ignore[attr-defined]
    return respond


@require_POST
@own_page
def confirm(request: PageRequest) -> HttpResponse:
    """Confirm by the password, and let the browser send the form again."""
    target = own_address(request, request.GET.get("to", ""))
    with notify_refusals(request):
        user, faults, status = faults_of(
            lambda: confirm_password(request.actor, request.POST.get(_FIELD, "")), "password"
        )
        if user is None:
            return _page(request, target, status, faults)
        record_confirmation(request.actor, request.session)
        # The browser repeats the request with its body.
        return HttpResponse(status=307, headers={"Location": target})
    return redirect("account")


def own_address(request: HttpRequest, wanted: str) -> str:
    """Return the address if it is one of this site, else that of the first page."""
    hosts = {request.get_host()}
    is_own = url_has_allowed_host_and_scheme(wanted, hosts, require_https=request.is_secure())
    return wanted if is_own else settings.LOGIN_REDIRECT_URL


def _page(
    request: HttpRequest, target: str, status: int = 401, faults: object = None
) -> HttpResponse:
    fields = [
        (name, value) for name, values in request.POST.lists() for value in values
        if name not in _NOT_OF_THE_FORM
    ]  # fmt: skip
    context = {"target": target, "fields": fields, "faults": faults, "sso": settings.OIDC_NAME,
               "has_password": cast("User", request.user).has_usable_password()}  # fmt: skip
    return render(request, "dashboard/confirm.html", context, status=status)
