"""Schemas that several subjects share.

A `Schema` also reads model instances, by looking up each field. A schema of many rows
(queries, streams) is created field by field, and is a plain pydantic model.
"""

from ninja import Schema
from pydantic import BaseModel, Field

from controlplane.wire.language.errors import Place


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


class ReasonIn(Schema):
    """The reason of a change, for the audit log."""

    reason: str = Field("", max_length=2000)


class CountOut(Schema):
    """The number of changed rows."""

    count: int


class PlaceOut(Schema):
    """The place of the first fault in a field's text (in `on`: of one side); characters from 1."""

    line: str
    marks: str
    character: int

    @staticmethod
    def of(place: Place) -> "PlaceOut":
        """Return the body of a place."""
        return PlaceOut(line=place.line, marks=place.marks, character=place.character)
