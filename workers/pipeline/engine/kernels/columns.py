"""Columns of records as expressions see them: of a kind, whatever the type in the log is."""

from collections.abc import Mapping
from typing import Any

from controlplane.wire.aggregates.layout import ARROW
from controlplane.wire.language.tree import Column, Kind
from controlplane.wire.records.record_codec import struct_field, whole_ms
from workers.pipeline.engine.arrow import pa
from workers.pipeline.engine.kernels.types import floats_of_decimals


def column_of(columns: Mapping[str, Any], wanted: Column, records: int) -> Any:
    """Return a column, or a field of a struct by `column.field`, as an array of its kind.

    A column that records of an older schema do not have is null. Raises `ArrowInvalid` for a value
    that does not fit into the kind.
    """
    result = _named(columns, wanted.name)
    if result is None:
        return pa.nulls(records, ARROW[wanted.kind])
    return as_kind(result, wanted.kind)


def _named(columns: Mapping[str, Any], name: str) -> Any:
    if name in columns:
        return columns[name]
    whole, *path = name.split(".")
    return struct_field(columns[whole], path) if whole in columns else None


def as_kind(column: Any, kind: Kind) -> Any:
    """Return a column of the log as an array of a kind; times are cut to whole milliseconds."""
    wanted = ARROW[kind]
    if column.type == wanted:
        return column
    if pa.types.is_timestamp(column.type) and column.type.unit in ("us", "ns"):
        return whole_ms(column).cast(wanted)
    if kind is Kind.FLOAT and pa.types.is_decimal(column.type):
        return floats_of_decimals(column.cast(ARROW[Kind.DECIMAL]))
    # Whole numbers beyond 2 ** 53 become the nearest float.
    return column.cast(wanted, safe=kind is not Kind.FLOAT)
