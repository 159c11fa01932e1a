"""The Django application that holds archived windows."""

from django.apps import AppConfig


class ArchiveConfig(AppConfig):
    """Windows of queries that do not change any more."""

    name = "controlplane.results.archive"
    label = "archive"
    verbose_name = "Weir's archive of results"
    default_auto_field = "django.db.models.BigAutoField"
