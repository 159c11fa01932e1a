"""Columns of records as expressions see them: of a kind, whatever the type in the log is."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from controlplane.wire.aggregates.layout import ARROW
from controlplane.wire.language.tree import Column, Kind
from workers.pipeline.engine.arrow import pa, pc
from workers.pipeline.engine.kernels.units import floats_of_decimals

# Units of timestamps in a millisecond.
_PER_MS: Final = {"us": 1_000, "ns": 1_000_000}


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
    whole, _, path = name.partition(".")
    if not path or whole not in columns:
        return None
    return _field(columns[whole], path.split("."))


def _field(column: Any, path: list[str]) -> Any:
    for name in path:
        if not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
            return None
        column = pc.struct_field(column, name)
    return column


def as_kind(column: Any, kind: Kind) -> Any:
    """Return a column of the log as an array of a kind; times are cut to whole milliseconds."""
    wanted = ARROW[kind]
    if column.type == wanted:
        return column
    if pa.types.is_timestamp(column.type) and column.type.unit in _PER_MS:
        return _milliseconds(column).cast(wanted)
    if kind is Kind.FLOAT and pa.types.is_decimal(column.type):
        return floats_of_decimals(column.cast(ARROW[Kind.DECIMAL]))
    # Whole numbers beyond 2 ** 53 become the nearest float.
    return column.cast(wanted, safe=kind is not Kind.FLOAT)


def _milliseconds(column: Any) -> Any:
    per_ms = _PER_MS[column.type.unit]
    ticks = np.asarray(column.cast(pa.int64()).fill_null(0))
    return pa.array(ticks // per_ms, mask=np.asarray(column.is_null()))
