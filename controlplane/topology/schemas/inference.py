"""A schema proposed from a sample of records, for a person to confirm or to correct."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any, Final

import pyarrow as pa

from controlplane.errors import Invalid, Undecodable
from controlplane.records.bodies import Format
from controlplane.records.bodies.tables import flat, unreadable
from controlplane.records.decoding import decode
from controlplane.topology.schemas.samples import read_sample
from controlplane.wire.records.casts import FAILURES, CastRules
from controlplane.wire.records.conversion import TooManyFaults, convert, python_value
from controlplane.wire.records.numbers import is_text
from controlplane.wire.schema import BadSchema, ColumnSpec, StreamSchema
from controlplane.wire.types import BadType, arrow_type, type_name

# The stubs of Arrow do not know what its kernels take.
pc: Any = import_module("pyarrow.compute")
_SHOWN: Final = 60
_FAULT: Final = 200
# Of several columns that may be the event time, one of such a name is proposed first.
_TIME_NAMES: Final = re.compile(
    r"(event|occur|creat|measured|record).*|ts|t|time|timestamp|datetime|.*_(at|ts|time)", re.I
)
# Whole numbers between the years 2001 and 2100, in seconds and in milliseconds.
_SECONDS: Final = range(1_000_000_000, 4_102_444_800)
_UINT64: Final = (2**63, 2**64)


@dataclass(frozen=True)
class InferredColumn:
    """A column as proposed.

    `note`: what a person should know or decide. `example`: its first value. `may_be_event_time`:
    whether it is a time without nulls.
    """

    name: str
    type: str
    nullable: bool
    note: str = ""
    example: str = ""
    may_be_event_time: bool = False


@dataclass(frozen=True)
class Inferred:
    """What a sample suggests; `faults` by field, as of `BadSchema`, of what cannot be a schema."""

    format: str
    records: int
    columns: tuple[InferredColumn, ...]
    event_time: str
    faults: Mapping[str, str]

    def schema_json(self) -> dict[str, Any]:
        """Return the proposed schema as `StreamSchema.to_json` writes one; it may have faults."""
        columns = [{"name": c.name, "type": c.type, "nullable": c.nullable} for c in self.columns]
        return {"columns": columns, "event_time": self.event_time}


def infer(sample: bytes, kind: Format) -> Inferred:
    """Return the schema that a sample suggests, which a confined child reads.

    Raises `Invalid` (field `sample`), and `Away`.
    """
    try:
        row, _ = decode(_proposal, sample, kind)
    except Undecodable as error:
        error.fields = {"sample": error.fields["records"]}
        raise
    columns = tuple(InferredColumn(**column) for column in row.pop("columns"))
    return Inferred(**row, columns=columns)


def _proposal(sample: bytes, kind: Format) -> tuple[dict[str, Any], bytes]:
    """Return the fields of `propose`; runs in the child."""
    try:
        return asdict(propose(sample, kind)), b""
    except Invalid as invalid:
        raise Invalid({"sample": invalid.fields.get("records") or [
            f"{name}: {why}" if name != "sample" else why
            for name, whys in invalid.fields.items() for why in whys
        ]}) from invalid  # fmt: skip


def propose(sample: bytes, kind: Format) -> Inferred:
    """Return the schema that a sample suggests. Raises `Invalid`."""
    table, skipped = read_sample(sample, kind)
    faults = {f"columns.{name}": unreadable(arrow) for name, arrow in skipped.items()}
    columns = tuple(_column(field, table.column(index), faults)
                    for index, field in enumerate(table.schema))  # fmt: skip
    columns += tuple(InferredColumn(name, str(arrow)[:_SHOWN], nullable=True)
                     for name, arrow in skipped.items())  # fmt: skip
    times = [column.name for column in columns if column.may_be_event_time]
    first = sorted(times, key=lambda name: not _TIME_NAMES.fullmatch(name))
    event_time = first[0] if first else ""
    inferred = Inferred(kind.value, table.num_rows, columns, event_time, faults)
    try:
        specs = tuple(ColumnSpec(c.name, c.type, c.nullable) for c in columns)
        StreamSchema(specs, event_time)
    except BadSchema as bad:
        # The name of Arrow's type is more useful than an error about its text.
        faults |= {name: why for name, why in bad.fields.items() if name not in faults}
    return inferred


def _column(field: Any, values: Any, faults: dict[str, str]) -> InferredColumn:
    try:
        array = flat(values)
        kind, note = _type_of(field, array, faults)
        example = next((python_value(value) for value in array[:100] if value.is_valid), None)
    except MemoryError:
        raise
    except (*FAILURES, KeyError, TooManyFaults) as error:
        faults[f"columns.{field.name}"] = f"Has values that Weir cannot read: {error}"[:_FAULT]
        return InferredColumn(field.name, str(field.type)[:_SHOWN], nullable=True)
    nullable = array.null_count > 0
    return InferredColumn(
        field.name,
        kind,
        nullable,
        note,
        "" if example is None else str(example)[:_SHOWN],
        may_be_event_time=kind.startswith("timestamp") and not nullable,
    )


def _type_of(field: Any, array: Any, faults: dict[str, str]) -> tuple[str, str]:
    """Return the type that is proposed for a column, and a note."""
    if array.null_count == len(array):
        return "string", "the sample has no value of it"
    if is_text(array.type):
        return _type_of_text(array.cast(pa.string()))
    try:
        kind = type_name(_storable(array.type))
    except BadType as error:
        faults[f"columns.{field.name}"] = str(error)
        return str(array.type), ""
    if pa.types.is_temporal(array.type) and convert(array, array.type, CastRules()).faults:
        raise OverflowError("times must be of the years 1 to 9999")
    return _type_of_number(kind, array)


def _type_of_text(array: Any) -> tuple[str, str]:
    if _casts(array, pa.date32(), ""):
        return "date", ""
    time = arrow_type("timestamp(ms)")
    if _casts(array, time, ""):
        return _finest(array), ""
    if _casts(array, time, "UTC"):
        note = "its times name no zone: records are sent with ?zone="
        return _finest(array), note
    return "string", ""


def _finest(array: Any) -> str:
    """Return the timestamp whose unit holds the fractions of these times, at most microseconds."""
    digits = pc.max(pc.utf8_length(pc.extract_regex(
        pc.coalesce(array, pa.scalar("")), r"(?:\.(?P<digits>[0-9]+))?(?:Z|[+-][0-9:]+)?$"
    ).field("digits"))).as_py()  # fmt: skip
    return "timestamp(us)" if (digits or 0) > 3 else "timestamp(ms)"  # noqa: PLR2004 - ms


def _casts(array: Any, target: Any, zone: str) -> bool:
    try:
        return not convert(array, target, CastRules(zone=zone)).faults
    except TooManyFaults:
        return False


def _type_of_number(kind: str, array: Any) -> tuple[str, str]:
    if kind == "int64":
        low, high = _bounds(array)
        if low in _SECONDS and high in _SECONDS:
            return kind, "may be seconds since 1970: a timestamp takes milliseconds"
        if low // 1000 in _SECONDS and high // 1000 in _SECONDS:
            return kind, "may be milliseconds since 1970: choose timestamp(ms) if so"
    if kind == "float64" and _is_uint64(array):
        return "uint64", "whole numbers beyond 63 bits"
    return kind, ""


def _is_uint64(array: Any) -> bool:
    low, high = _bounds(array)
    whole = pc.all(pc.equal(pc.floor(array), array)).as_py()
    # The largest uint64 is not a float: the nearest one is above it.
    return bool(whole and low >= 0 and _UINT64[0] <= high <= _UINT64[1])


def _bounds(array: Any) -> tuple[Any, Any]:
    bounds = pc.min_max(array).as_py()
    return bounds["min"], bounds["max"]


def _storable(arrow: Any) -> Any:
    """Return the type with what a sample leaves open filled in: nulls and times in nested types."""
    if pa.types.is_null(arrow):
        return pa.string()
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return pa.list_(_nested(arrow.value_type))
    if pa.types.is_struct(arrow):
        return pa.struct([pa.field(field.name, _nested(field.type)) for field in arrow])
    return arrow


def _nested(arrow: Any) -> Any:
    # Arrow's reader of JSON makes times of text, in seconds and without a zone.
    if pa.types.is_timestamp(arrow) and arrow.unit == "s":
        return pa.timestamp("ms", tz="UTC")
    return _storable(arrow)
