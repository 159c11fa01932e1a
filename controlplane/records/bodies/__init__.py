"""Bodies of records, by content type, as records of a stream's schema with faults by record."""

from collections.abc import Callable, Mapping
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from controlplane.errors import Invalid
from controlplane.records.bodies.conformance import Conformed
from controlplane.records.bodies.formats import CONTENT_TYPES, Format, content_type_of
from controlplane.records.bodies.rows import of_json, of_lines, of_rows
from controlplane.records.bodies.tables import (
    of_arrow,
    of_csv,
    of_parquet,
    of_table,
)
from controlplane.wire.schema import StreamSchema

__all__ = [
    "CONTENT_TYPES",
    "Conformed",
    "Format",
    "check_zone",
    "conform",
    "content_type_of",
    "of_rows",
    "of_table",
]

_READERS: Final[Mapping[Format, Callable[[bytes, StreamSchema, str], Conformed]]] = {
    Format.JSON: of_json,
    Format.NDJSON: of_lines,
    Format.CSV: of_csv,
    Format.ARROW: of_arrow,
    Format.PARQUET: of_parquet,
}


def conform(body: bytes, kind: Format, schema: StreamSchema, zone: str = "") -> Conformed:
    """Return the records of a body that conform to a schema, and the faults of the others.

    `zone`: the IANA time zone of times that name none. Raises `BadBody` if the body is not of the
    format, and `Invalid` if it has no record, too many, or columns that do not fit at all.
    """
    check_zone(zone)
    return _READERS[kind](body, schema, zone)


def check_zone(zone: str) -> None:
    """Raise `Invalid` unless the text is an IANA time zone or empty."""
    if not zone:
        return
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Invalid({"zone": ["Is no IANA time zone, as Europe/Berlin"]}) from None
