"""The formats of a body with records, by content type."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


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


def content_type_of(kind: Format) -> str:
    """Return the content type that Weir names for a format."""
    return next(name for name, candidate in CONTENT_TYPES.items() if candidate is kind)


def format_of_file(name: str) -> Format | None:
    """Return the format that a file's name ends in, None for another ending."""
    lowered = name.lower()
    return next((kind for end, kind in _SUFFIXES.items() if lowered.endswith(end)), None)
