"""Schemas that several subjects share, and schemas derived from models and dataclasses.

A `Schema` also reads model instances, by looking up each field. A schema of many rows
(queries, streams) is created field by field, and is a plain pydantic model.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache, reduce
from operator import or_
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Final, Self, TypeVar, get_args, get_origin, get_type_hints

from django.db import models
from ninja import Query, Schema
from ninja.orm.fields import TYPES
from pydantic import (
    AliasPath,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from controlplane.formats.moments import IN_CALENDAR
from controlplane.pagination.columns import Columns, terminal_names

# The largest whole number of a column of the database.
LARGEST: Final = 2**63 - 1
# Of a request: with a time zone, as the years 1 to 9999 in UTC have it.
Time = Annotated[AwareDatetime, IN_CALENDAR]
# Of a request without a body: why it is made, for the audit log.
Reason = Annotated[str, Query(max_length=2000)]


def columns_of(
    model: type[models.Model],
    names: str,
    *,
    base: type[BaseModel] = Schema,
    under: str = "",
    about: Mapping[str, str | None] = MappingProxyType({}),
    **json: Any,
) -> Any:
    """Return a schema with the named columns of a model, of a relation the id.

    `under`: the path from a row to the model, "" if it is the row itself. `about`: what
    columns are. `json`: the types of columns that hold JSON.
    """
    columns: dict[str, Any] = {}
    for name in (*names.split(), *json):
        column: Any = model._meta.get_field(name)  # noqa: SLF001
        stored = int if column.is_relation else TYPES[column.get_internal_type()]
        kind: Any = json.get(name, stored)
        alias = AliasPath(*under.split("."), column.attname) if under else column.attname
        declared = Field(validation_alias=alias, description=about.get(name))
        columns[name] = (kind | None if column.null else kind, declared)
    return create_model(f"_{model.__name__}", __base__=base, **columns)


def listed_columns_of(
    model: type[models.Model], columns: Columns, *, base: type[BaseModel] = Schema
) -> Any:
    """Return a schema with the columns of a list that the API has, and those of the terminal."""
    own = [column for column in columns if column.in_api]
    names = " ".join(column.name for column in own if column.type is None)
    about = {column.name: column.description for column in own}
    typed: dict[str, Any] = {
        column.name: (column.type, Field(description=about[column.name]))
        for column in own if column.type is not None
    }  # fmt: skip
    stored = columns_of(model, names, base=base, about=about)
    schema = create_model(f"_{model.__name__}Row", __base__=stored, **typed)
    schema.model_config |= shown(terminal_names(columns))
    return schema


def fields_of(*kinds: type[Any], without: str = "", base: type[BaseModel] = Schema) -> Any:
    """Return a schema with the fields of dataclasses, except the named ones.

    Fields that are dataclasses themselves have their schemas.
    """
    values: dict[str, Any] = {
        item.name: (_shown_type(get_type_hints(kind)[item.name]), ...)
        for kind in kinds
        for item in fields(kind)
        if item.name not in without.split()
    }
    return create_model(f"_{kinds[0].__name__}", __base__=base, **values)


@cache
def dataclass_schema(kind: type[Any]) -> Any:
    """Return the schema of a dataclass, with its docstring; its name is that and `Out`."""
    return create_model(f"{kind.__name__}Out", __base__=fields_of(kind), __doc__=kind.__doc__)


def _shown_type(hint: Any) -> Any:
    """Return a type with the schemas of dataclasses in their place."""
    if isinstance(hint, type) and is_dataclass(hint):
        return dataclass_schema(hint)
    arguments = tuple(_shown_type(item) for item in get_args(hint))
    if arguments == get_args(hint):
        return hint
    origin = get_origin(hint)
    return reduce(or_, arguments) if origin is UnionType else origin[arguments]


def shown(names: str) -> ConfigDict:
    """Return the configuration of a schema whose rows the command line shows with these columns."""
    return ConfigDict(json_schema_extra={"x-columns": list[Any](names.split())})


def below(path: str, *, is_optional: bool = True) -> Any:
    """Return the field of a value below a row, such as cluster.slug; null without one."""
    alias = AliasPath(*path.split("."))
    return Field(None, validation_alias=alias) if is_optional else Field(validation_alias=alias)


Body = TypeVar("Body", bound=BaseModel)


class ListOut(BaseModel):
    """The common fields of lists.

    next: the cursor of the next page, null on the last one; the header Link has its address.
    total: how many rows there are in all, null where the list goes on at a cursor.
    """

    total: int | None
    next: str | None


def list_of(name: str, **rows: Any) -> Any:
    """Return the schema of a list: its name, and the schema of the rows by their name in it."""
    fields: dict[str, Any] = {
        key: (list[row], ...)  # type: ignore[valid-type]
        for key, row in rows.items()
    }
    about = f"A page of {' and '.join(rows).replace('_', ' ')}."
    return create_model(name, __base__=ListOut, __doc__=about, **fields)


class RequestBody(Schema):
    """The base class of all bodies of requests: fields that it does not declare are refused.

    So are whole numbers that no column of the database has.
    """

    model_config = ConfigDict(extra="forbid")

    @field_validator("*")
    @classmethod
    def _storable(cls, value: Any) -> Any:
        if isinstance(value, int) and abs(value) > LARGEST:
            text = "Input should be between -{largest} and {largest}"
            raise PydanticCustomError("int_size", text, {"largest": LARGEST})
        return value


class ReasonIn(RequestBody):
    """The reason of a change, for the audit log."""

    reason: str = Field("", max_length=2000)


class SecretOut(Schema):
    """The base class of responses with a new secret, which is not shown again.

    Such a response is not stored for a repeated request (`decorators.idempotent`).
    """

    secret: str

    @model_validator(mode="after")
    def _mark(self, info: ValidationInfo) -> Self:
        """Mark the request whose response this is."""
        if info.context and "request" in info.context:
            info.context["request"].shows_secret = True
        return self


class CountOut(Schema):
    """The number of changed rows."""

    count: int


def response_of(kind: type[Body], row: Any, **values: Any) -> Body:
    """Return the body of a row: the given values, and the row's attributes of the other names."""
    own = {name: getattr(row, name) for name in kind.model_fields if name not in values}
    return kind(**own, **values)


class PlaceOut(BaseModel):
    """The place of the first fault in a field's text (in `on`: of one side); characters from 1."""

    line: str
    marks: str
    character: int
