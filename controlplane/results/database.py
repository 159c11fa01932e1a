"""The database of results: the alias `results`, which may be that of all other rows."""

from contextlib import AbstractContextManager
from typing import Any

from django.db import connections

from controlplane.wire.results.tables import create_tables

RESULTS = "results"
DEFAULT = "default"
_SAME = ("ENGINE", "NAME", "HOST", "PORT")


def aliases() -> list[str]:
    """Return the aliases of the databases, each database once."""
    default, results = (connections[alias].settings_dict for alias in (DEFAULT, RESULTS))
    is_shared = all(default.get(name) == results.get(name) for name in _SAME)
    return [DEFAULT] if is_shared else [DEFAULT, RESULTS]


def is_postgres() -> bool:
    """Return whether results are in PostgreSQL, else they are in SQLite."""
    return connections[RESULTS].vendor == "postgresql"


def results_cursor() -> AbstractContextManager[Any]:
    """Return a cursor of the database of results."""
    return connections[RESULTS].cursor()


def create_results_tables() -> None:
    """Create the tables of results that do not exist."""
    with results_cursor() as cursor:
        create_tables(cursor, is_postgres=is_postgres())
