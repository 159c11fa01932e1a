"""The Django application that holds Weir's rows."""

from django.apps import AppConfig
from django.conf import settings


class ControlPlaneConfig(AppConfig):
    """System of record: clusters, streams, queries, routing, proposals, metrics, audit."""

    name = "controlplane"
    verbose_name = "Weir"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect the receivers of log-ins, log-outs and changes of access."""
        # Its models are loaded by now, not when this module is imported.
        from controlplane.access.logins import breached_passwords, signals, single_sign_on  # noqa: PLC0415

        single_sign_on.check()
        breached_passwords.check()
        signals.connect()
        if settings.OTLP_URL:
            from controlplane.integrations import otlp  # noqa: PLC0415 - an extra

            otlp.start()
