"""Runs of checked statements, with limits of time, rows and bytes.

In PostgreSQL a statement runs as the role of the cluster, in a read-only transaction that is rolled
back. In SQLite it runs on a read-only connection of its own, which has the views and an authorizer.
"""

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from threading import BoundedSemaphore
from typing import Any, Final
from urllib.parse import quote

import psycopg
from django.conf import settings
from django.db import OperationalError, connections, transaction
from sqlglot.dialects.postgres import Postgres
from sqlglot.dialects.sqlite import SQLite

from controlplane.access.roles import Actor, require_viewer
from controlplane.errors import Busy, Conflict, Invalid
from controlplane.models import Cluster
from controlplane.results.database import RESULTS, is_postgres
from controlplane.results.sql.columns import identifier, sqlite_select
from controlplane.results.sql.schemas import role_of
from controlplane.results.sql.sqlite_dialect import NAMES, TIME, add_functions, sqlite_tree
from controlplane.results.sql.statements import Statement, bounded, checked
from controlplane.wire.language.grammar import BadExpression
from controlplane.wire.results.tables import TABLES

MAX_S: Final = 10.0
MAX_ROWS: Final = 10_000
MAX_BYTES: Final = 16 << 20
_CHUNK: Final = 200
# Statements of this process at once: pages have the other threads.
_FREE: Final = BoundedSemaphore(max(1, settings.WEB_THREADS // 2))
_WAIT_S: Final = 2.0
_PLAIN: Final[dict[str, Any]] = {"comments": False, "identify": True}
# Of a statement in PostgreSQL, whose sorts and hashes go to files beyond this.
_WORK_MEMORY: Final = "16MB"
# SQLite: the longest text (bytes), pages in memory, and steps between looks at the clock.
_LONGEST_TEXT: Final = 4 << 20
_CACHE_KIB: Final = 16_384
_STEPS: Final = 20_000
_NAMES: Final = (
    "abs avg coalesce count cume_dist current_date dense_rank first_value ifnull iif instr lag"
    " last_value lead length like lower ltrim max min nth_value ntile nullif percent_rank rank"
    " round row_number rtrim sign substr substring sum trim upper -> ->>"
)
_FUNCTIONS: Final = NAMES | frozenset(_NAMES.split())
_READS: Final = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION})
# PostgreSQL: errors of a view or role that does not exist, and classes of errors of the server.
_ABSENT: Final = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.InvalidSchemaName,
)
_AWAY: Final = ("08", "53", "57", "58")
_TYPES: Final = {
    bool: "boolean", int: "bigint", float: "double precision", Decimal: "numeric", str: "text",
    datetime: "timestamptz", date: "date", dict: "jsonb", list: "jsonb",
}  # fmt: skip


@dataclass(frozen=True)
class StatementResult:
    """The rows of a statement; `types` are PostgreSQL's. `is_cut`: further rows were left out."""

    names: Sequence[str]
    types: Sequence[str]
    rows: Sequence[Sequence[Any]]
    is_cut: bool
    seconds: float


def run_statement(
    actor: Actor, cluster: Cluster, text: str, most_s: float | None = None
) -> StatementResult:
    """Return the rows of a SELECT over the views of a cluster, the first `MAX_ROWS` of them.

    `most_s`: how long it may run and wait for its turn, by default `MAX_S`. Raises `Forbidden`,
    `Invalid` with the place in the statement, `Busy`, and `Conflict`: no_schema (the views are not
    there yet), too_long, too_large.
    """
    require_viewer(actor, cluster)
    statement = checked(cluster, text)
    started, most_s = time.monotonic(), MAX_S if most_s is None else most_s
    run = _run_postgres if is_postgres() else _run_sqlite
    try:
        with _slot(min(_WAIT_S, most_s)):
            names, types, rows = run(cluster, statement, time.monotonic() + most_s)
    except TimeoutError:
        text = f"The statement took longer than {most_s:g} s: select fewer windows or columns"
        raise Conflict("too_long", text) from None
    except RecursionError:
        raise _failed("The statement is nested too deeply") from None
    seconds = time.monotonic() - started
    return StatementResult(names, types, rows[:MAX_ROWS], len(rows) > MAX_ROWS, seconds)


_Rows = tuple[list[str], list[str], list[Sequence[Any]]]


@contextmanager
def _slot(wait_s: float) -> Iterator[None]:
    if not _FREE.acquire(timeout=wait_s):
        raise Busy("too_many_statements", "Other statements run now: try again", 5)
    try:
        yield
    finally:
        _FREE.release()


def _failed(message: str) -> Invalid:
    return Invalid({"statement": [message.strip().partition("\n")[0]]})


def _taken(fetch: Callable[[int], Sequence[Sequence[Any]]], deadline: float) -> list[Any]:
    """Return rows up to the limits, and one more if there are others."""
    rows: list[Any] = []
    size = 0
    while len(rows) <= MAX_ROWS and (some := fetch(_CHUNK)):
        rows += some
        size += sum(_size(value) for row in some for value in row)
        if size > MAX_BYTES:
            text = f"The rows have more than {MAX_BYTES >> 20} MiB: select fewer rows or columns"
            raise Conflict("too_large", text)
        if time.monotonic() > deadline:
            raise TimeoutError
    return rows


