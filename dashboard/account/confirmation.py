"""The page on which users confirm to be present, before a change of what gives access.

It has the data of the form that was refused with `ConfirmationNeeded`, and sends it again. Users
with a password enter it; others log in once more at the provider of single sign-on.
"""

from collections.abc import Callable
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from controlplane.access.roles import actor_of, require_confirmed
from controlplane.errors import ConfirmationNeeded
from controlplane.logins.reauthentication import confirm_password, record_confirmation
from dashboard.account.views import faults_of, own_page
from dashboard.guards import PageRequest
from dashboard.responses import notify_refusals

# The form that continues after single sign-on, in the session, and its largest size (characters).
_HELD: Final = "held_form"
_MAX_HELD: Final = 16_384
_FIELD: Final = "own_password"
_NOT_OF_THE_FORM: Final = ("csrfmiddlewaretoken", _FIELD)
# Django's admin changes users and groups only.
_ADMIN: Final = "admin"
_ADMIN_WITHOUT_CHANGES: Final = ("login", "logout")


def ask_for_confirmation(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Return the middleware that shows the page; each change in Django's admin needs it, too."""

    def respond(request: HttpRequest) -> HttpResponse:
        return get_response(request)

    def process_exception(request: HttpRequest, error: Exception) -> HttpResponse | None:
        needed = isinstance(error, ConfirmationNeeded)
        return _page(request, request.get_full_path()) if needed else None

    def process_view(request: HttpRequest, *_: Any) -> HttpResponse | None:
        match = request.resolver_match
        if request.method != "POST" or match is None or match.app_name != _ADMIN:
            return None
        if match.url_name in _ADMIN_WITHOUT_CHANGES or not request.user.is_authenticated:
            return None
        try:
            return require_confirmed(actor_of(request))
        except ConfirmationNeeded as needed:
            return process_exception(request, needed)

    respond.process_exception = process_exception  # type: ignore[attr-defined]
    respond.process_view = process_view  # type: ignore[attr-defined]
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


def continue_form(request: HttpRequest) -> HttpResponse | None:
    """Return the page that sends the form which waited for single sign-on; None without one."""
    held = request.session.pop(_HELD, None)
    return None if held is None else _render(request, *held, {"is_confirmed": True})


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
    has_password = request.user.has_usable_password()
    if not has_password:
        # No password of another user is stored.
        held = [field for field in fields if "password" not in field[0]]
        is_small = sum(len(name) + len(value) for name, value in held) <= _MAX_HELD
        request.session[_HELD] = (target, held if is_small else [])
    shown = {"has_password": has_password, "sso": settings.OIDC_NAME, "faults": faults}
    return _render(request, target, fields, shown, status)


def _render(
    request: HttpRequest, target: str, fields: object, more: dict[str, Any], status: int = 200
) -> HttpResponse:
    context = {"target": target, "fields": fields} | more
    return render(request, "dashboard/confirm.html", context, status=status)
