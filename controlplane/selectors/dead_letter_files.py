"""Dead letters as lines of JSON and as CSV."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from controlplane.selectors.dead_letters import DeadLetterRow


def ndjson_lines(rows: Iterable[DeadLetterRow]) -> Iterator[str]:
    """Yield an object a line."""
    for row in rows:
        yield f"{json.dumps(row.to_json(), ensure_ascii=False)}\n"


def csv_lines(rows: Iterable[DeadLetterRow]) -> Iterator[str]:
    """Yield a header and a line for each, as a spreadsheet may open them."""
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