def _size(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    return len(repr(value)) if isinstance(value, list | dict) else 16


def _run_postgres(cluster: Cluster, statement: Statement, deadline: float) -> _Rows:
    text, role = Postgres().generate(bounded(statement.tree), **_PLAIN), role_of(cluster.slug)
    try:
        with transaction.atomic(RESULTS):
            # Nothing of the transaction stays: neither its settings nor its role.
            transaction.set_rollback(rollback=True, using=RESULTS)
            connection = connections[RESULTS].connection
            _limit(connection.cursor(), role, deadline - time.monotonic())
            with connection.cursor("weir_statement") as cursor:
                cursor.execute(text)
                rows = _taken(cursor.fetchmany, deadline)
                columns = cursor.description or ()
    except psycopg.Error as error:
        raise _refusal(error) from None
    return [column.name for column in columns], [_type_of(c.type_code) for c in columns], rows


def _refusal(error: psycopg.Error) -> Exception:
    """Return what an error of PostgreSQL is for the caller."""
    if isinstance(error, psycopg.errors.QueryCanceled):
        return TimeoutError()
    if isinstance(error, _ABSENT):
        return _no_schema()
    if (error.sqlstate or _AWAY[0])[:2] in _AWAY:
        return OperationalError(str(error))
    return _failed(error.diag.message_primary or str(error))


def _no_schema() -> Conflict:
    text = "The views of the cluster are not there yet: try again in some seconds"
    return Conflict("no_schema", f"{text}. If that lasts, the log of the worker has the reason")


def _limit(cursor: Any, role: str, seconds: float) -> None:
    for setting in (
        "transaction_read_only = on", f"statement_timeout = {max(1, round(seconds * 1000))}",
        f"work_mem = '{_WORK_MEMORY}'", "max_parallel_workers_per_gather = 0", "timezone = 'UTC'",
        f"role = {identifier(role)}",
    ):  # fmt: skip
        try:
            cursor.execute(f"SET LOCAL {setting}")
        except psycopg.errors.InvalidParameterValue:
            # There is no such role.
            raise _no_schema() from None


_POSTGRES: Final = {
    "int8": "bigint",
    "int4": "bigint",
    "int2": "bigint",
    "float8": "double precision",
    "float4": "double precision",
    "bool": "boolean",
}


def _type_of(oid: int) -> str:
    known = psycopg.adapters.types.get(oid)
    name = known.name if known else "text"
    return _POSTGRES.get(name, name)


def _run_sqlite(cluster: Cluster, statement: Statement, deadline: float) -> _Rows:
    views = {view.relation: f"view {view.query.pk}" for view in statement.views}
    times = {column.name for view in statement.views for column in view.columns
             if column.type == "timestamptz"}  # fmt: skip
    try:
        tree = sqlite_tree(statement.text, bounded(statement.tree), views, times)
        with closing(_connect(statement)) as connection:
            connection.set_authorizer(_authorizer(frozenset(views.values())))
            connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
            cursor = connection.execute(SQLite().generate(tree, **_PLAIN))
            rows = _taken(cursor.fetchmany, deadline)
            names = [column[0] for column in cursor.description]
    except BadExpression as bad:
        raise Invalid({"statement": [bad.fault]}) from None
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            raise TimeoutError from None
        raise _failed(str(error)) from None
    except (sqlite3.Error, ValueError) as error:
        raise _failed(str(error)) from None
    return (names, *_typed(rows, len(names)))


def _connect(statement: Statement) -> sqlite3.Connection:
    """Return a read-only connection with the views of a statement."""
    name = quote(str(connections[RESULTS].settings_dict["NAME"]))
    connection = sqlite3.connect(f"file:{name}?mode=ro", uri=True)
    # Temporary tables in files: the memory of this process is bounded.
    for pragma in ("temp_store = FILE", f"cache_size = -{_CACHE_KIB}", "trusted_schema = OFF"):
        connection.execute(f"PRAGMA {pragma}")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_TEXT)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    add_functions(connection)
    for view in statement.views:
        select = sqlite_select(view.query.pk, view.columns)
        connection.execute(f"CREATE TEMP VIEW {identifier(f'view {view.query.pk}')} AS {select}")
    return connection


def _authorizer(views: frozenset[str]) -> Callable[..., int]:
    """Return what lets a statement read views, and only views read the tables of results."""

    def authorize(action: int, first: Any, second: Any, _database: Any, source: Any) -> int:
        is_view = source in views
        if action == sqlite3.SQLITE_READ:
            allowed = is_view if first in TABLES else first in views or not first
        elif action == sqlite3.SQLITE_FUNCTION:
            allowed = is_view or str(second).lower() in _FUNCTIONS
        else:
            allowed = action in _READS
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    return authorize


def _typed(rows: Sequence[Sequence[Any]], count: int) -> tuple[list[str], list[Sequence[Any]]]:
    """Return the types of columns by their values, and the rows with times as such."""
    if not rows:
        return ["text"] * count, []
    columns = [_column(list(column)) for column in zip(*rows, strict=True)]
    return [kind for kind, _ in columns], [*zip(*(values for _, values in columns), strict=True)]


def _column(values: list[Any]) -> tuple[str, list[Any]]:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {str} and all(value is None or TIME.fullmatch(value) for value in values):
        return "timestamptz", [value and datetime.fromisoformat(value) for value in values]
    if kinds == {int, float}:
        return "double precision", values
    return (_TYPES.get(kinds.pop(), "text") if len(kinds) == 1 else "text"), values


def names_once(names: Iterable[str]) -> list[str]:
    """Return names of columns in which none is twice, for formats that need that."""
    result: list[str] = []
    for name in names:
        plain, number = name, 2
        while name in result:
            name, number = f"{plain}_{number}", number + 1  # noqa: PLW2901
        result.append(name)
    return result
