"""Schemas that several subjects share.

A `Schema` also reads model instances, by looking up each field. A schema of many rows
(queries, streams) is created field by field, and is a plain pydantic model.
"""

from typing import Any, TypeVar

from ninja import Schema
from pydantic import BaseModel, Field

Body = TypeVar("Body", bound=BaseModel)


class ListOut(BaseModel):
    """The common fields of lists.

    next: the cursor of the next page, null on the last one; the header Link has its address.
    total: how many rows there are in all, null where the list goes on at a cursor. page and pages
    are those of a list requested by page number.
    """

    total: int | None = None
    page: int | None = None
    pages: int | None = None
    next: str | None = None


class PageOut(Schema):
    """The common fields of lists by page number."""

    total: int
    page: int
    pages: int


class ReasonIn(Schema):
    """The reason of a change, for the audit log."""

    reason: str = Field("", max_length=2000)


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
