"""An example record of a stream, for its first request."""

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from controlplane.wire.language.tree import Kind
from controlplane.wire.schema import StreamSchema
from controlplane.wire.types import arrow_type, kind_of

_VALUES: Final[Mapping[Kind, Any]] = {
    Kind.BOOL: True,
    Kind.INT: 1,
    Kind.FLOAT: 0.5,
    Kind.TEXT: "text",
}


def example_record(schema: StreamSchema, now: datetime) -> dict[str, Any]:
    """Return a record that conforms to a schema, as JSON values; its times are now."""
    return {column.name: _value(arrow_type(column.type), now) for column in schema.columns}


def _value(arrow: Any, now: datetime) -> Any:
    if pa.types.is_struct(arrow):
        return {part.name: _value(part.type, now) for part in arrow}
    if pa.types.is_list(arrow):
        return [_value(arrow.value_type, now)]
    match kind_of(arrow):
        case Kind.TIME:
            return now.isoformat(timespec="seconds").replace("+00:00", "Z")
        case Kind.DATE:
            return now.date().isoformat()
        case Kind.DECIMAL:
            return _decimal(arrow.precision, arrow.scale) if pa.types.is_decimal(arrow) else 1
        case kind:
            return _VALUES[kind] if kind else base64.b64encode(b"bytes").decode()


def _decimal(precision: int, scale: int) -> str:
    """Return 1, or the least positive number of a type without a digit before the point."""
    return f"0.{'1'.zfill(scale)}" if scale == precision else "1"
