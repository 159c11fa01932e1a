"""Samples of the input on which a query failed, as bounded JSON."""

import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from workers.pipeline.engine.arrow import pa
from workers.pipeline.engine.evaluation.records import Records

# Characters of a whole sample, and of one value in it.
LONGEST: Final = 2_000
_LONGEST_VALUE: Final = 120
_ROWS: Final = 5
_COLUMNS: Final = 40


def sample_of(rows: Any) -> str:
    """Return the first rows of a table as a JSON array of at most 2,000 characters."""
    names = rows.column_names[:_COLUMNS]
    result: list[str] = []
    left = LONGEST - 2
    for row in rows.select(names).slice(0, _ROWS).to_pylist():
        text = _row(row, LONGEST - 2 if not result else left)
        if len(text) > left:
            break
        result.append(text)
        left -= len(text) + 2
    return f"[{', '.join(result)}]"


def _row(row: Mapping[str, Any], longest: int) -> str:
    """Return a row as JSON, without columns that do not fit."""
    text = ""
    for name, value in row.items():
        pair = f"{json.dumps(name)}: {json.dumps(_plain(value))}"
        if len(text) + len(pair) + 4 <= longest:
            text += f", {pair}" if text else pair
    return f"{{{text}}}"


def _plain(value: Any) -> Any:
    """Return a value for JSON; a value that is long or has no JSON type becomes short text."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def sample_of_records(records: Records, streams: frozenset[int]) -> str:
    """Return the first records of these streams with the id of their stream."""
    selected = np.flatnonzero(np.isin(records.stream, list(streams)))[:_ROWS]
    return sample_of(records.to_table(selected))


def sample_of_query(query: int, *tables: Any) -> str:
    """Return the first rows of a query in the first of these tables that has some."""
    for rows in tables:
        selected = np.flatnonzero(np.asarray(rows["query"]) == query)[:_ROWS]
        if len(selected):
            return sample_of(rows.take(pa.array(selected)))
    return ""
