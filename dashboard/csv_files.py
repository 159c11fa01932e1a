"""Tables as CSV files, safe for spreadsheets."""

import csv
from collections.abc import Iterable, Sequence
from typing import Any

from django.http import HttpResponse


def csv_file(name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> HttpResponse:
    """Return a response with a table as a file of this name."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    answer = HttpResponse(content_type="text/csv; charset=utf-8", headers=headers)
    writer = csv.writer(answer)
    writer.writerow([_cell(value) for value in header])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return answer


def _cell(value: Any) -> Any:
    """Return the value, escaped if a spreadsheet would read its text as a formula."""
    if not isinstance(value, str):
        return "" if value is None else value
    return f"'{value}" if value[:1] in ("=", "+", "-", "@") else value
