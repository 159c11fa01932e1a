"""Conversion of JSON and NDJSON bodies to columns of a stream's schema."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from algorithms.strict_json import BadJson, check_bounds, object_of
from controlplane.errors import BadBody, Fields, Invalid
from controlplane.records.bodies.conformance import (
    Conformed,
    Warned,
    check_count,
    conform_columns,
    convert_columns,
    early_numbers,
    unknown_columns,
)
from controlplane.records.bodies.csv_text import check_utf8
from controlplane.records.bodies.json_values import json_reader, no_constant
from controlplane.wire.records.casts import CastRules
from controlplane.wire.records.conversion import Converted
from controlplane.wire.records.values import convert_values
from controlplane.wire.schema import StreamSchema

NOT_AN_OBJECT: Final = "Must be an object"
_LIST: Final = "Must be a list of objects"
_NO_FIELD: Final = "Is not a field of the body, which has: records"
_NAME: Final = 100
# Linear: possessive. Group 1: what is not JSON, outside of a text and within.
_CONSTANT: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|(NaN|-?Infinity)', re.DOTALL)
_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*+(\\u0000)")
Read = Callable[[str], Any]
# Numbers keep their digits; or they are those of Python.
EXACT: Final = json_reader()
PLAIN: Final = partial(json.loads, object_pairs_hook=object_of, parse_constant=no_constant)


def of_json(body: bytes, schema: StreamSchema, zone: str) -> Conformed:
    """Return the records of `{"records": [{…}, …]}`, or of the list alone.

    Raises `BadBody` for what is not JSON, and `Invalid`.
    """
    rows = read_rows(body)
    check_count(len(rows))
    return of_rows(rows, schema, zone)


def read_rows(body: bytes, read: Read = EXACT) -> list[Any]:
    """Return the list of a JSON body, or that of its only field `records`.

    Raises `BadBody` and `Invalid`.
    """
    check_utf8(body)
    text = body.decode("utf-8-sig")
    try:
        value = read_value(text, read)
    except (ValueError, RecursionError) as error:
        raise _bad_json(text, error) from error
    rows = value.get("records") if isinstance(value, dict) else value
    if not isinstance(rows, list):
        raise Invalid({"records": [_LIST]})
    if isinstance(value, dict) and len(value) > 1:
        raise Invalid({str(name)[:_NAME]: [_NO_FIELD] for name in value if name != "records"})
    return rows


def read_value(text: str, read: Read = EXACT) -> Any:
    """Return the value of JSON text within bounds. Raises `ValueError`, `RecursionError`."""
    check_bounds(text.encode())
    if r"\u0000" in text and _NUL.search(text):
        raise BadJson("character", r"\u0000 (NUL) is not a character of a text")
    return read(text)


def read_lines(body: bytes) -> list[str]:
    """Return the lines of NDJSON that are not blank. Raises `BadBody` and `Invalid`."""
    check_utf8(body)
    # str.splitlines would divide texts at other characters, too.
    lines = body.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    return [line for line in lines if line.strip(" \t\r")]


def of_lines(body: bytes, schema: StreamSchema, zone: str) -> Conformed:
    """Return the records of NDJSON; a line that is not JSON within bounds is a fault of its record.

    Raises `Invalid`, and `BadBody` for text that is not UTF-8.
    """
    lines = read_lines(body)
    check_count(len(lines))
    rows: list[Any] = []
    faults: dict[int, Fields] = {}
    for index, line in enumerate(lines):
        try:
            rows.append(read_value(line))
        except (ValueError, RecursionError) as error:
            rows.append({})
            faults[index] = {"": [f"Is not JSON: {error}"]}
    return replace(of_rows(rows, schema, zone, faults), record_at=lines.__getitem__)


def of_rows(
    rows: Sequence[Any],
    schema: StreamSchema,
    zone: str = "",
    faults: dict[int, Fields] | None = None,
    *,
    textual: bool = False,
) -> Conformed:
    """Return JSON values as records.

    `faults`: of rows that could not be read, which are empty. `textual`: numbers may be text.
    """
    reasons = dict(faults or {})
    objects: Sequence[Mapping[str, Any]] = rows
    if set(map(type, rows)) != {dict}:
        objects = [row if isinstance(row, dict) else {} for row in rows]
        bad = [index for index, row in enumerate(rows) if not isinstance(row, dict)]
        reasons |= {index: {"": [NOT_AN_OBJECT]} for index in bad}
    unreadable = set(reasons)
    if unknown_columns(set().union(*objects), schema):
        for index, row in enumerate(objects):
            if extra := unknown_columns(row, schema):
                reasons[index] = extra
    rules = CastRules(textual=textual, zone=zone)
    warnings: list[Warned] = []

    def column(field: Any) -> Converted:
        values = [row.get(field.name) for row in objects]
        converted = convert_values(values, field.type, rules)
        warnings.extend(early_numbers(field, converted.array, values.__getitem__))
        return converted

    columns = convert_columns(schema, column)
    done = conform_columns(schema, columns, reasons, len(rows), rows.__getitem__, warnings)
    # A record that could not be read lacks every column: one fault is enough.
    for index in unreadable:
        reasons[index] = {"": reasons[index][""]}
    return done


def _bad_json(text: str, error: Exception) -> BadBody:
    """Return the refusal of a body with the place, where there is one."""
    code, place = getattr(error, "code", "syntax"), getattr(error, "pos", -1)
    sign = {"number": _CONSTANT, "character": _NUL}.get(code)
    if sign is not None and (match := next(filter(lambda m: m[1], sign.finditer(text)), None)):
        place = match.start(1)
    line, column = text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, max(place, 0))
    where = "" if place < 0 or isinstance(error, json.JSONDecodeError) else (
        f" (line {line}, column {column})")  # fmt: skip
    data = {"fault": code, "line": line if place >= 0 else 0, "column": max(column, 0)}
    return BadBody(f"The body is not JSON: {error}{where}", "bad_json", data)
