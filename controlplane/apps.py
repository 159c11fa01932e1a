"""The Django application that holds Weir's rows."""

from django.apps import AppConfig


class ControlPlaneConfig(AppConfig):
    """System of record: clusters, streams, queries, routing, proposals, metrics, audit."""

    name = "controlplane"
    verbose_name = "Weir"
    default_auto_field = "django.db.models.BigAutoField"
