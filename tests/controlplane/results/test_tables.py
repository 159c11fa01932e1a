"""The tables of results are of this version, or the start tells what to do."""

import pytest
from django.core.management import CommandError, call_command

from controlplane.results.database import results_cursor

pytestmark = pytest.mark.django_db


def test_tables_of_an_earlier_version_are_named() -> None:
    with results_cursor() as cursor:
        cursor.execute("ALTER TABLE results_schema RENAME COLUMN name TO former")
    with pytest.raises(CommandError, match="results_schema"):
        call_command("migrate_all", verbosity=0)
