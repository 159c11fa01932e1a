"""`manage.py migrate_all`: migrate the database, and create the tables of results."""

from contextlib import suppress
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connections

from controlplane.access import audit_triggers
from controlplane.background.table_statistics import update_statistics
from controlplane.results.database import DEFAULT, RESULTS, create_results_tables
from controlplane.wire.results.tables import EarlierTable


class Command(BaseCommand):
    """Migrates the database of Django's rows, and creates the tables of results."""

    # Django's checks would import the whole API, which takes seconds of every start.
    requires_system_checks = ()
    help = "Migrate the database, and create the tables of results."

    def handle(self, *args: Any, **options: Any) -> None:
        """Run Django's own command, then create the tables of results. Raises `CommandError`."""
        given = {"interactive": False, "verbosity": options["verbosity"]}
        call_command("migrate", database=DEFAULT, **given)
        # SQLite changes a table by a new one, without the triggers of the former.
        audit_triggers.install(connections[DEFAULT])
        try:
            create_results_tables()
        except EarlierTable as error:
            place = connections[RESULTS].settings_dict["NAME"]
            remedy = "Delete its tables results_*, with all windows, or use another database"
            raise CommandError(f"In the database of results {place} {error}. {remedy}") from None
        # A start does not fail for them: the beat collects them as well.
        with suppress(OperationalError):
            update_statistics()
