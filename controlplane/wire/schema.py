"""The schema of a stream: its columns, its event time, and the allowed lateness."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final
from zlib import crc32

import pyarrow as pa

from controlplane.wire.errors import WireError
from controlplane.wire.language.functions import common
from controlplane.wire.language.tree import Kind
from controlplane.wire.types import BadType, arrow_type, kind_of

MAX_COLUMNS: Final = 500
MAX_NAME: Final = 100
DEFAULT_WATERMARK_DELAY_S: Final = 120.0
DEFAULT_MAX_FUTURE_S: Final = 3600.0
DEFAULT_IDLE_AFTER_S: Final = 300.0
# Every stream has a column with the name of the stream.
STREAM: Final = "stream"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class BadSchema(WireError):
    """An invalid schema: messages by field."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self.fields = dict(fields)
        super().__init__("; ".join(f"{name}: {why}" for name, why in fields.items()))


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """A column: name, type as text (`controlplane.wire.types`), and whether it may be null."""

    name: str
    type: str
    nullable: bool = True


@dataclass(frozen=True)
class StreamSchema:
    """The columns and time settings of a stream.

    `event_time`: the timestamp column of event time; empty: the time of the append.
    `watermark_delay_s`: the default lateness of queries. `max_future_s`: records further ahead of
    the clock are dead letters. `idle_after_s`: a stream without records for so long does not delay
    the windows of joins. Raises `BadSchema`.
    """

    columns: tuple[ColumnSpec, ...]
    event_time: str = ""
    watermark_delay_s: float = DEFAULT_WATERMARK_DELAY_S
    max_future_s: float = DEFAULT_MAX_FUTURE_S
    idle_after_s: float = DEFAULT_IDLE_AFTER_S
    # Derived from `columns`; equal schemas are equal values.
    arrow: Any = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        faults = _faults(self)
        if faults:
            raise BadSchema(faults)
        fields = [pa.field(c.name, arrow_type(c.type), nullable=c.nullable) for c in self.columns]
        object.__setattr__(self, "arrow", pa.schema(fields))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # Cached: tables use it for every query and stream.
        return hash((self.columns, self.event_time, self.max_future_s))

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the names of the columns."""
        return frozenset(column.name for column in self.columns)

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """Return the columns that queries can read, with their kinds, except the stream column."""
        result: dict[str, Kind] = {}
        for item in self.arrow:
            result |= _kinds(item.name, item.type)
        return result

    @cached_property
    def kinds_number(self) -> int:
        """Return a hash of the kinds of columns, which is equal in all processes."""
        return crc32(json.dumps(self.kinds, sort_keys=True).encode())

    def to_json(self) -> dict[str, Any]:
        """Return the schema as JSON values."""
        return {
            "columns": [
                {"name": c.name, "type": c.type, "nullable": c.nullable} for c in self.columns
            ],
            "event_time": self.event_time,
            "watermark_delay_s": self.watermark_delay_s,
            "max_future_s": self.max_future_s,
            "idle_after_s": self.idle_after_s,
        }

    def to_text(self) -> str:
        """Return the schema as canonical JSON."""
        return json.dumps(self.to_json(), separators=(",", ":"), sort_keys=True)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "StreamSchema":
        """Return the schema that `to_json` wrote. Raises `BadSchema`."""
        try:
            columns = tuple(ColumnSpec(**column) for column in row.get("columns", ()))
            return cls(columns, **{name: value for name, value in row.items() if name != "columns"})
        except (TypeError, AttributeError) as error:
            raise BadSchema({"schema": f"is not as it should be: {error}"[:200]}) from error

    @staticmethod
    @lru_cache(maxsize=4096)
    def from_text(text: str | bytes) -> "StreamSchema":
        """Return the cached schema of a text by `to_text`. Raises `BadSchema`."""
        return StreamSchema.from_json(json.loads(text))


def _kinds(name: str, arrow: Any) -> dict[str, Kind]:
    if pa.types.is_struct(arrow):
        result: dict[str, Kind] = {}
        for item in arrow:
            result |= _kinds(f"{name}.{item.name}", item.type)
        return result
    kind = kind_of(arrow)
    return {} if kind is None else {name: kind}


def _faults(schema: StreamSchema) -> dict[str, str]:
    faults: dict[str, str] = {}
    if not 1 <= len(schema.columns) <= MAX_COLUMNS:
        faults["columns"] = f"must be 1 to {MAX_COLUMNS}, not {len(schema.columns)}"
    seen: set[str] = set()
    for column in schema.columns:
        where = f"columns.{column.name}"
        if not _NAME.fullmatch(column.name) or len(column.name) > MAX_NAME:
            faults[where] = f"a name has 1 to {MAX_NAME} letters, digits and _, no digit first"
        elif column.name == STREAM or column.name.lower() in seen:
            faults[where] = "the name is taken"
        seen.add(column.name.lower())
        try:
            arrow_type(column.type)
        except BadType as error:
            faults[where] = str(error)
    return faults | _time_faults(schema)


def _time_faults(schema: StreamSchema) -> dict[str, str]:
    faults: dict[str, str] = {}
    column = next((c for c in schema.columns if c.name == schema.event_time), None)
    if schema.event_time and column is None:
        faults["event_time"] = f"there is no column {schema.event_time}"
    elif column is not None and (not column.type.startswith("timestamp") or column.nullable):
        faults["event_time"] = f"{column.name} must be a timestamp that is not null"
    for name in ("watermark_delay_s", "max_future_s", "idle_after_s"):
        if not 0 <= getattr(schema, name) <= 10 * 366 * 86_400:
            faults[name] = "must be 0 seconds to 10 years"
    return faults


def common_kinds(schemas: Iterable[StreamSchema]) -> tuple[dict[str, Kind], dict[str, str]]:
    """Return the columns that a query over these streams can read, and why others are excluded.

    A column is readable if every stream has it with compatible kinds. Numbers widen: integers and
    decimals to decimals, with floats to floats.
    """
    every: Sequence[dict[str, Kind]] = [schema.kinds for schema in schemas]
    result: dict[str, Kind] = {}
    refused: dict[str, str] = {}
    for name in dict.fromkeys(name for kinds in every for name in kinds):
        there = {kinds[name] for kinds in every if name in kinds}
        kind = common(list(there))
        if any(name not in kinds for kinds in every):
            refused[name] = "not every stream has it"
        elif kind is None:
            refused[name] = f"it is {' and '.join(sorted(there))} in different streams"
        else:
            result[name] = kind
    return result, refused


def kind_text(schema: StreamSchema | None, name: str) -> str:
    """Return the kind of a column in queries as text, or the columns of its fields."""
    kinds = {} if schema is None else schema.kinds
    inner = [f"{other} {kind}" for other, kind in kinds.items() if other.startswith(f"{name}.")]
    return str(kinds.get(name, ", ".join(inner) or "not read"))
