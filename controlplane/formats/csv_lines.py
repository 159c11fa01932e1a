"""Lines of CSV, safe for spreadsheets: no cell with the text of a user is a formula."""

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from django.core.serializers.json import DjangoJSONEncoder

# A spreadsheet may take a text for a formula that has one of these signs, or its full-width form,
# after blanks, quotation marks and characters without a width; a tab or a line end may begin
# another cell.
_SIGNS: Final = r"=+\-@\uff1d\uff0b\uff0d\uff20\u2212\ufe62\ufe63\ufe66\ufe6b"
_FORMULA: Final = re.compile(rf"[\t\r\n]|[\s\x00-\x20'\"`\u200b-\u200f\u2060\ufeff]*[{_SIGNS}]")
_NUMBER: Final = re.compile(r"[+-]?\d{1,40}(\.\d{1,40})?([eE][+-]?\d{1,4})?", re.ASCII)


def csv_lines(rows: Iterable[Sequence[Any]]) -> str:
    """Return the lines of rows; dates are ISO 8601, objects JSON, None is empty."""
    sink = io.StringIO()
    csv.writer(sink).writerows([csv_cell(value) for value in row] for row in rows)
    return sink.getvalue()


def csv_cell(value: Any) -> Any:
    """Return a number as it is, else the text of a value, with `'` before a formula."""
    if value is None:
        return ""
    if isinstance(value, int | float | Decimal):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict | list):
        value = json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False)
    text = str(value)
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text
