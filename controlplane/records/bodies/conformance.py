"""Records of a body that conform to the schema of a stream, and the faults of the others."""

import json
import math
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from controlplane.errors import Fields, Invalid
from controlplane.wire.records.conversion import MAX_FAULTS, Converted, TooManyFaults
from controlplane.wire.records.numbers import NumberText, pc, scaled
from controlplane.wire.records.record_codec import MAX_RECORDS
from controlplane.wire.schema import StreamSchema

# Faults in an answer, at most.
MAX_SHOWN: Final = 20
MISSING: Final = "Is missing"
TWICE: Final = "Is there twice"
NO_COLUMN: Final = "There is no such column"
_NAME: Final = 100
# No record of today is so old: the number was of another unit.
_EARLY_S: Final = 157_766_400
_PER_SECOND: Final = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True)
class Warned:
    """What a person should know about records that fit: `code` is stable."""

    code: str
    column: str
    text: str


@dataclass(frozen=True)
class Conformed:
    """The records of a body.

    `batch`: those that fit, in the schema of the stream and in their order. `faults`: what is
    wrong with the others, by their index in the body. `count`: how many records the body has.
    `record_at`: returns a record of the body by its index, as JSON values or as text.
    `warnings`: about the others.
    """

    batch: Any
    faults: Mapping[int, Fields]
    count: int
    record_at: Callable[[int], Any]
    warnings: Sequence[Warned] = ()

    def require_few(self, most: int) -> None:
        """Raise `Invalid` if more records than can be stored as dead letters are faulty."""
        if len(self.faults) > most:
            text = f"{len(self.faults):,} of {self.count:,} records are not valid"
            advice = f"at most {most:,} of a request become dead letters"
            raise Invalid({"records": [f"{text}, and {advice}: nothing was appended"]})

    def require_all(self) -> None:
        """Raise `Invalid` with the number of faulty records and the first of them, if any."""
        if self.faults:
            first = dict(sorted(self.faults.items())[:MAX_SHOWN])
            summary = f"{len(self.faults):,} of {self.count:,} records are not valid"
            raise Invalid({"records": [f"{summary}, nothing was appended"]}, first)

    def faulty(self) -> list[tuple[int, str, str]]:
        """Return (index, reason, record as JSON text) of each faulty record, in their order."""
        return [
            (index, reason_of(fields), to_text(self.record_at(index)))
            for index, fields in sorted(self.faults.items())
        ]


def convert_columns(
    schema: StreamSchema, convert: Callable[[Any], Converted]
) -> dict[str, Converted]:
    """Return every column of a schema; `convert` returns that of an Arrow field.

    Raises `Invalid` for a column with more than `MAX_FAULTS` faults.
    """
    columns = {}
    for field in schema.arrow:
        try:
            columns[field.name] = convert(field)
        except TooManyFaults as many:
            first = list(many.faults.items())[:MAX_SHOWN]
            rows = {index: {field.name: [why]} for index, why in first}
            why = f"More than {MAX_FAULTS:,} records are not valid, nothing was appended"
            raise Invalid({"records": [why], field.name: [str(many)]}, rows) from None
    return columns


def conform_columns(
    schema: StreamSchema,
    columns: Mapping[str, Converted],
    faults: dict[int, Fields],
    count: int,
    record_at: Callable[[int], Any],
    warnings: Sequence[Warned] = (),
) -> Conformed:
    """Return the records of converted columns, and add their faults.

    `columns`: of every column of the schema. `faults`: known before, by index.
    """
    for spec in schema.columns:
        column = columns[spec.name]
        for index, why in column.faults.items():
            faults.setdefault(index, {})[spec.name] = [why]
        if not spec.nullable:
            _add_missing(spec.name, column, faults)
    if schema.event_time:
        _add_early(schema.event_time, columns[schema.event_time].array, faults)
    arrays = [columns[field.name].array for field in schema.arrow]
    batch = _without(arrays, schema.arrow, faults)
    return Conformed(batch, faults, count, record_at, warnings)


