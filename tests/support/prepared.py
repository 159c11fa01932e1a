"""Rows and Redis keys that a fixture stored once in this process, stored again for later tests.

A small cluster takes hundreds of statements, and a proposal a child process; their rows take some
twenty statements. The times in the rows are those of the first test that needed them.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeVar

from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.db.models import Model

from controlplane.access.roles import Actor
from controlplane.connections import redis_client
from tests.support.cluster import ADDRESS, actor

M = TypeVar("M", bound=Model)
# The rows of a table, or the keys of Redis with their values, by their ids.
Content = dict[Any, Any]


@dataclass(frozen=True)
class _Change:
    """Rows or keys that were added, changed or deleted: by their ids, None for none."""

    before: Content
    after: Content

    @classmethod
    def between(cls, before: Content, after: Content) -> "_Change":
        """Return what differs."""
        ids = [i for i in {**before, **after} if before.get(i) != after.get(i)]
        return cls({i: before.get(i) for i in ids}, {i: after.get(i) for i in ids})


@dataclass(frozen=True)
class _Stored:
    """What a fixture returned, and what it changed."""

    model: type[Model]
    pk: Any
    tables: dict[str, _Change]
    keys: _Change


_kept: Final = defaultdict[Hashable, list[_Stored]](list)
# Of a name: a user may be the first or the second of a test.
_MOST_VARIANTS: Final = 3


def prepared(name: str, make: Callable[[], M], *depends: Hashable) -> M:
    """Return the row that `make` stores: on SQLite from the second time on without calling it.

    `depends`: what the rows depend on, such as the id of their user. `make` is called where a
    row or key that it changes is not as it was the first time, and always on PostgreSQL.
    """
    if connection.vendor != "sqlite":
        return make()
    connection.ensure_connection()
    key = (name, connection.in_atomic_block, *depends)
    for stored in _kept[key]:
        if _is_before(stored) and _store(stored):
            return stored.model._base_manager.get(pk=stored.pk)  # type: ignore[return-value]
    if len(_kept[key]) == _MOST_VARIANTS:
        return make()
    tables, keys = _tables(), _values(redis_client().keys("*"))
    made = make()
    changes = {name: _Change.between(tables[name], rows) for name, rows in _tables().items()}
    _kept[key].append(
        _Stored(
            type(made),
            made.pk,
            {name: change for name, change in changes.items() if change.after},
            _Change.between(keys, _values(redis_client().keys("*"))),
        )
    )
    return made


def prepared_actor(role: str) -> Actor:
    """Return the actor of `tests.support.cluster.actor`, whose user is prepared."""

    def user() -> User:
        made = actor(role).user
        assert isinstance(made, User)
        return made

    return Actor(prepared(role, user), ADDRESS)


def _is_before(stored: _Stored) -> bool:
    """Return whether the rows and keys that would be replaced are as they were."""
    return all(
        _rows(table, change.before) == change.before for table, change in stored.tables.items()
    ) and (_values(stored.keys.before) == stored.keys.before)


def _store(stored: _Stored) -> bool:
    """Replace the rows and keys; return False if other rows do not allow that."""
    # Not by Django's cursor: tests count statements.
    database = connection.connection
    try:
        with transaction.atomic():
            for table, change in stored.tables.items():
                deleted = [(i,) for i, row in change.before.items() if row is not None]
                if deleted:
                    database.executemany(f'DELETE FROM "{table}" WHERE rowid = ?', deleted)
                columns, rows = _columns(table), list(filter(None, change.after.values()))
                if rows:
                    values = ", ".join("?" * len(rows[0]))
                    database.executemany(
                        f'INSERT INTO "{table}" ({", ".join(columns)}) VALUES ({values})', rows
                    )
    except IntegrityError:
        return False
    pipe = redis_client().pipeline(transaction=False)
    for name, value in stored.keys.after.items():
        if value is None:
            pipe.delete(name)
        else:
            pipe.restore(name, 0, value, replace=True)
    pipe.execute()
    return True


def _tables() -> dict[str, Content]:
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    return {name: _rows(name) for name in names}


def _rows(table: str, ids: Iterable[int] | None = None) -> Content:
    """Return rows by their row ids, None for those that do not exist; all rows without `ids`.

    As SQLite stores them: a column with a sign has no type to convert to.
    """
    chosen = None if ids is None else list(ids)
    where = "" if chosen is None else f" WHERE rowid IN ({', '.join(map(str, chosen))})"
    columns = ", ".join(f"+{name}" for name in _columns(table))
    found = connection.connection.execute(f'SELECT {columns} FROM "{table}"{where}').fetchall()
    return {**dict.fromkeys(chosen or ()), **{row[0]: row for row in found}}


@cache
def _columns(table: str) -> list[str]:
    found = connection.connection.execute(f'PRAGMA table_info("{table}")').fetchall()
    return ["rowid", *(f'"{column[1]}"' for column in found)]


def _values(names: Iterable[str | bytes]) -> Content:
    """Return the values of keys as Redis dumps them, None for keys that do not exist."""
    chosen = list(names)
    pipe = redis_client().pipeline(transaction=False)
    for name in chosen:
        pipe.dump(name)
    return dict(zip(chosen, pipe.execute(), strict=True))
