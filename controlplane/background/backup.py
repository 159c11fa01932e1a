"""Backup of a site into a directory, and its restoration; databases by their own means.

SQLite is copied by its backup API while Weir runs, PostgreSQL by pg_dump and pg_restore. Redis and
the checkpoints change with each micro-batch, so they are copied only while Weir is stopped, and
only from the data directory; without them a restored site repairs both losses. Secrets are never
copied: keep `secrets/` apart.
"""

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management import call_command
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone
from redis.exceptions import RedisError

from controlplane.connections import redis_client
from controlplane.errors import WeirError
from controlplane.processes.runtime.beats import last_beats, now_ms
from controlplane.processes.runtime.process_kinds import PROCESSES
from controlplane.wire.redaction import HIDDEN, without_password

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
# Folders of the data directory that fit together only while Weir is stopped.
FOLDERS: Final = ("redis", "checkpoints")
# Tables with rows at every site that somebody has used.
_USED: Final = ("controlplane_cluster", "auth_user", "controlplane_auditentry")
_SECRET_WORDS: Final = ("KEY", "SECRET", "PASSWORD", "TOKEN")
_LONGEST_S: Final = 6 * 3600


class BackupError(WeirError):
    """A backup that cannot be made or restored; str() has the reason and what to do."""


@dataclass(frozen=True)
class Copied:
    """What a command copied, and what it left out and why."""

    copied: list[str]
    left: list[str]


def backup(folder: Path) -> Copied:
    """Write a backup of this site into a new or empty directory. Raises `BackupError`."""
    if folder.exists() and any(folder.iterdir()):
        raise BackupError(f"{folder} is not empty: name a new directory")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    files = {alias: _dump(alias, folder) for alias in _aliases()}
    folders, left = [], []
    if _is_running():
        left = [f"{name}/: Weir runs, and copies of different moments are a loss: stop it first"
                for name in FOLDERS]  # fmt: skip
    else:
        folders = [name for name in FOLDERS if (settings.DATA_DIR / name).is_dir()]
        for name in folders:
            shutil.copytree(settings.DATA_DIR / name, folder / name, symlinks=True)
    left.append("secrets/: keep the folder apart; without it, secrets of webhooks change")
    manifest = {
        "format": FORMAT,
        "weir": version("weir"),
        "made_at": timezone.now().isoformat(),
        "migrations": sorted(".".join(name) for name in _applied()),
        "databases": {alias: {"engine": _engine(alias), "file": file.name, "sha256": _digest(file)}
                      for alias, file in files.items()},
        "folders": folders,
        "settings": _settings(),
    }  # fmt: skip
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
    return Copied([*(file.name for file in files.values()), *folders, MANIFEST], left)


def restore(folder: Path, *, force: bool = False) -> Copied:
    """Replace the contents of this site by a backup, and migrate it. Raises `BackupError`.

    `force`: also over a site that has rows.
    """
    manifest = _checked_manifest(folder)
    if _is_running():
        raise BackupError("Weir runs: stop it first")
    if not force and (used := _used()):
        raise BackupError(f"This site has rows in {', '.join(used)}: --force replaces them")
    for alias, row in manifest["databases"].items():
        _load(alias, folder / row["file"])
    for name in FOLDERS:
        place = settings.DATA_DIR / name
        # What does not belong to the restored database is a loss that Weir repairs only if absent.
        shutil.rmtree(place, ignore_errors=True)
        if name in manifest["folders"]:
            shutil.copytree(folder / name, place, symlinks=True)
    connections.close_all()
    call_command("migrate_all", verbosity=0)
    absent = [name for name in FOLDERS if name not in manifest["folders"]]
    left = [f"{name}/: not in the backup; Weir repairs what is missing" for name in absent]
    return Copied([*manifest["databases"], *manifest["folders"]], left)


