"""The columns that sinks write, with their types, and the conversion of stored results to them.

A result is a tuple of plain values in the order of the columns: whole numbers, floats, `Decimal`,
booleans, texts, datetimes with a time zone, dates, and None.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

import pydantic_core

from controlplane.catalog.computations import output_columns, text_of
from controlplane.catalog.queries import computed_by, names_of_streams
from controlplane.models import Query
from controlplane.results.filters import is_stream
from controlplane.results.values import moment, plain
from controlplane.wire.language.tree import Kind
from controlplane.wire.results.json_values import Raised


class ValueType(StrEnum):
    """The type of a column."""

    INT = "int"
    FLOAT = "float"
    DECIMAL = "decimal"
    BOOL = "bool"
    TEXT = "text"
    TIME = "time"
    DATE = "date"
    # A list of values as JSON text.
    JSON = "json"


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column; `is_key`: whether it identifies the result, with all others of which it holds."""

    name: str
    type: ValueType
    is_key: bool = False


START: Final = ResultColumn("window_start", ValueType.TIME, is_key=True)
END: Final = ResultColumn("window_end", ValueType.TIME)
# After the columns of the query.
_LAST: Final = (
    ResultColumn("errors", ValueType.JSON),
    ResultColumn("kept", ValueType.FLOAT),
    ResultColumn("is_final", ValueType.BOOL),
    ResultColumn("changed_at", ValueType.TIME),
    ResultColumn("seq", ValueType.INT),
)
RESERVED: Final = frozenset({START.name, END.name, "day", *(column.name for column in _LAST)})
_EXACT_TYPES: Final[Mapping[ValueType, type]] = {
    ValueType.INT: int,
    ValueType.FLOAT: float,
    ValueType.DECIMAL: Decimal,
    ValueType.BOOL: bool,
    ValueType.TEXT: str,
    ValueType.TIME: datetime,
    ValueType.DATE: date,
    ValueType.JSON: str,
}
_CONVERSIONS: Final[Mapping[ValueType, Callable[[Any], Any]]] = {
    ValueType.INT: int,
    ValueType.FLOAT: float,
    ValueType.DECIMAL: lambda value: Decimal(str(value)),
    ValueType.BOOL: bool,
    ValueType.TEXT: lambda value: str(plain(value, Kind.NULL)),
    ValueType.TIME: lambda value: moment(int(value)),
    ValueType.DATE: lambda value: date.fromisoformat(str(value)),
    ValueType.JSON: lambda value: pydantic_core.to_json(
        plain(value, Kind.NULL), inf_nan_mode="strings", fallback=str
    ).decode(),
}


@dataclass(frozen=True)
class ResultTable:
    """The columns of a query's results as its sinks write them."""

    query: str
    window_ms: int
    key: tuple[ResultColumn, ...]
    values: tuple[ResultColumn, ...]
    # The names of the streams, where a column of the key has their ids.
    streams: Mapping[str, Mapping[int, str]]

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        """Return all columns in their order."""
        return (START, END, *self.key, *self.values, *_LAST)

    @property
    def key_names(self) -> list[str]:
        """Return the names of the columns that identify a result."""
        return [column.name for column in self.columns if column.is_key]

    def rows(self, stored: Sequence["StoredResult"]) -> list[tuple[Any, ...]]:
        """Return results as tuples in the order of the columns."""
        if not stored:
            return []
        starts = [result.start_ms for result in stored]
        keys = self._converted(self.key, [result.key for result in stored])
        values = self._converted(self.values, [result.values for result in stored])
        columns = [
            [moment(start) for start in starts],
            [moment(start + self.window_ms) for start in starts],
            *keys,
            *values,
            [self._errors(result.values) for result in stored],
            [result.kept for result in stored],
            [result.is_final for result in stored],
            [moment(result.changed_ms) for result in stored],
            [result.seq for result in stored],
        ]
        return list(zip(*columns, strict=True))

    def _converted(
        self, columns: Sequence[ResultColumn], rows: Sequence[Sequence[Any]]
    ) -> list[list[Any]]:
        return [
            self._column(column, list(values))
            for column, values in zip(columns, zip(*rows, strict=True), strict=True)
        ]

    def _column(self, column: ResultColumn, values: list[Any]) -> list[Any]:
        if names := self.streams.get(column.name):
            return [names.get(value, str(value)) for value in values]
        exact = _EXACT_TYPES[column.type]
        if column.type is not ValueType.JSON and {*map(type, values)} <= {exact, type(None)}:
            return values if exact is not datetime else [_in_utc(value) for value in values]
        convert = _CONVERSIONS[column.type]
        # The error of a user's aggregate is in the column of errors.
        return [None if value is None or isinstance(value, Raised)
                else value if type(value) is exact and column.type is not ValueType.JSON
                else convert(value) for value in values]  # fmt: skip

    def _errors(self, values: Sequence[Any]) -> str | None:
        pairs = zip(self.values, values, strict=True)
        errors = {column.name: value.error for column, value in pairs if type(value) is Raised}
        return pydantic_core.to_json(errors).decode() if errors else None


def _in_utc(value: datetime | None) -> datetime | None:
    return value if value is None or value.tzinfo else value.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A result as it is stored; `kept`: the estimated part of its records that were kept."""

    start_ms: int
    key: Sequence[Any]
    values: Sequence[Any]
    kept: float | None
    changed_ms: int
    seq: int
    is_final: bool


def result_table(query: Query) -> ResultTable:
    """Return the columns of a query's results. Raises `Conflict` if it cannot be read any more."""
    computation, text = computed_by(query), text_of(query)
    names = names_of_streams(query)
    kinds = {column.name: column.kind for column in output_columns(computation)}
    expressions = dict(computation.key)
    streams = {
        name: names for name, expression in expressions.items() if is_stream(name, expression)
    }
    key = [
        ResultColumn(
            name, ValueType.TEXT if name in streams else _type_of(kinds[name]), is_key=True
        )
        for name in dict.fromkeys(text.key)
    ]
    values = [ResultColumn(name, _type_of(kinds[name])) for name in text.aggregates]
    window_ms = round(text.window_s * 1000)
    return ResultTable(query.name, window_ms, tuple(key), tuple(values), streams)


def _type_of(kind: str) -> ValueType:
    if kind == Kind.NULL:
        return ValueType.TEXT
    return ValueType(kind) if kind in {*ValueType} else ValueType.JSON


def json_rows(
    columns: Sequence[ResultColumn], rows: Sequence[Sequence[Any]]
) -> list[dict[str, Any]]:
    """Return results as JSON values, as the API has them: times ISO 8601, decimals as text."""
    names = [column.name for column in columns]
    values = [_json_values(column.type, values)
              for column, values in zip(columns, zip(*rows, strict=True), strict=True)]  # fmt: skip
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


def _json_values(kind: ValueType, values: Sequence[Any]) -> Sequence[Any]:
    match kind:
        case ValueType.INT | ValueType.BOOL | ValueType.TEXT:
            return values
        case ValueType.TIME | ValueType.DATE:
            return [None if value is None else value.isoformat() for value in values]
        case ValueType.JSON:
            return [None if value is None else pydantic_core.from_json(value) for value in values]
    return [plain(value, Kind.NULL) for value in values]
