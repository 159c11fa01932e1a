"""The statistics by which SQLite chooses the index of a query.

Without them it takes any index whose first column fits: the check whether a query's name is taken
read all queries of its cluster. PostgreSQL collects its own.
"""

from typing import Final

from django.db import connections

from controlplane.results.database import aliases

# Rows of an index that are read; a count of all would take seconds for large tables.
SAMPLE: Final = 400


def update_statistics() -> None:
    """Collect the statistics of all tables; other connections read them when they are opened."""
    for alias in aliases():
        connection = connections[alias]
        if connection.vendor != "sqlite":
            continue
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA analysis_limit={SAMPLE}")
            cursor.execute("ANALYZE")
