"""Lookup of one row by its key."""

from typing import Any, TypeVar

from django.db.models import Manager, Model, QuerySet

from controlplane.errors import NotFound

M = TypeVar("M", bound=Model)


def row_by(rows: "QuerySet[M] | Manager[M]", kind: str, **key: Any) -> M:
    """Return the first row with a key, such as pk=7; raises `NotFound`."""
    row = rows.filter(**key).first()
    if row is None:
        raise NotFound(kind, next(iter(key.values())))
    return row
