"""Columns of the view of a query: names, types, and how they are read from a row of results.

They follow from the columns of the query's results: the key and the aggregates with their kinds. A
row has both as JSON arrays (`wire.results.json_values`).
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from controlplane.catalog.computations import is_stream
from controlplane.results.values import ResultColumns
from controlplane.wire.language.aggregates import Aggregate
from controlplane.wire.language.registered import registered_aggregate
from controlplane.wire.language.tree import Kind
from controlplane.wire.results.tables import STARTED, clamped

_TYPES: Final[Mapping[Kind, str]] = {
    Kind.INT: "bigint",
    Kind.FLOAT: "double precision",
    Kind.DECIMAL: "numeric",
    Kind.BOOL: "boolean",
    Kind.TEXT: "text",
    Kind.TIME: "timestamptz",
    Kind.DATE: "date",
    Kind.NULL: "text",
}
NUMBERS: Final = ("bigint", "double precision", "numeric")
# A user's aggregate may return anything: a value that is not a number is null.
_IS_NUMBER: Final = r"~ '^(-?\d{1,300}(\.\d*)?([eE][-+]?\d{1,2})?|NaN|-?Infinity)$'"
# Texts that PostgreSQL cannot have: zeros and halves of characters.
_UNREADABLE: Final = r"'\\u(0000|[dD][89a-fA-F]..)', '\\ufffd', 'g'"


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column of a view: `type` is PostgreSQL's, `role` is window, key or aggregate.

    `postgres`, `sqlite`: the expressions over a row `w` of results.
    """

    name: str
    type: str
    role: str
    postgres: str
    sqlite: str


def view_columns(query: int, columns: ResultColumns) -> tuple[ViewColumn, ...]:
    """Return the columns of the view of a query; those of windows alone if it cannot be read.

    A column of the query whose name is taken, in any case of letters, has `_` after it.
    """
    length_ms = round(columns.text.window_s * 1000)
    taken: set[str] = set()
    result = []
    for column in (*_of_window(query, length_ms), *_of_query(columns)):
        name = column.name
        while name.lower() in taken:
            name += "_"
        taken.add(name.lower())
        result.append(ViewColumn(name, column.type, column.role, column.postgres, column.sqlite))
    return tuple(result)


def _of_window(query: int, length_ms: int) -> Iterator[ViewColumn]:
    until = f"(SELECT q.final_ms FROM results_query q WHERE q.query_id = {query})"  # noqa: S608
    final = f"COALESCE(w.start_ms <= {until}, FALSE)"
    # By the expression of the index.
    yield ViewColumn("window_start", "timestamptz", "window", STARTED, _sqlite_time("w.start_ms"))
    yield _time_of("window_end", f"(w.start_ms + {length_ms})")
    yield ViewColumn("final", "boolean", "window", final, final)
    yield ViewColumn("kept", "double precision", "window", *_KEPT)
    yield _time_of("changed_at", "NULLIF(w.changed_ms, 0)")


def _time_of(name: str, ms: str) -> ViewColumn:
    return ViewColumn(name, "timestamptz", "window", _postgres_time(ms), _sqlite_time(ms))


_KEPT: Final = tuple(
    f"CASE WHEN w.sample IS NULL THEN 1.0 ELSE {least}(round({number}, 6), 0.999999) END"
    for least, number in (
        ("LEAST", "(w.records / (w.records + (w.sample::json ->> 0)::float8))::numeric"),
        ("MIN", "w.records / (w.records + json_extract(w.sample, '$[0]'))"),
    )
)


def _of_query(columns: ResultColumns) -> Iterator[ViewColumn]:
    computation = columns.computation
    if computation is None:
        return
    for index, (name, expression) in enumerate(computation.key):
        if is_stream(name, expression):
            yield _stream(name, index, columns.streams)
        else:
            kind = _TYPES[expression.kind]
            yield _column(name, kind, "key", index, expression.kind)
    for index, (name, aggregate) in enumerate(computation.aggregates):
        is_users = registered_aggregate(aggregate.function) is not None
        yield _column(
            name, _type_of(aggregate), "aggregate", index, aggregate.kind, is_users=is_users
        )


def _type_of(aggregate: Aggregate) -> str:
    is_users = registered_aggregate(aggregate.function) is not None
    if aggregate.function == "top_k":
        return "jsonb"
    # Sums and results of users' functions may be beyond 64 bits.
    if aggregate.kind is Kind.INT and (aggregate.function == "sum" or is_users):
        return "numeric"
    if is_users and aggregate.kind in (Kind.TIME, Kind.DATE):
        return "text"
    return _TYPES[aggregate.kind]


