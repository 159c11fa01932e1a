"""Sizes of what Weir stores: database tables, keys of Redis by kind, and the data directory."""

import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Final

from django.conf import settings
from django.db import DatabaseError, connections
from redis.exceptions import RedisError

from controlplane.connections import redis_client
from controlplane.health.liveness.readings import RedisMemory
from controlplane.results.database import aliases

# A survey reads a part of the disk and of Redis: all readers share one for this time (s).
FRESH_S: Final = 60.0
# Above this size the pages of SQLite are not counted per table, which reads the whole file.
MAX_COUNTED: Final = 512 * 2**20
# Keys of Redis whose memory is read; the others are estimated from them.
MAX_KEYS: Final = 5_000
MAX_FILES: Final = 200_000
_CLUSTER: Final = re.compile(r"^weir:\{[^}]*\}:")
_NUMBER: Final = re.compile(
    r"(?<=[:.!])(?:[0-9]+|[0-9a-f]{8,})(?=[:.!]|$)|[!.][0-9a-zA-Z!]{12,}.*$"
)


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a table, kind of key or folder: bytes and items, None where unknown."""

    name: str
    size: int | None
    items: int | None = None


@dataclass(frozen=True, slots=True)
class StorageSizes:
    """Sizes by place, largest first, read at `read_s` (s since 1970).

    `redis` is None if Redis does not respond. `is_estimated`: the sizes of kinds of keys are
    extrapolated from a sample.
    """

    read_s: float
    tables: list[Size] = field(default_factory=list)
    redis: RedisMemory | None = None
    keys: list[Size] = field(default_factory=list)
    is_estimated: bool = False
    folders: list[Size] = field(default_factory=list)


_lock = Lock()
_kept: dict[str, StorageSizes] = {}


def storage_sizes() -> StorageSizes:
    """Return the sizes, at most a minute old."""
    with _lock:
        known = _kept.get(settings.REDIS_URL)
        if known is None or time.time() - known.read_s > FRESH_S:
            _kept.clear()
            known = _kept[settings.REDIS_URL] = _survey()
        return known


def _survey() -> StorageSizes:
    tables = [size for alias in aliases() for size in _tables(alias)]
    folders = list(_folders(Path(settings.DATA_DIR)))
    try:
        memory, keys, is_estimated = _redis()
    except (RedisError, OSError):
        return StorageSizes(time.time(), _largest(tables), folders=_largest(folders))
    return StorageSizes(
        time.time(), _largest(tables), memory, _largest(keys), is_estimated, _largest(folders)
    )


def _largest(sizes: list[Size]) -> list[Size]:
    return sorted(sizes, key=lambda size: (-(size.size or 0), size.name))


def _tables(alias: str) -> Iterator[Size]:
    connection = connections[alias]
    statement = _POSTGRES if connection.vendor == "postgresql" else _SQLITE
    name = Path(str(connection.settings_dict["NAME"]))
    if connection.vendor == "sqlite" and name.exists() and name.stat().st_size > MAX_COUNTED:
        yield Size(f"{name.name} (all tables)", name.stat().st_size)
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            rows: list[Any] = cursor.fetchall()
    except DatabaseError:
        # A SQLite without dbstat.
        return
    for table, size, items in rows:
        yield Size(str(table), int(size), None if items is None else max(0, int(items)))


# Indexes count to their table; cells of leaves are rows.
_SQLITE: Final = """
    SELECT s.tbl_name, SUM(d.pgsize), NULL FROM dbstat d JOIN sqlite_schema s ON s.name = d.name
    WHERE d.aggregate = TRUE GROUP BY s.tbl_name
"""
_POSTGRES: Final = """
    SELECT c.relname, pg_total_relation_size(c.oid), c.reltuples FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND n.nspname = current_schema()
"""


def kind_of_key(key: str) -> str:
    """Return the kind of a key: its name without cluster, numbers and random parts."""
    return _NUMBER.sub("*", _CLUSTER.sub("", key))[:60]


def _redis() -> tuple[RedisMemory, list[Size], bool]:
    client = redis_client()
    info: dict[str, Any] = client.info("memory")
    memory = RedisMemory(int(info["used_memory"]), int(info["maxmemory"]))
    total = int(client.dbsize())
    names = []
    for name in client.scan_iter(count=1000):
        names.append(name)
        if len(names) >= MAX_KEYS:
            break
    pipe = client.pipeline(transaction=False)
    for name in names:
        pipe.memory_usage(name, samples=1)
    sizes: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for name, size in zip(names, pipe.execute(), strict=True):
        kind = kind_of_key(name.decode("utf-8", "replace"))
        sizes[kind] += size or 0
        counts[kind] += 1
    scale = max(1.0, total / len(names)) if names else 1.0
    kinds = [
        Size(kind, round(size * scale), round(counts[kind] * scale)) for kind, size in sizes.items()
    ]
    return memory, kinds, len(names) < total


def _folders(data: Path) -> Iterator[Size]:
    """Yield the size of each folder and file of the data directory."""
    files = 0
    for entry in os.scandir(data) if data.is_dir() else ():
        size = count = 0
        for folder, _, names in os.walk(entry.path) if entry.is_dir() else (("", (), ()),):
            for name in names:
                files += 1
                if files > MAX_FILES:
                    break
                size += _file_size(f"{folder}/{name}")
                count += 1
        if not entry.is_dir():
            size, count = _file_size(entry.path), 1
        yield Size(entry.name, size, count)


def _file_size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        # Deleted meanwhile.
        return 0


def forget() -> None:
    """Read the sizes again at the next request."""
    with _lock:
        _kept.clear()