def _checked_manifest(folder: Path) -> Mapping[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError) as error:
        raise BackupError(f"{folder} holds no backup: {error}") from None
    if manifest.get("format") != FORMAT:
        raise BackupError(f"The backup has format {manifest.get('format')}, not {FORMAT}")
    known = {".".join(name) for name in MigrationLoader(None).disk_migrations}
    if newer := [name for name in manifest["migrations"] if name not in known]:
        text = f"The backup is of Weir {manifest['weir']}, which has {newer[-1]}: install that one"
        raise BackupError(text)
    if set(manifest["databases"]) != set(_aliases()):
        names = ", ".join(manifest["databases"])
        raise BackupError(f"The backup has the databases {names}, and this site other ones")
    for alias, row in manifest["databases"].items():
        if row["engine"] != _engine(alias):
            text = f"{alias}: the backup is of {row['engine']}, this site has {_engine(alias)}"
            raise BackupError(text)
        if _digest(folder / row["file"]) != row["sha256"]:
            raise BackupError(f"{row['file']} is not as it was written: take another backup")
    return manifest


def _aliases() -> list[str]:
    """Return the databases; results may be in the same one."""
    places = [_place(alias) for alias in ("default", "results")]
    return ["default"] if places[0] == places[1] else ["default", "results"]


def _place(alias: str) -> tuple[Any, ...]:
    config = settings.DATABASES[alias]
    return tuple(str(config.get(name, "")) for name in ("ENGINE", "NAME", "HOST", "PORT"))


def _engine(alias: str) -> str:
    return str(connections[alias].vendor)


def _applied() -> set[tuple[str, str]]:
    return set(MigrationLoader(connections["default"]).applied_migrations)


def _dump(alias: str, folder: Path) -> Path:
    connection = connections[alias]
    connection.ensure_connection()
    if connection.vendor == "sqlite":
        file = folder / f"{alias}.sqlite3"
        with closing(sqlite3.connect(file)) as target:
            connection.connection.backup(target)
        return file
    file = folder / f"{alias}.dump"
    _run_postgres(alias, "pg_dump", "--format=custom", "--no-owner", "--no-privileges",
                  f"--file={file}")  # fmt: skip
    return file


def _load(alias: str, file: Path) -> None:
    connection = connections[alias]
    if connection.vendor == "sqlite":
        connection.ensure_connection()
        with closing(sqlite3.connect(file)) as source:
            source.backup(connection.connection)
        return
    connections.close_all()
    _run_postgres(alias, "pg_restore", "--clean", "--if-exists", "--no-owner", "--no-privileges",
                  "--single-transaction", "--exit-on-error", str(file))  # fmt: skip


def _run_postgres(alias: str, program: str, *words: str) -> None:
    """Run a program of PostgreSQL on a database; its password is not an argument."""
    if shutil.which(program) is None:
        text = f"{program} is not installed: install PostgreSQL's client programs of its version"
        raise BackupError(text)
    config = connections[alias].get_connection_params()
    environment = dict(os.environ)
    for name, variable in (("host", "PGHOST"), ("port", "PGPORT"), ("user", "PGUSER"),
                           ("password", "PGPASSWORD"), ("sslmode", "PGSSLMODE")):  # fmt: skip
        if config.get(name):
            environment[variable] = str(config[name])
    command = [program, f"--dbname={config['dbname']}", *words]
    done = subprocess.run(  # noqa: S603 - a program of PostgreSQL
        command, env=environment, check=False, capture_output=True, text=True, timeout=_LONGEST_S
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise BackupError(f"{program} failed: {lines[0][:300]}")


def _used() -> list[str]:
    connection = connections["default"]
    tables = set(connection.introspection.table_names())
    used: list[str] = []
    with connection.cursor() as cursor:
        for table in _USED:
            if table in tables:
                cursor.execute(f"SELECT 1 FROM {table} LIMIT 1")  # noqa: S608 - a name of ours
                used += [table] if cursor.fetchone() else []
    return used


def _is_running() -> bool:
    """Return whether a process of Weir has a young heartbeat; without Redis none runs."""
    kinds = {kind.name: kind for kind in PROCESSES}
    try:
        beats = last_beats(redis_client())
    except RedisError:
        return False
    return any(
        now_ms() - beat_ms < kind.timeout_s * 1000
        for field, beat_ms in beats.items()
        if (kind := kinds.get(field.partition("/")[0])) is not None
    )


def _settings() -> Mapping[str, str]:
    """Return the variables of Weir, with secrets and passwords hidden."""
    names = sorted(name for name in os.environ if name.startswith(("WEIR_", "DATABASE_", "REDIS_")))
    return {
        name: HIDDEN if any(word in name for word in _SECRET_WORDS) and not name.endswith("_FILE")
        else without_password(os.environ[name])
        for name in names
    }  # fmt: skip


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
