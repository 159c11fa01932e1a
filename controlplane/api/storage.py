"""Sizes of what Weir stores, and what retention keeps: GET /storage for members."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from controlplane.api.common.schemas import dataclass_schema, fields_of
from controlplane.background.retention.kinds import KINDS, OTHERS, OtherGrowth, RetentionKind
from controlplane.background.retention.sizes import StorageSizes, storage_sizes

router = Router(tags=["health"])


class RetentionOut(fields_of(RetentionKind, without="bound prune setting tables")):  # type: ignore[misc]
    """A kind of rows: its models, what is kept, and what is never deleted ("" for nothing).

    variable: the environment variable that changes the time, "" for a fixed one.
    """

    kept: str


class StorageOut(fields_of(StorageSizes, without="read_s is_estimated")):  # type: ignore[misc]
    """Sizes, largest first, read at `read_at`, and what housekeeping keeps.

    redis: null if Redis does not respond. estimated: the sizes of keys are extrapolated.
    """

    read_at: datetime = Field(validation_alias="read_s")
    estimated: bool = Field(validation_alias="is_estimated")
    retention: list[RetentionOut]
    others: list[dataclass_schema(OtherGrowth)]  # type: ignore[valid-type]

    resolve_retention = staticmethod(lambda _: KINDS)
    resolve_others = staticmethod(lambda _: OTHERS)


@router.get("", response=StorageOut)
def get_storage(request: HttpRequest) -> Any:
    """Return the sizes of tables, keys of Redis by kind and folders, and what is kept."""
    return storage_sizes()