def early_numbers(field: Any, times: Any, value_at: Callable[[int], Any]) -> list[Warned]:
    """Return a warning if numbers became times before 1975, as seconds do.

    `value_at`: the value of the body at a place: a number, the text of one in CSV, or another.
    """
    if not pa.types.is_timestamp(field.type):
        return []
    early = pc.less(times.cast(pa.int64()), _EARLY_S * _PER_SECOND[field.type.unit])
    if not pc.any(early).as_py():
        return []
    # Text with a date names its year.
    values = [(place, value) for place in pc.indices_nonzero(early).to_pylist()
              if not isinstance(value := value_at(place), str)
              or scaled(value, 0) is not None]  # fmt: skip
    if not values:
        return []
    place, value = values[0]
    text = (
        f"{len(values):,} of {len(times):,} records are before 1975; the first number, {value}, is"
        f" {str(times[place].cast(pa.timestamp('s', 'UTC'), safe=False))[:10]}. Numbers are"
        f" milliseconds since 1970: if these are seconds, multiply them by 1,000"
    )
    return [Warned("before_1975", field.name, text)]


def _without(arrays: Sequence[Any], schema: Any, faults: Mapping[int, Fields]) -> Any:
    """Return the batch of the records without faults."""
    if faults:
        good = pa.array([index not in faults for index in range(len(arrays[0]))], pa.bool_())
        arrays = [array.filter(good) for array in arrays]
    return pa.RecordBatch.from_arrays(list(arrays), schema=schema)


def _add_missing(name: str, converted: Converted, faults: dict[int, Fields]) -> None:
    if converted.array.null_count > len(converted.faults):
        for index in pc.indices_nonzero(converted.array.is_null()).to_pylist():
            faults.setdefault(index, {}).setdefault(name, [MISSING])


def _add_early(name: str, times: Any, faults: dict[int, Fields]) -> None:
    early = pc.less(times.cast(pa.int64()), 0)
    if pc.any(early).as_py():
        for index in pc.indices_nonzero(early).to_pylist():
            faults.setdefault(index, {})[name] = ["An event time must not be before 1970"]


def check_count(count: int) -> None:
    """Raise `Invalid` if a body has no record, or too many."""
    if not 1 <= count <= MAX_RECORDS:
        raise Invalid({"records": [f"Give 1 to {MAX_RECORDS:,} records, not {count:,}"]})


def unknown_columns(names: Iterable[object], schema: StreamSchema) -> Fields:
    """Return a fault for each of the first names that are not columns of the schema."""
    known = {spec.name for spec in schema.columns}
    unknown = (name for name in names if name not in known)
    return {str(name)[:_NAME]: [NO_COLUMN] for name in islice(unknown, MAX_SHOWN)}


def reason_of(fields: Fields) -> str:
    """Return the faults of one record as a line."""
    return "; ".join(f"{name}{_after(name, why)}" for name, why in fields.items())


def _after(name: str, why: Sequence[str]) -> str:
    text = ", ".join(why)
    # What is wrong within a nested value begins with the place: `.lat: Must be …`.
    return text if not name or text[0] in ".[" else f": {text}"


def to_text(record: Any) -> str:
    """Return a record as JSON text; an unreadable line is returned unchanged."""
    if isinstance(record, str):
        return record
    # Half of a surrogate pair is not Unicode, and is written as JSON writes it.
    return _json_text(record).encode("utf-8", "backslashreplace").decode()


def _json_text(value: Any) -> str:
    """Return JSON text: numbers with their digits, times in ISO 8601, bytes as base64."""
    match value:
        case NumberText():
            return str(value)
        case dict():
            fields = (f"{_quoted(str(name))}:{_json_text(field)}" for name, field in value.items())
            return f"{{{','.join(fields)}}}"
        case list() | tuple():
            return f"[{','.join(map(_json_text, value))}]"
        case float() if not math.isfinite(value):
            value = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case datetime() | date():
            value = value.isoformat()
        case bytes():
            value = b64encode(value).decode()
    return _quoted(value)


_quoted: Final = partial(json.dumps, ensure_ascii=False, default=str)
