"""Tables as CSV files."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from django.http import HttpResponse

from controlplane.formats.csv_lines import csv_lines


def csv_file(name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> HttpResponse:
    """Return a response with a table as a file of this name."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    lines = csv_lines(chain([header], rows))
    return HttpResponse(lines, content_type="text/csv; charset=utf-8", headers=headers)
