"""Shapes that bodies of many subjects share; what they mean is told by the models and services.

A `Schema` also reads rows, by looking up each field of them. What comes or goes in great numbers
(queries, streams) is made field by field, and is a plain model.
"""

from ninja import Schema
from pydantic import BaseModel, Field

from controlplane.wire.language.errors import Place


class ListOut(BaseModel):
    """What every list says beside its rows.

    next: the cursor of the next page, null on the last one; the header Link has its address.
    total: how many rows there are in all, null where the list goes on at a cursor. page and pages
    are those of a list that was asked for by page number.
    """

    total: int | None = None
    page: int | None = None
    pages: int | None = None
    next: str | None = None


class ReasonIn(Schema):
    """Why it is done; kept in the audit log."""

    reason: str = Field("", max_length=2000)


class CountOut(Schema):
    """How many rows a request changed."""

    count: int


class PlaceOut(Schema):
    """Where in the text of a field (in `on`: of one side) its first fault is; characters from 1."""

    line: str
    marks: str
    character: int

    @staticmethod
    def of(place: Place) -> "PlaceOut":
        """Return the body of a place."""
        return PlaceOut(line=place.line, marks=place.marks, character=place.character)
