"""Coming in and going out."""

from django.contrib.auth.views import LoginView, LogoutView


class Login(LoginView):
    """The login page; who is logged in already goes on to the fleet."""

    template_name = "dashboard/login.html"
    redirect_authenticated_user = True


class Logout(LogoutView):
    """Ends the session; only by POST."""
