"""Schemas of responses, derived from the models and dataclasses that have their values."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any, Final, get_type_hints
from uuid import UUID

from django.db import models
from ninja import Schema
from pydantic import AliasPath, BaseModel, Field, create_model

_TYPES: Final[Mapping[type[Any], Any]] = {
    models.BooleanField: bool,
    models.CharField: str,
    models.DateTimeField: datetime,
    models.FloatField: float,
    models.GenericIPAddressField: str,
    models.IntegerField: int,
    models.TextField: str,
    models.UUIDField: UUID,
}


def columns_of(
    model: type[models.Model],
    names: str,
    *,
    base: type[BaseModel] = Schema,
    under: str = "",
    **json: Any,
) -> Any:
    """Return a schema with the named columns of a model, of a relation the id.

    `under`: the attribute of a row that has the model, "" if it is the row itself. `json`: the
    types of columns that hold JSON.
    """
    columns: dict[str, Any] = {}
    for name in (*names.split(), *json):
        column: Any = model._meta.get_field(name)  # noqa: SLF001
        kind = json.get(name) or _type_of(column)
        alias = AliasPath(under, column.attname) if under else column.attname
        columns[name] = (kind | None if column.null else kind, Field(validation_alias=alias))
    return create_model(f"_{model.__name__}", __base__=base, **columns)


def fields_of(*kinds: type[Any], without: str = "", base: type[BaseModel] = Schema) -> Any:
    """Return a schema with the fields of dataclasses, except the named ones."""
    values: dict[str, Any] = {
        item.name: (get_type_hints(kind)[item.name], ...)
        for kind in kinds
        for item in fields(kind)
        if item.name not in without.split()
    }
    return create_model(f"_{kinds[0].__name__}", __base__=base, **values)


def below(path: str) -> Any:
    """Return the field of a value below a row, such as cluster.slug; null without one."""
    return Field(None, validation_alias=AliasPath(*path.split(".")))


def _type_of(column: Any) -> Any:
    if column.is_relation:
        return int
    return next(kind for name, kind in _TYPES.items() if isinstance(column, name))
