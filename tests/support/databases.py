"""Test databases: migrated once for the state of the migrations, copied by every test process."""

import fcntl
import hashlib
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import django
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase

from controlplane.access import audit_triggers
from controlplane.results.database import RESULTS, create_results_tables
from controlplane.wire.results import tables as results_tables
from controlplane.wire.results.tables import TABLES
from tests.support.postgres import database_on, postgres_version, write_data_directory

# Rows that Django makes after migrations; `flush` would delete them and make them anew.
_KEPT = (ContentType._meta.db_table, Permission._meta.db_table)


class Templates:
    """Migrated databases in a folder named by what they are made from.

    The first process that needs one makes it; a lock of the folder lets the others wait.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._folder = home / _digest()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._home.mkdir(parents=True, exist_ok=True)
        with (self._home / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for other in self._home.iterdir():
                if other.is_dir() and other != self._folder:
                    shutil.rmtree(other)
            self._folder.mkdir(exist_ok=True)
            yield

    def copy_sqlite(self, alias: str, target: Path) -> None:
        """Write a migrated database for an alias, whose settings name `target` from now on."""
        template = self._folder / f"{alias}.sqlite3"
        with self._locked():
            if not template.exists():
                _migrate(alias, target)
                # Written under another name first: a killed process leaves no half template.
                unfinished = template.with_suffix(".unfinished")
                unfinished.unlink(missing_ok=True)
                _backup(target, unfinished)
                unfinished.rename(template)
            else:
                shutil.copyfile(template, target)
        _use_file(alias, target)

    def postgres(self) -> Path:
        """Return a data directory of PostgreSQL that has the migrated database."""
        template = self._folder / f"postgresql-{postgres_version()}"
        with self._locked():
            if not template.exists():
                unfinished = template.with_suffix(".unfinished")
                shutil.rmtree(unfinished, ignore_errors=True)
                write_data_directory(unfinished, database_on)
                unfinished.rename(template)
        return template


def _digest() -> str:
    """Return a hash of everything that the tables are made from."""
    digest = hashlib.sha256(f"{django.VERSION} {sqlite3.sqlite_version}".encode())
    digest.update(Path(results_tables.__file__).read_bytes() + Path(__file__).read_bytes())
    for config in apps.get_app_configs():
        folder = Path(config.path)
        files = [*folder.glob("migrations/*.py"), *folder.glob("models.py")]
        for file in sorted([*files, *folder.glob("models/**/*.py")]):
            digest.update(str(file.relative_to(folder)).encode() + file.read_bytes())
    return digest.hexdigest()[:24]


def _migrate(alias: str, target: Path) -> None:
    """Make the tables of an alias as `migrate_all` does: those of results alone in `results`."""
    connection = connections[alias]
    connection.close()
    connection.settings_dict["NAME"] = str(target)
    if alias == RESULTS:
        create_results_tables()
        with connection.cursor() as cursor:
            # Django's `flush` expects the table that SQLite makes with the first such key.
            cursor.execute("CREATE TABLE numbered (id INTEGER PRIMARY KEY AUTOINCREMENT)")
            cursor.execute("DROP TABLE numbered")
    else:
        call_command("migrate", database=alias, interactive=False, verbosity=0)
        # Tests with transactions of their own delete all rows afterwards.
        audit_triggers.remove(connection)
    connection.close()


def _backup(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as read, closing(sqlite3.connect(target)) as written:
        read.backup(written)


def _use_file(alias: str, target: Path) -> None:
    for config in (settings.DATABASES[alias], connections[alias].settings_dict):
        config["NAME"] = str(target)
        # The file does not outlive the tests: it need not survive a loss of power.
        start = config["OPTIONS"]["init_command"]
        config["OPTIONS"] = {
            **config["OPTIONS"],
            "init_command": f"{start} PRAGMA synchronous=OFF;",
        }


def delete_rows_faster(patch: Any) -> None:
    """Let tests with transactions of their own delete the rows of the tables that have any.

    Django's `flush` deletes from every table, then makes content types and permissions anew.
    """
    base: Any = TransactionTestCase
    flush = base._fixture_teardown
    made: dict[tuple[str, str], list[object]] = {}

    def teardown(case: Any) -> None:
        aliases = case._databases_names(include_mirrors=False)
        names = {alias: (alias, str(connections[alias].settings_dict["NAME"])) for alias in aliases}
        # In all of them: Django's `flush` knows no tables of results.
        as_made = [_delete_rows(connections[alias], made.get(names[alias])) for alias in aliases]
        if all(as_made):
            return
        flush(case)
        made.update({names[alias]: _made_by_django(connections[alias]) for alias in aliases})

    patch.setattr(base, "_fixture_teardown", teardown)


def _delete_rows(connection: BaseDatabaseWrapper, made: list[object] | None) -> bool:
    """Delete all rows but those that Django makes; return False if these are not as `made`."""
    django = connection.introspection.django_table_names(only_existing=True, include_views=False)
    existing = set(connection.introspection.table_names())
    tables = [name for name in (*django, *TABLES) if name in existing]
    deleted = _with_rows(connection, [name for name in tables if name not in _KEPT])
    with (
        connection.constraint_checks_disabled(),
        transaction.atomic(connection.alias),
        connection.cursor() as cursor,
    ):
        for table in deleted:
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")
    return made == _made_by_django(connection)


def _with_rows(connection: BaseDatabaseWrapper, tables: list[str]) -> list[str]:
    # On PostgreSQL both aliases are one database, and the tables are those of `default`.
    if not tables:
        return []
    quote = connection.ops.quote_name
    asked = " UNION ALL ".join(
        f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {quote(table)})" for table in tables
    )
    with connection.cursor() as cursor:
        cursor.execute(asked)
        return [name for (name,) in cursor.fetchall()]


def _made_by_django(connection: BaseDatabaseWrapper) -> list[object]:
    existing = set(_KEPT).intersection(connection.introspection.table_names())
    rows: list[object] = []
    with connection.cursor() as cursor:
        for table in sorted(existing):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)} ORDER BY id")
            rows += cursor.fetchall()
    return rows
