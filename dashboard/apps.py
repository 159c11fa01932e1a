"""The Django application of the pages."""

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    """Pages, sockets and figures, without models."""

    name = "dashboard"
    verbose_name = "Weir dashboard"
