"""Which changes of a stream's schema keep the records in the log, and what queries read, right.

Pure: schemas and JSON values in, changes and refusals out. Whether queries are affected is another
question (`readers`), asked of each change separately.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from controlplane.errors import Fields, Invalid
from controlplane.wire.schema import BadSchema, ColumnSpec, StreamSchema
from controlplane.wire.types import arrow_type

# The settings of a schema besides its columns, and whether they may change.
SETTINGS: Final = ("watermark_delay_s", "max_future_s", "idle_after_s")
EVENT_TIME: Final = "event_time"
# A float64 holds every whole number of so many bits.
_EXACT_BITS: Final = 32
_UNITS: Final = ("s", "ms", "us")


@dataclass(frozen=True)
class SchemaChange:
    """One difference between two schemas.

    `name`: of the column or the setting. `action`: added, removed, retyped, made nullable or set.
    `detail`: what from, and what to. `refusal`: why it cannot be, empty if it may.
    """

    name: str
    action: str
    detail: str = ""
    refusal: str = ""


def changes_between(
    old: StreamSchema, new: StreamSchema, retired: Mapping[str, str] | None = None
) -> list[SchemaChange]:
    """Return the differences of two schemas, in the order of their columns.

    `retired`: the last types of columns that were removed before. Records in the log may have
    them, so that a column of such a name must be able to read these.
    """
    before = {column.name: column for column in old.columns}
    after = {column.name: column for column in new.columns}
    changes: list[SchemaChange] = []
    for name, column in before.items():
        if name not in after:
            refusal = "it is the event-time column" if name == old.event_time else ""
            changes.append(SchemaChange(name, "removed", column.type, refusal))
        elif after[name] != column:
            changes += _altered(column, after[name])
    for name, column in after.items():
        if name not in before:
            changes.append(_added(column, (retired or {}).get(name)))
    return changes + _settings(old, new)


def applied(old: StreamSchema, new: StreamSchema, change: SchemaChange) -> StreamSchema | None:
    """Return a schema with one of its changes to a new one, None if no column would be left."""
    if change.action == "set":
        return replace(old, **{change.name: getattr(new, change.name)})
    columns = {column.name: column for column in old.columns}
    wanted = next((column for column in new.columns if column.name == change.name), None)
    if wanted is None:
        return without_column(old, change.name)
    return _with_columns(old, columns | {change.name: wanted})


def without_column(schema: StreamSchema, name: str) -> StreamSchema | None:
    """Return a schema without a column, None if it has no other."""
    columns = {column.name: column for column in schema.columns if column.name != name}
    return _with_columns(schema, columns) if columns else None


def _with_columns(schema: StreamSchema, columns: Mapping[str, ColumnSpec]) -> StreamSchema:
    """Return a schema with other columns; without event time if these do not allow it."""
    column = columns.get(schema.event_time)
    fits = column is not None and column.type.startswith("timestamp") and not column.nullable
    event_time = schema.event_time if fits else ""
    return replace(schema, columns=tuple(columns.values()), event_time=event_time)


def retired_after(
    old: StreamSchema, new: StreamSchema, retired: Mapping[str, str]
) -> dict[str, str]:
    """Return the types of the columns that are gone once a change was made, by name."""
    present = {column.name for column in new.columns}
    removed = {column.name: column.type for column in old.columns if column.name not in present}
    return {name: kind for name, kind in {**retired, **removed}.items() if name not in present}


def widens(old: Any, new: Any) -> bool:
    """Return True if every value of an Arrow type is one of the other type, unchanged."""
    if old.equals(new):
        return True
    return any(is_family(old) and holds(old, new) for is_family, holds in _FAMILIES)


def _widens_fields(old: Any, new: Any) -> bool:
    if not pa.types.is_struct(new) or [field.name for field in old] != [
        column.name for column in new
    ]:
        return False
    return all(widens(field.type, other.type) for field, other in zip(old, new, strict=True))


def _widens_integer(old: Any, new: Any) -> bool:
    signed = pa.types.is_signed_integer(old)
    if pa.types.is_floating(new):
        return bool(new.bit_width > _EXACT_BITS >= old.bit_width)
    if not pa.types.is_integer(new):
        return False
    if pa.types.is_signed_integer(new) == signed:
        return bool(new.bit_width > old.bit_width)
    return bool(not signed and new.bit_width > old.bit_width)


def _widens_decimal(old: Any, new: Any) -> bool:
    if not pa.types.is_decimal(new):
        return False
    more_before = new.precision - new.scale >= old.precision - old.scale
    return bool(more_before and new.scale >= old.scale)


def _widens_time(old: Any, new: Any) -> bool:
    # Nanoseconds end in 2262, so that they are finer but do not hold every time.
    units = (old.unit, new.unit)
    known = pa.types.is_timestamp(new) and all(unit in _UNITS for unit in units)
    return bool(known and _UNITS.index(old.unit) <= _UNITS.index(new.unit))


_FAMILIES: Final = (
    (pa.types.is_list, lambda a, b: pa.types.is_list(b) and widens(a.value_type, b.value_type)),
    (pa.types.is_struct, _widens_fields),
    (pa.types.is_integer, _widens_integer),
    (pa.types.is_floating, lambda a, b: pa.types.is_floating(b) and b.bit_width > a.bit_width),
    (pa.types.is_decimal, _widens_decimal),
    (pa.types.is_timestamp, _widens_time),
)


def _added(column: ColumnSpec, retired: str | None) -> SchemaChange:
    refusal = ""
    if not column.nullable:
        refusal = "records that are there have no value of it: a new column must be nullable"
    elif retired is not None and not widens(arrow_type(retired), arrow_type(column.type)):
        refusal = (
            f"there was a column of this name of type {retired}, which records in the log may "
            "have: give it that type, or another name"
        )
    return SchemaChange(column.name, "added", column.type, refusal)


def _altered(old: ColumnSpec, new: ColumnSpec) -> list[SchemaChange]:
    changes = []
    if old.type != new.type:
        fits = widens(arrow_type(old.type), arrow_type(new.type))
        refusal = "" if fits else f"{new.type} does not hold every {old.type}"
        changes.append(SchemaChange(old.name, "retyped", f"{old.type} to {new.type}", refusal))
    if old.nullable and not new.nullable:
        refusal = "records that are there may have null in it"
        changes.append(SchemaChange(old.name, "made not nullable", "", refusal))
    elif new.nullable and not old.nullable:
        changes.append(SchemaChange(old.name, "made nullable"))
    return changes


def _settings(old: StreamSchema, new: StreamSchema) -> list[SchemaChange]:
    changes = []
    if old.event_time != new.event_time:
        detail = f"{old.event_time or 'time of arrival'} to {new.event_time or 'time of arrival'}"
        refusal = "the event time of a stream stays as it is: declare another stream"
        changes.append(SchemaChange(EVENT_TIME, "set", detail, refusal))
    for name in SETTINGS:
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            changes.append(SchemaChange(name, "set", f"{before:g} s to {after:g} s"))
    return changes


def schema_from(row: Mapping[str, Any]) -> StreamSchema:
    """Return the schema that JSON values describe. Raises `Invalid`, by field."""
    try:
        return StreamSchema.from_json(row)
    except BadSchema as bad:
        raise Invalid(fields_of(bad)) from None


def fields_of(bad: BadSchema, prefix: str = "") -> Fields:
    """Return what is wrong with a schema as messages per field."""
    return {f"{prefix}{name}": [why[:1].upper() + why[1:]] for name, why in bad.fields.items()}


def patched(
    old: StreamSchema | None,
    columns: Sequence[ColumnSpec],
    removed: Sequence[str],
    settings: Mapping[str, Any],
) -> StreamSchema:
    """Return a schema with columns added, altered or removed, and settings set.

    Raises `Invalid`.
    """
    known = {column.name: column for column in (old.columns if old else ())}
    unknown = {f"remove.{name[:100]}": ["There is no such column"]
               for name in removed if name not in known}  # fmt: skip
    unknown |= {name: ["Cannot be set"] for name in settings if name not in (EVENT_TIME, *SETTINGS)}
    if unknown:
        raise Invalid(unknown)
    left = {name: column for name, column in known.items() if name not in removed}
    wanted = tuple((left | {column.name: column for column in columns}).values())
    try:
        if old is None:
            return StreamSchema(wanted, **settings)
        return replace(old, columns=wanted, **settings)
    except BadSchema as bad:
        raise Invalid(fields_of(bad)) from None
