"""Login and logout."""

from django.contrib.auth.views import LoginView, LogoutView


class Login(LoginView):
    """The login page, which redirects users with a session to the fleet."""

    template_name = "dashboard/login.html"
    redirect_authenticated_user = True


class Logout(LogoutView):
    """Log out (POST)."""