def _column(
    name: str, kind: str, role: str, index: int, value: Kind, *, is_users: bool = False
) -> ViewColumn:
    """Return a column of the array `w.key_json` or `w.value_json`, which is `j.k` or `j.v`."""
    array = "key_json" if role == "key" else "value_json"
    item, place = f"(j.{array[0]} -> {index})", f"w.{array}, '$[{index}]"
    scalar = f"(CASE jsonb_typeof({item}) WHEN 'object' THEN {item} ->> 'decimal'" \
             f" ELSE {item} #>> '{{}}' END)"  # fmt: skip
    plain = f"CASE WHEN json_type({place}') <> 'object' THEN json_extract({place}') END"
    if kind in NUMBERS:
        guarded = f"CASE WHEN {scalar} {_IS_NUMBER} THEN {scalar}::{kind} END"
        return ViewColumn(
            name, kind, role, guarded if is_users else f"{scalar}::{kind}", _number(place)
        )
    if value is Kind.TIME and not is_users:
        return ViewColumn(name, kind, role, _postgres_time(f"{scalar}::bigint"),
                          _sqlite_time(f"json_extract({place}')"))  # fmt: skip
    if value is Kind.DATE and not is_users:
        return ViewColumn(name, kind, role, f"({item} ->> 'date')::date",
                          f"json_extract({place}.date')")  # fmt: skip
    if kind == "jsonb":
        listed = f"CASE WHEN jsonb_typeof({item}) = 'array' THEN {item} END"
        return ViewColumn(name, kind, role, listed, plain)
    if kind == "boolean":
        boolean = f"CASE WHEN jsonb_typeof({item}) = 'boolean' THEN ({item})::boolean END"
        return ViewColumn(name, kind, role, boolean, plain)
    return ViewColumn(name, kind, role, scalar, plain)


def _stream(name: str, index: int, streams: Mapping[int, str]) -> ViewColumn:
    """Return a column with the names of streams in place of their ids."""
    names = quoted(json.dumps({str(pk): name for pk, name in sorted(streams.items())}))
    number = f"(j.k ->> {index})"
    item = f"json_extract(w.key_json, '$[{index}]')"
    return ViewColumn(
        name, "text", "key", f"COALESCE({names}::jsonb ->> {number}, {number})",
        f"COALESCE(json_extract({names}, '$.\"' || {item} || '\"'), CAST({item} AS TEXT))",
    )  # fmt: skip


def _number(place: str) -> str:
    """Return a number of SQLite, which has floats in place of decimals, and no NaN."""
    return (
        f"CASE json_type({place}') WHEN 'object' THEN CAST(json_extract({place}.decimal') AS REAL)"
        f" WHEN 'text' THEN CASE json_extract({place}') WHEN 'Infinity' THEN 9e999"
        f" WHEN '-Infinity' THEN -9e999 END"
        f" WHEN 'integer' THEN json_extract({place}') WHEN 'real' THEN json_extract({place}') END"
    )


def _postgres_time(ms: str) -> str:
    # Without CASE the first and the last time would take the place of null.
    limited = clamped(ms, "GREATEST", "LEAST")
    return f"CASE WHEN {ms} IS NOT NULL THEN to_timestamp({limited} / 1000.0::float8) END"


def _sqlite_time(ms: str) -> str:
    """Return a time as text in the form that `sqlite_functions` has."""
    seconds = f"{clamped(ms, 'MAX', 'MIN')} / 1000.0, 'unixepoch'"
    return f"strftime('%Y-%m-%d %H:%M:%f', {seconds}) || '+00:00'"


def postgres_select(query: int, columns: tuple[ViewColumn, ...]) -> str:
    """Return the SELECT of a view of PostgreSQL."""
    arrays = ", ".join(
        f"{_readable(columns, role, f'w.{array}')}::jsonb AS {array[0]}"
        for role, array in (("key", "key_json"), ("aggregate", "value_json"))
    )
    # OFFSET 0: each array is parsed once, and not once per column.
    source = f"results_window w CROSS JOIN LATERAL (SELECT {arrays} OFFSET 0) j"
    select = _select(
        query, columns, source, lambda column: f"CAST({column.postgres} AS {column.type})"
    )
    # In the order of the index: a statement that takes the newest windows reads no others.
    return f"{select} ORDER BY 1 DESC"


def sqlite_select(query: int, columns: tuple[ViewColumn, ...]) -> str:
    """Return the SELECT of a view of SQLite."""
    return _select(query, columns, "results_window w", lambda column: column.sqlite)


def _select(
    query: int,
    columns: tuple[ViewColumn, ...],
    source: str,
    expression: Callable[[ViewColumn], str],
) -> str:
    items = ",\n  ".join(f"{expression(column)} AS {identifier(column.name)}" for column in columns)
    return f"SELECT {items}\nFROM {source} WHERE w.query_id = {query}"


def _readable(columns: tuple[ViewColumn, ...], role: str, array: str) -> str:
    has_text = any(column.role == role and column.type in ("text", "jsonb") for column in columns)
    return f"regexp_replace({array}, {_UNREADABLE})" if has_text else array


def quoted(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return a name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'
