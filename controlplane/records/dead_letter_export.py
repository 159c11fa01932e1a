"""Export of dead letters as NDJSON and CSV."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from django.http import StreamingHttpResponse

from controlplane.models import Cluster
from controlplane.records.dead_letter_list import DeadLetterFilters, DeadLetterRow, every_row

_NDJSON: Final = "application/x-ndjson"


def exported(cluster: Cluster, filters: DeadLetterFilters, form: str) -> StreamingHttpResponse:
    """Return a streamed response with dead letters as `ndjson` or `csv`."""
    rows = every_row(cluster, filters)
    csv_form = form == "csv"
    lines, kind = (csv_lines(rows), "text/csv") if csv_form else (ndjson_lines(rows), _NDJSON)
    response = StreamingHttpResponse(lines, content_type=f"{kind}; charset=utf-8")
    name = f"{cluster.slug}-dead-letters.{form}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def ndjson_lines(rows: Iterable[DeadLetterRow]) -> Iterator[str]:
    """Yield a JSON object per line."""
    for row in rows:
        yield f"{json.dumps(row.to_json(), ensure_ascii=False)}\n"


def csv_lines(rows: Iterable[DeadLetterRow]) -> Iterator[str]:
    """Yield a header and a line per dead letter, safe for spreadsheets."""
    yield _line(DeadLetterRow.FIELDS)
    for row in rows:
        yield _line([_cell(value) for value in row.to_json().values()])


def _line(cells: Sequence[Any]) -> str:
    sink = io.StringIO()
    csv.writer(sink).writerow(cells)
    return sink.getvalue()


def _cell(value: Any) -> Any:
    # A spreadsheet would take such text for a formula.
    return f"'{value}" if isinstance(value, str) and value[:1] in {"=", "+", "-", "@"} else value
