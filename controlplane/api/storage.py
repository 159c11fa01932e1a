"""Sizes of what Weir stores, and what retention keeps: GET /storage for members."""

from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema

from controlplane.api.common.schemas import dataclass_schema, fields_of
from controlplane.background.retention.kinds import KINDS, OTHERS, OtherGrowth
from controlplane.background.retention.sizes import StorageSizes, storage_sizes

router = Router(tags=["health"])


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


class StorageOut(fields_of(StorageSizes, without="read_s redis is_estimated")):  # type: ignore[misc]
    """Sizes, largest first, read at `read_at`, and what housekeeping keeps.

    redis: null if Redis does not respond. estimated: the sizes of keys are extrapolated.
    """

    read_at: datetime
    redis: RedisMemoryOut | None
    estimated: bool
    retention: list[RetentionOut]
    others: list[dataclass_schema(OtherGrowth)]  # type: ignore[valid-type]


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
