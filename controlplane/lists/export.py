"""Exports of lists as CSV or JSON: streamed page by page, bounded, safe for spreadsheets."""

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from django.core.serializers.json import DjangoJSONEncoder
from django.http import StreamingHttpResponse

from controlplane.formats.csv_lines import csv_lines
from controlplane.pagination.columns import Columns, file_columns
from controlplane.pagination.cursors import PageRange
from controlplane.pagination.listing import Listing
from controlplane.pagination.pages import MAX_PER_PAGE

# Rows of a file; a program that needs more reads the API page by page.
MAX_EXPORT: Final = 100_000


class ExportFormat(StrEnum):
    """The format of a file."""

    CSV = "csv"
    JSON = "json"


_CONTENT_TYPES: Final[Mapping[ExportFormat, str]] = {
    ExportFormat.CSV: "text/csv; charset=utf-8",
    ExportFormat.JSON: "application/json",
}


def exported(
    listing: Listing[Any, Any],
    columns: Columns,
    name: str,
    form: ExportFormat,
) -> StreamingHttpResponse:
    """Return a streamed response with the rows of a listing as a file named after `name`.

    At most `MAX_EXPORT` rows; the JSON has `is_complete`, false if there are more.
    """
    parts = (
        csv_parts(listing, columns) if form is ExportFormat.CSV else json_parts(listing, columns)
    )
    response = StreamingHttpResponse(parts, content_type=_CONTENT_TYPES[form])
    response["Content-Disposition"] = f'attachment; filename="{name}.{form}"'
    return response


def csv_parts(
    listing: Listing[Any, Any], columns: Columns, most: int = MAX_EXPORT
) -> Iterator[str]:
    """Yield the header, then the lines of a page at a time."""
    kept = file_columns(columns)
    yield csv_lines([[column.file_name for column in kept]])
    for rows in _pages(listing, most):
        yield csv_lines(list(_values(kept, row).values()) for row in rows)


def json_parts(
    listing: Listing[Any, Any], columns: Columns, most: int = MAX_EXPORT
) -> Iterator[str]:
    """Yield an object with `rows` and `is_complete`, the rows of a page at a time."""
    yield '{"rows": ['
    separator, count = "\n", 0
    for rows in _pages(listing, most + 1):
        kept = rows[: most - count]
        count += len(rows)
        for row in kept:
            values = _values(file_columns(columns), row)
            yield separator + json.dumps(values, cls=DjangoJSONEncoder, ensure_ascii=False)
            separator = ",\n"
    yield f'\n], "is_complete": {json.dumps(count <= most)}}}\n'


def _values(columns: Columns, row: Any) -> dict[str, Any]:
    return {column.file_name: column.value(row) for column in columns if column.value}


def _pages(listing: Listing[Any, Any], most: int) -> Iterator[Sequence[Any]]:
    """Yield the rows of a listing, a page at a time."""
    cursor, count = "", 0
    while count < most:
        page = listing.after(PageRange(cursor, min(MAX_PER_PAGE, most - count)))
        yield page.rows
        count += len(page.rows)
        cursor = page.next
        if not cursor:
            return
