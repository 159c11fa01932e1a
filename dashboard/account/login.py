"""Pages to log in and out: by password, and by single sign-on.

The second step is a code, or the setup of a factor that the site requires.
"""

from typing import Any

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from controlplane.access.logins import second_factor, second_step, single_sign_on
from controlplane.access.logins.password_backend import refusal_of
from controlplane.access.logins.second_step import WaitingUser
from controlplane.errors import Away, Busy, Conflict, Invalid, TryLater, WeirError
from dashboard.account.confirmation import own_address
from dashboard.account.qr_code import qr_code

TEMPLATE = "dashboard/login.html"
# The page to open after single sign-on, in the anonymous session.
_NEXT = "next"


class PasswordLogin(LoginView):
    """The form of name and password; a lock-out is 429, an expired password 403."""

    template_name = TEMPLATE
    # Users with a session are redirected to the fleet.
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add what the page offers besides the form."""
        return super().get_context_data(**kwargs) | _offers()

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Begin the session, or ask for the second factor first."""
        user = form.get_user()
        step = second_step.step_of(self.request, user)
        if not step:
            return super().form_valid(form)
        is_new = step == second_step.SET_UP
        setup = second_factor.start_setup(user) if is_new else ""
        second_step.hold(self.request, user, self.get_success_url(), setup)
        return redirect("login-factor" if is_new else "login-code")

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """Show that the password is wrong, or why it was refused."""
        refusal = refusal_of(self.request)
        context = self.get_context_data(form=form, refusal=refusal)
        return refused(self.render_to_response(context), refusal)


@require_GET
def start_single_sign_on(request: HttpRequest) -> HttpResponse:
    """Redirect to the provider; 404 without one."""
    if not single_sign_on.is_enabled():
        return render(request, "404.html", status=404)
    request.session[_NEXT] = request.GET.get("next", "")
    callback = request.build_absolute_uri(reverse("sso-callback"))
    again = request.user.is_authenticated and "again" in request.GET
    try:
        return single_sign_on.begin(request, callback, again=again)
    except Away as away:
        return login_page(request, away)


@require_GET
def finish_single_sign_on(request: HttpRequest) -> HttpResponse:
    """Log in the user that the provider has authenticated, and open the page that was wanted."""
    if not single_sign_on.is_enabled():
        return render(request, "404.html", status=404)
    wanted = request.session.pop(_NEXT, "")
    try:
        single_sign_on.finish(request)
    except (TryLater, Conflict) as refusal:
        return login_page(request, refusal)
    return redirect(own_address(request, wanted))


def login_page(request: HttpRequest, refusal: WeirError) -> HttpResponse:
    """Render the page of the log-in with the reason of a refusal."""
    context = {"refusal": refusal, "form": AuthenticationForm(request)} | _offers()
    return refused(render(request, TEMPLATE, context), refusal)


def refused(response: HttpResponse, refusal: WeirError | None) -> HttpResponse:
    """Return the response with the status of a refusal, if there is one."""
    if isinstance(refusal, TryLater):
        response.status_code = 503 if isinstance(refusal, Away) else 429
        response["Retry-After"] = str(refusal.after_s)
    elif refusal is not None:
        response.status_code = 403
    return response


def _offers() -> dict[str, Any]:
    sso = settings.OIDC_NAME if single_sign_on.is_enabled() else ""
    return {"sso": sso, "has_passwords": settings.PASSWORD_LOGIN}


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
