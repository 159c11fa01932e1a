"""The Django application of the Lab: its templates, static files and command."""

from django.apps import AppConfig


class LabConfig(AppConfig):
    """Pages of the Lab, without models: the rows of its runs are of `controlplane.models`."""

    name = "dashboard.lab"
    verbose_name = "Weir Lab"
