"""The database of a model: `results` for archived windows, `default` for all others."""

from typing import Any

from django.db import connections

from controlplane.results.archive.apps import ArchiveConfig

RESULTS = "results"
DEFAULT = "default"
_SAME = ("ENGINE", "NAME", "HOST", "PORT")


def is_shared() -> bool:
    """Return whether both aliases are one database (PostgreSQL without a second one)."""
    default, results = (connections[alias].settings_dict for alias in (DEFAULT, RESULTS))
    return all(default.get(name) == results.get(name) for name in _SAME)


def aliases() -> list[str]:
    """Return the aliases of the databases, each database once."""
    return [DEFAULT] if is_shared() else [DEFAULT, RESULTS]


class ArchiveRouter:
    """Sends the archive's models to the alias `results`."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        """Return the alias that a model is read from and written to, None for no opinion."""
        return RESULTS if model._meta.app_label == ArchiveConfig.label else None  # noqa: SLF001 - Django's documented name

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        """Return whether a database holds the tables of an application."""
        if is_shared():
            # One list of applied migrations: the default alias makes all tables.
            return db == DEFAULT
        return (db == RESULTS) == (app_label == ArchiveConfig.label)
