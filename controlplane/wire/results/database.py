"""Connections of the data plane to the database of results, which need no Django."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

T = TypeVar("T")
# Patience by default (s).
PATIENCE_S: Final = 60.0
_PAUSE_S: Final = 0.5
_LOCKED_S: Final = 20.0
# SQLite itself would look for a free lock after pauses of up to 100 ms.
_POLL_S: Final = 0.001
_SQLITE: Final = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=NORMAL",
    "PRAGMA temp_store=MEMORY",
    "PRAGMA cache_size=-32000",
)
_AWAY: Final = (sqlite3.OperationalError, psycopg.OperationalError, psycopg.InterfaceError)
# What either database raises for a statement.
FAILURES: Final = (sqlite3.Error, psycopg.Error)


class ResultsDatabase(Protocol):
    """A database of results: cursors in a transaction, with %s or ? for parameters."""

    @property
    def is_postgres(self) -> bool:
        """Return whether it is PostgreSQL, else it is SQLite."""
        ...

    def run(self, work: Callable[[Any], T]) -> T:
        """Run `work` with a cursor in a transaction that takes the write lock."""
        ...


class ConnectedDatabase:
    """One connection of this process, by URL: postgresql://… or sqlite:////path.

    `patience_s`: so long one that is away, or locked by others, is waited for.
    """

    def __init__(self, url: str, patience_s: float = PATIENCE_S) -> None:
        self._url, self._patience_s = url, patience_s
        self._connection: Any = None

    @property
    def is_postgres(self) -> bool:
        """Return whether it is PostgreSQL, else it is SQLite."""
        return not self._url.startswith("sqlite")

    def run(self, work: Callable[[Any], T]) -> T:
        """Run `work` in a transaction, again while the database is away for a short time."""
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                with self._transaction() as cursor:
                    return work(cursor)
            except _AWAY:
                self.close()
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_S)

    def close(self) -> None:
        """Close the connection; the next transaction opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*_AWAY):
                connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        if self._connection is None:
            self._connection = self._connect()
        if self.is_postgres:
            with self._connection.transaction(), self._connection.cursor() as cursor:
                yield cursor
            return
        cursor = self._connection.cursor()
        _begin(cursor, min(_LOCKED_S, self._patience_s))
        try:
            yield cursor
        except BaseException:
            cursor.execute("ROLLBACK")
            raise
        cursor.execute("COMMIT")

    def _connect(self) -> Any:
        if self.is_postgres:
            waited = {"connect_timeout": max(2, round(self._patience_s))}
            options: Any = waited | conninfo_to_dict(self._url)
            return psycopg.connect(**options, autocommit=True)
        path = unquote(urlsplit(self._url).path)[1:]
        connection = sqlite3.connect(
            path, timeout=_POLL_S, isolation_level=None, check_same_thread=False
        )
        for statement in _SQLITE:
            connection.execute(statement)
        return connection


def _begin(cursor: Any, patience_s: float) -> None:
    """Begin a transaction with SQLite's write lock, which others may hold for a short time."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            cursor.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > deadline:
                raise
        else:
            return
