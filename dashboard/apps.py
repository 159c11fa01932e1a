"""The Django application that holds Weir's pages."""

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    """Pages, sockets and figures; it has no rows of its own."""

    name = "dashboard"
    verbose_name = "Weir dashboard"
