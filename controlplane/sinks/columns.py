"""The columns that sinks write, with their types, and the conversion of stored results to them.

Results are columns of plain values: whole numbers, floats, `Decimal`, booleans, texts, datetimes
with a time zone, dates, and None.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

import pydantic_core

from controlplane.catalog.computations import is_stream, output_columns, text_of
from controlplane.catalog.queries import computed_by, names_of_streams
from controlplane.models import Query
from controlplane.results.values import moment, plain
from controlplane.wire.language.tree import Kind
from controlplane.wire.results.json_values import Raised


def plain_name(name: str) -> str:
    """Return a name with letters, digits and _ only."""
    return re.sub(r"\W", "_", name, flags=re.ASCII)


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

    def rows(self, stored: "StoredResults") -> "ResultRows":
        """Return results as they are written."""
        if not stored.starts_ms:
            return ResultRows([])
        ends = [start + self.window_ms for start in stored.starts_ms]
        return ResultRows([
            _moments(stored.starts_ms),
            _moments(ends),
            *self._converted(self.key, stored.key),
            *self._converted(self.values, stored.values),
            self._errors(stored.values),
            stored.kept,
            stored.is_final,
            _moments(stored.changed_ms),
            stored.seq,
        ])  # fmt: skip

    def _converted(
        self, columns: Sequence[ResultColumn], stored: Sequence[list[Any]]
    ) -> list[list[Any]]:
        pairs = zip(columns, stored, strict=True)
        return [self._column(column, values) for column, values in pairs]

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

    def _errors(self, stored: Sequence[list[Any]]) -> Sequence[str | None]:
        names = [column.name for column in self.values]
        if not any(Raised in {*map(type, values)} for values in stored):
            return [None] * max(map(len, stored), default=0)
        return [_errors_of(dict(zip(names, row, strict=True))) for row in zip(*stored, strict=True)]


def _errors_of(values: Mapping[str, Any]) -> str | None:
    errors = {name: value.error for name, value in values.items() if type(value) is Raised}
    return pydantic_core.to_json(errors).decode() if errors else None


def _moments(times_ms: Sequence[int]) -> list[Any]:
    known = {ms: moment(ms) for ms in {*times_ms}}
    return [known[ms] for ms in times_ms]


def _in_utc(value: datetime | None) -> datetime | None:
    return value if value is None or value.tzinfo else value.replace(tzinfo=UTC)


class ResultRows(Sequence[tuple[Any, ...]]):
    """Results as `columns`; an item is a row."""

    def __init__(self, columns: Sequence[Sequence[Any]]) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def __getitem__(self, index: Any) -> Any:
        items = [column[index] for column in self.columns]
        return ResultRows(items) if isinstance(index, slice) else tuple(items)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return zip(*self.columns, strict=True)


@dataclass(frozen=True, slots=True)
class StoredResults:
    """Results as they are stored; `kept`: the estimated part of their records that were kept.

    `key`, `values`: a list for each of their columns.
    """

    starts_ms: Sequence[int]
    key: Sequence[list[Any]]
    values: Sequence[list[Any]]
    kept: Sequence[float]
    changed_ms: Sequence[int]
    seq: Sequence[int]
    is_final: Sequence[bool]


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
        ResultColumn(name, _type_of(kinds[name]), is_key=True) for name in dict.fromkeys(text.key)
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
