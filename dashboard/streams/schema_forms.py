"""The form of a stream's schema: columns, settings, and inference from a sample."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Final

from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict

from controlplane.errors import Fields, Invalid
from controlplane.records.bodies import Format, format_of_file
from controlplane.topology.schemas.evolution import schema_from
from controlplane.topology.schemas.inference import Inferred
from controlplane.topology.schemas.samples import MAX_BYTES, head_of
from controlplane.wire.schema import (
    DEFAULT_IDLE_AFTER_S,
    DEFAULT_MAX_FUTURE_S,
    DEFAULT_WATERMARK_DELAY_S,
    MAX_COLUMNS,
    StreamSchema,
)
from controlplane.wire.types import type_names
from dashboard.forms import number_or, optional, read

NO_LETTERS: Final = re.compile(r"[^A-Za-z0-9._-]+")
# Before the number of a column: it may have no name yet, or be renamed.
_NUMBERED: Final = "#"
# The number of empty rows for further columns.
BLANK: Final = 3
_DELAY: Final = "the maximum age of a record relative to the newest one"
_FUTURE: Final = "a record further ahead of the clock becomes a dead letter"
_IDLE: Final = "without records for so long, it delays no other stream"
SETTINGS: Final[Mapping[str, tuple[str, str, float]]] = {
    "watermark_delay_s": ("Watermark delay", _DELAY, DEFAULT_WATERMARK_DELAY_S),
    "max_future_s": ("Most ahead of the clock", _FUTURE, DEFAULT_MAX_FUTURE_S),
    "idle_after_s": ("Idle after", _IDLE, DEFAULT_IDLE_AFTER_S),
}
# The choices of a type, the usual ones first.
TYPES: Final = tuple(dict.fromkeys((
    "string", "int64", "float64", "bool", "timestamp(ms)", "timestamp(us)", "date",
    "decimal(12, 2)", *(name for name in type_names() if "<" not in name and "(" not in name),
    "list<string>",
)))  # fmt: skip


@dataclass(frozen=True)
class ColumnRow:
    """A column of the form with its error and notes about the sample."""

    name: str = ""
    type: str = ""
    nullable: bool = True
    fault: str = ""
    note: str = ""
    example: str = ""
    removed: bool = False

    @property
    def is_unlisted(self) -> bool:
        """Return True for a type that is none of the choices of the form."""
        return bool(self.type) and self.type not in TYPES


@dataclass(frozen=True)
class SchemaForm:
    """The context of the form."""

    columns: Sequence[ColumnRow] = ()
    event_time: str = ""
    settings: Sequence[Mapping[str, Any]] = ()
    errors: Fields = field(default_factory=dict)
    records: int = 0
    types: Sequence[str] = TYPES

    @property
    def event_times(self) -> list[tuple[str, str]]:
        """Return the columns that can be the event time: their numbers and titles."""
        rows = enumerate(self.columns, start=1)
        return [(f"{_NUMBERED}{number}", row.name or f"column {number}") for number, row in rows]


def form_of(schema: StreamSchema | None, blank: int = BLANK) -> SchemaForm:
    """Return the form of a schema, None for a new one."""
    rows = [ColumnRow(c.name, c.type, c.nullable) for c in (schema.columns if schema else ())]
    values = {
        name: _number(getattr(schema, name, default)) for name, (_, _, default) in SETTINGS.items()
    }
    event_time = schema.event_time if schema else ""
    return SchemaForm(_pad(rows, blank), event_time, _settings(values, {}))


def _number(seconds: float) -> str:
    """Return a number with all digits, a whole number without a point."""
    return str(float(seconds)).removesuffix(".0")


def form_of_sample(inferred: Inferred) -> SchemaForm:
    """Return the form with the schema inferred from a sample."""
    rows = [
        ColumnRow(
            column.name, column.type, column.nullable,
            inferred.faults.get(f"columns.{column.name}", ""), column.note, column.example,
        )
        for column in inferred.columns
    ]  # fmt: skip
    values = {name: _number(default) for name, (_, _, default) in SETTINGS.items()}
    errors = {
        name: [why] for name, why in inferred.faults.items() if not name.startswith("columns.")
    }
    settings = _settings(values, {})
    return SchemaForm(_pad(rows), inferred.event_time, settings, errors, inferred.records)


def form_of_post(values: QueryDict, errors: Fields | None = None, blank: int = BLANK) -> SchemaForm:
    """Return the submitted form with the errors of each column."""
    messages = dict(errors or {})
    rows = [
        ColumnRow(
            row["name"], row["type"], row["nullable"], " ".join(messages.get(row["path"], ())),
            removed=row["removed"],
        )
        for row in _rows_in(values)
    ]  # fmt: skip
    given = {name: values.get(name, "") for name in SETTINGS}
    left = {name: why for name, why in messages.items() if not name.startswith("columns.")}
    return SchemaForm(_pad(rows, blank), _event_time(values), _settings(given, left), left)


def columns_in(values: QueryDict) -> list[dict[str, Any]]:
    """Return the submitted columns that have a name and are not removed."""
    names = ("name", "type", "nullable")
    return [{name: row[name] for name in names} for row in _rows_in(values) if not row["removed"]]


def _rows_in(values: QueryDict) -> list[dict[str, Any]]:
    """Return the columns in a form; the errors of a column are those of its `path`."""
    rows = [
        {
            "name": (name := values.get(f"name-{number}", "").strip()),
            "path": f"columns.{name}",
            "type": (values.get(f"type-{number}") or values.get(f"other-{number}", "")).strip(),
            "nullable": values.get(f"nullable-{number}") == "1",
            "removed": values.get(f"remove-{number}") == "1",
        }
        for number in values.getlist("column")[: MAX_COLUMNS + BLANK]
    ]
    return [row for row in rows if row["name"]]


def schema_in(values: QueryDict) -> StreamSchema:
    """Return the submitted schema. Raises `Invalid` by field."""
    seconds = number_or("Must be a number of seconds")
    settings = {name: optional(seconds, default) for name, (_, _, default) in SETTINGS.items()}
    given = read(values, **settings)
    columns = columns_in(values)
    return schema_from({"columns": columns, "event_time": _event_time(values), **given})


def _event_time(values: QueryDict) -> str:
    """Return the name of the chosen column, "" for the time of arrival."""
    chosen = values.get("event_time", "").strip()
    if not chosen.startswith(_NUMBERED):
        return chosen
    return values.get(f"name-{chosen.removeprefix(_NUMBERED)}", "").strip() or chosen


@dataclass(frozen=True)
class UploadedSample:
    """The beginning of an uploaded file."""

    file: str
    body: bytes
    kind: Format

    @property
    def stream_name(self) -> str:
        """Return a name for its stream: that of the file, without its ending."""
        return NO_LETTERS.sub("-", PurePath(self.file).stem).strip("-")[:100]


def sample_in(upload: "UploadedFile[Any] | None", named: str) -> UploadedSample:
    """Return the beginning of an uploaded file. Raises `Invalid` (field `sample`)."""
    file, kind = uploaded_file(upload, named, "sample")
    return UploadedSample(file.name or "", head_of(file.read(MAX_BYTES + 1), kind), kind)


def uploaded_file(
    upload: "UploadedFile[Any] | None", named: str, field: str
) -> "tuple[UploadedFile[Any], Format]":
    """Return a file of records and its format: the named one, else by the name of the file.

    Raises `Invalid` (the field) without a file or a format.
    """
    if upload is None:
        raise Invalid({field: ["Choose a file"]})
    kind = Format(named) if named in list(Format) else format_of_file(upload.name or "")
    if kind is None:
        raise Invalid({field: ["Its name has no known extension: choose a format"]})
    return upload, kind


def _pad(rows: Sequence[ColumnRow], blank: int = BLANK) -> list[ColumnRow]:
    return [*rows, *(ColumnRow() for _ in range(blank))]


def _settings(values: Mapping[str, str], errors: Fields) -> list[dict[str, Any]]:
    return [
        {
            "name": name, "label": label, "hint": hint,
            "value": values.get(name, ""), "faults": errors.get(name, ()),
        }
        for name, (label, hint, _) in SETTINGS.items()
    ]  # fmt: skip
