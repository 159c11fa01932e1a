"""Bodies of records, by content type, as records of a stream's schema with faults by record."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from controlplane.errors import Invalid
from controlplane.records.bodies.conformance import Conformed
from controlplane.records.bodies.rows import of_json, of_lines
from controlplane.records.bodies.tables import of_arrow, of_csv, of_parquet
from controlplane.wire.schema import StreamSchema


class Format(StrEnum):
    """A format of records."""

    JSON = "json"
    NDJSON = "ndjson"
    CSV = "csv"
    ARROW = "arrow"
    PARQUET = "parquet"


# The first content type of a format is the one that Weir names.
CONTENT_TYPES: Final[Mapping[str, Format]] = {
    "application/json": Format.JSON,
    "application/x-ndjson": Format.NDJSON,
    "application/ndjson": Format.NDJSON,
    "application/jsonl": Format.NDJSON,
    "text/csv": Format.CSV,
    "application/vnd.apache.arrow.stream": Format.ARROW,
    "application/vnd.apache.parquet": Format.PARQUET,
    "application/x-parquet": Format.PARQUET,
}
_SUFFIXES: Final[Mapping[str, Format]] = {
    ".json": Format.JSON,
    ".ndjson": Format.NDJSON,
    ".jsonl": Format.NDJSON,
    ".csv": Format.CSV,
    ".arrow": Format.ARROW,
    ".arrows": Format.ARROW,
    ".parquet": Format.PARQUET,
}


_READERS: Final[Mapping[Format, Callable[[bytes, StreamSchema, str], Conformed]]] = {
    Format.JSON: of_json,
    Format.NDJSON: of_lines,
    Format.CSV: of_csv,
    Format.ARROW: of_arrow,
    Format.PARQUET: of_parquet,
}


def content_type_of(kind: Format) -> str:
    """Return the content type that Weir names for a format."""
    return next(name for name, candidate in CONTENT_TYPES.items() if candidate is kind)


def format_of_file(name: str) -> Format | None:
    """Return the format that a file's name ends in, None for another ending."""
    lowered = name.lower()
    return next((kind for end, kind in _SUFFIXES.items() if lowered.endswith(end)), None)


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
        raise Invalid({"zone": ["Is not an IANA time zone, as Europe/Berlin"]}) from None
