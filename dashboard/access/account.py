"""Login and logout."""

from django.contrib.auth.views import LoginView, LogoutView


class Login(LoginView):
    """The login page; a user with a session is redirected to the fleet."""

    template_name = "dashboard/login.html"
    redirect_authenticated_user = True


class Logout(LogoutView):
    """Ends the session; only by POST."""
