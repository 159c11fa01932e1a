"""Conversion of JSON and NDJSON bodies to columns of a stream's schema."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from algorithms.strict_json import check_bounds
from controlplane.errors import BadBody, Fields, Invalid
from controlplane.records.bodies.conformance import (
    Conformed,
    check_count,
    conform_columns,
    convert_columns,
    unknown_columns,
)
from controlplane.records.bodies.json_values import json_reader
from controlplane.wire.records.casts import Rules
from controlplane.wire.records.conversion import Converted
from controlplane.wire.records.values import convert_values
from controlplane.wire.schema import StreamSchema

NOT_AN_OBJECT: Final = "Must be an object"
_LIST: Final = "Must be a list of objects"
_read: Final = json_reader()


def of_json(body: bytes, schema: StreamSchema, zone: str) -> Conformed:
    """Return the records of `{"records": [{…}, …]}`, or of the list alone.

    Raises `BadBody` for what is no JSON, and `Invalid`.
    """
    try:
        check_bounds(body)
        value = _read(body.decode(json.detect_encoding(body), "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise BadBody(f"The body is no JSON: {error}") from error
    rows = value.get("records") if isinstance(value, dict) else value
    if not isinstance(rows, list):
        raise Invalid({"records": [_LIST]})
    check_count(len(rows))
    return of_rows(rows, schema, zone)


def of_lines(body: bytes, schema: StreamSchema, zone: str) -> Conformed:
    """Return the records of NDJSON; a line that is no JSON within bounds is a fault of its record.

    Raises `Invalid`, and `BadBody` for text that is not UTF-8.
    """
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadBody(f"The body is not UTF-8: {error}") from error
    # str.splitlines would divide texts at other characters, too.
    lines = [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]
    check_count(len(lines))
    rows: list[Any] = []
    faults: dict[int, Fields] = {}
    for index, line in enumerate(lines):
        try:
            check_bounds(line.encode())
            rows.append(_read(line))
        except (ValueError, RecursionError) as error:
            rows.append({})
            faults[index] = {"": [f"Is no JSON: {error}"]}
    of_lines = of_rows(rows, schema, zone, faults)
    return Conformed(of_lines.batch, of_lines.faults, of_lines.count, lines.__getitem__)


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
    rules = Rules(textual=textual, zone=zone)

    def column(field: Any) -> Converted:
        return convert_values([row.get(field.name) for row in objects], field.type, rules)

    columns = convert_columns(schema, column)
    done = conform_columns(schema, columns, reasons, len(rows), rows.__getitem__)
    # A record that could not be read lacks every column: one fault is enough.
    for index in unreadable:
        reasons[index] = {"": reasons[index][""]}
    return done
