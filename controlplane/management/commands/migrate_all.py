"""`manage.py migrate_all`: migrate both databases, the rows and the archive of results."""

from contextlib import suppress
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import OperationalError, connections

from controlplane.access import audit_triggers
from controlplane.background.table_statistics import update_statistics
from controlplane.results.archive.apps import ArchiveConfig
from controlplane.results.archive.router import DEFAULT, RESULTS, is_shared


class Command(BaseCommand):
    """Migrates the databases of both aliases; one if both are the same."""

    # Django's checks would import the whole API, which takes seconds of every start.
    requires_system_checks = ()
    help = "Migrate the database, and the one of archived results where that is another."

    def handle(self, *args: Any, **options: Any) -> None:
        """Run Django's own command for each."""
        given = {"interactive": False, "verbosity": options["verbosity"]}
        call_command("migrate", database=DEFAULT, **given)
        # SQLite changes a table by a new one, without the triggers of the former.
        audit_triggers.install(connections[DEFAULT])
        if not is_shared():
            # Other migrations create no table there, but take as long as the first time.
            call_command("migrate", ArchiveConfig.label, database=RESULTS, **given)
        # A start does not fail for them: the beat collects them as well.
        with suppress(OperationalError):
            update_statistics()
