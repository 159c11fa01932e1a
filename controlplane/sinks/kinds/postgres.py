"""A table of another PostgreSQL: rows and cursor are written in one transaction."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import psycopg
from psycopg import sql

from controlplane.errors import Invalid
from controlplane.results.feed import FeedPlace
from controlplane.sinks.columns import ResultColumn, ValueType
from controlplane.sinks.destination import DestinationAway, RefusedByDestination, SinkContext
from controlplane.sinks.kinds.settings import PostgresSettings
from controlplane.wire.network.destinations import NotAllowed, addresses, check_whole
from controlplane.wire.network.secrets import SecretOf, named_secret

_TYPES: Final[Mapping[ValueType, str]] = {
    ValueType.INT: "bigint",
    ValueType.FLOAT: "double precision",
    ValueType.DECIMAL: "numeric",
    ValueType.BOOL: "boolean",
    ValueType.TEXT: "text",
    ValueType.TIME: "timestamptz",
    ValueType.DATE: "date",
    ValueType.JSON: "jsonb",
}
_CONNECT_S: Final = 10
# A statement that hangs holds back this sink alone, and not forever (ms).
_OPTIONS: Final = "-c statement_timeout=60000 -c lock_timeout=20000 -c timezone=UTC"
_CURSORS: Final = """
CREATE TABLE IF NOT EXISTS weir_sink_cursor (
    sink uuid PRIMARY KEY, epoch integer NOT NULL, position text NOT NULL,
    written_at timestamptz NOT NULL DEFAULT now())
"""
_BEGIN: Final = """
INSERT INTO weir_sink_cursor (sink, epoch, position) VALUES (%s, %s, %s)
ON CONFLICT (sink) DO UPDATE SET epoch = excluded.epoch, position = excluded.position
WHERE weir_sink_cursor.epoch < excluded.epoch
"""
# No row: another process has written meanwhile.
_MOVE: Final = """
UPDATE weir_sink_cursor SET position = %s, written_at = now()
WHERE sink = %s AND epoch = %s AND position = %s
"""
# Errors that another attempt with the same rows has, too.
_REFUSALS: Final = (
    psycopg.DataError, psycopg.IntegrityError, psycopg.errors.ProgramLimitExceeded,
)  # fmt: skip


def check_destination(settings: PostgresSettings) -> None:
    """Raise `Invalid` unless the list of the site has the host."""
    try:
        _addresses(settings)
    except (NotAllowed, OSError) as refusal:
        raise Invalid({"settings.host": [str(refusal)]}) from None


def open_destination(settings: PostgresSettings, context: SinkContext) -> "PostgresTable":
    """Connect, and create the table and that of cursors."""
    try:
        options: dict[str, Any] = _addresses(settings)
        if settings.tls == "verify-full":
            options["sslrootcert"] = "system"
        connection = psycopg.connect(
            host=settings.host, port=settings.port, dbname=settings.database, user=settings.user,
            password=named_secret(SecretOf.SINKS, settings.secret) if settings.secret else None,
            sslmode=settings.tls, connect_timeout=_CONNECT_S, options=_OPTIONS,
            application_name=f"weir sink {context.name}"[:60], autocommit=True,
            **options,
        )  # fmt: skip
    except (NotAllowed, OSError, psycopg.Error) as error:
        raise DestinationAway(str(error)) from error
    return PostgresTable(connection, settings, context)


def _addresses(settings: PostgresSettings) -> dict[str, str]:
    """Return the checked address to connect to, nothing for a Unix socket of the list."""
    if settings.host.startswith("/"):
        check_whole(f"unix://{settings.host}")
        return {}
    return {"hostaddr": addresses("postgresql", settings.host, settings.port)[0]}


class PostgresTable:
    """An open table."""

    def __init__(
        self, connection: "psycopg.Connection[Any]", settings: PostgresSettings,
        context: SinkContext,
    ) -> None:  # fmt: skip
        self._connection, self._context = connection, context
        self._table = sql.Identifier(*settings.table.split("."))
        names = settings.columns or {column.name: column.name for column in context.table.columns}
        self._chosen = [
            (index, column, names[column.name])
            for index, column in enumerate(context.table.columns) if column.name in names
        ]  # fmt: skip
        with connection.transaction():
            connection.execute(_CURSORS)
            if not settings.columns:
                connection.execute(self._creation())
            connection.execute(self._stage())

    def position(self) -> FeedPlace | None:
        """Return the committed position of this epoch."""
        row = self._connection.execute(
            "SELECT position FROM weir_sink_cursor WHERE sink = %s AND epoch = %s",
            [self._context.uid, self._context.epoch],
        ).fetchone()
        return None if row is None else FeedPlace.read(row[0])

    def write(self, rows: Sequence[tuple[Any, ...]], before: FeedPlace, after: FeedPlace) -> None:
        """Upsert rows by window and key, and move the cursor, in one transaction."""
        context = self._context
        try:
            with self._connection.transaction(), self._connection.cursor() as cursor:
                if rows:
                    self._upsert(cursor, rows)
                cursor.execute(_BEGIN, [context.uid, context.epoch, str(before)])
                cursor.execute(_MOVE, [str(after), context.uid, context.epoch, str(before)])
                if cursor.rowcount != 1:
                    raise DestinationAway("Another process writes this sink")
        except _REFUSALS as refusal:
            raise RefusedByDestination(str(refusal).strip()) from None

    def _upsert(self, cursor: "psycopg.Cursor[Any]", rows: Sequence[tuple[Any, ...]]) -> None:
        cursor.execute("TRUNCATE weir_staged")
        with cursor.copy("COPY weir_staged FROM STDIN") as copy:
            indexes = [index for index, _, _ in self._chosen]
            for row in rows:
                copy.write_row([row[index] for index in indexes])
        cursor.execute(self._insert())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _creation(self) -> sql.Composed:
        columns = [sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(_type(column)))
                   for _, column, name in self._chosen]  # fmt: skip
        return sql.SQL("CREATE TABLE IF NOT EXISTS {} ({}, UNIQUE NULLS NOT DISTINCT ({}))").format(
            self._table, sql.SQL(", ").join(columns), _names(self._key_names())
        )

    def _stage(self) -> sql.Composed:
        return sql.SQL(
            "CREATE TEMP TABLE weir_staged AS SELECT {} FROM {} WITH NO DATA"
        ).format(_names(name for _, _, name in self._chosen), self._table)  # fmt: skip

    def _insert(self) -> sql.Composed:
        names = [name for _, _, name in self._chosen]
        others = [name for _, column, name in self._chosen if not column.is_key]
        updates = [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in others]
        action = (
            sql.SQL("UPDATE SET ") + sql.SQL(", ").join(updates) if updates else sql.SQL("NOTHING")
        )
        return sql.SQL(
            "INSERT INTO {} ({}) SELECT * FROM weir_staged ON CONFLICT ({}) DO {}"
        ).format(self._table, _names(names), _names(self._key_names()), action)  # fmt: skip

    def _key_names(self) -> list[str]:
        return [name for _, column, name in self._chosen if column.is_key]


def _type(column: ResultColumn) -> str:
    return _TYPES[column.type]


def _names(names: Any) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))
