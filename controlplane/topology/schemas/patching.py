"""Schemas of streams from JSON values, and with columns added, altered or removed; no database."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from controlplane.errors import Fields, Invalid
from controlplane.topology.schemas.evolution import EVENT_TIME, SETTINGS
from controlplane.wire.schema import BadSchema, ColumnSpec, StreamSchema


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
