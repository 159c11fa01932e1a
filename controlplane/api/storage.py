"""Sizes of what Weir stores, and what retention keeps: GET /storage for members."""

from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema

from controlplane.background.retention.kinds import KINDS, OTHERS
from controlplane.background.retention.sizes import storage_sizes

router = Router(tags=["health"])


class SizeOut(Schema):
    """The size of a table, kind of key or folder in bytes, and its rows, keys or files.

    Null where unknown.
    """

    name: str
    size: int | None
    items: int | None


class RedisMemoryOut(Schema):
    """The memory of Redis and its limit in bytes; limit 0 for none."""

    used: int
    limit: int


class RetentionOut(Schema):
    """A kind of rows: its models, what is kept, and what is never deleted ("" for nothing).

    variable: the environment variable that changes the time, "" for a fixed one.
    """

    name: str
    models: list[str]
    kept: str
    always: str
    variable: str


class GrowthOut(Schema):
    """Something outside the database that grows, its place, and its bound."""

    name: str
    place: str
    bound: str


class StorageOut(Schema):
    """Sizes, largest first, read at `read_at`, and what housekeeping keeps.

    redis: null if Redis does not respond. estimated: the sizes of keys are extrapolated.
    """

    read_at: datetime
    tables: list[SizeOut]
    redis: RedisMemoryOut | None
    keys: list[SizeOut]
    estimated: bool
    folders: list[SizeOut]
    retention: list[RetentionOut]
    others: list[GrowthOut]


@router.get("", response=StorageOut)
def get_storage(request: HttpRequest) -> Any:
    """Return the sizes of tables, keys of Redis by kind and folders, and what is kept."""
    sizes = storage_sizes()
    return {
        "read_at": datetime.fromtimestamp(sizes.read_s, UTC),
        "tables": sizes.tables,
        "redis": sizes.redis,
        "keys": sizes.keys,
        "estimated": sizes.is_estimated,
        "folders": sizes.folders,
        "retention": KINDS,
        "others": OTHERS,
    }
