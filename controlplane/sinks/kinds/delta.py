"""A Delta table, partitioned by the day of window starts.

A batch is one commit with a transaction identifier, whose version is larger than the one before.
The position of a version is in `_weir/<sink>-<version>.json`, which is written before the commit.
Delta refuses the commit if another process has committed for this sink meanwhile.
"""

import time
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError

from controlplane.results.feed import FeedPlace
from controlplane.sinks.destination import SinkContext
from controlplane.sinks.kinds.arrow import DAY, fitted, table_with_day
from controlplane.sinks.kinds.compaction import CLEAN_EVERY, MOST, SMALL, DayFiles
from controlplane.sinks.kinds.folder import SinkFolder, access_keys, away, check_destination
from controlplane.sinks.kinds.settings import DeltaSettings
from controlplane.wire.network.object_stores import CONNECT_S, REQUEST_S

__all__ = ["check_destination", "open_destination"]
_ERRORS: Final = (DeltaError, OSError, pa.ArrowException)
# What is replaced stays readable for a day; then Delta deletes it.
_CONFIGURATION: Final = {
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
}


def open_destination(settings: DeltaSettings, context: SinkContext) -> "DeltaResults":
    """Open the table, and create it if it does not exist."""
    folder, options = SinkFolder(settings), _storage_options(settings)
    try:
        # `is_deltatable` would stop all threads until a store has answered.
        try:
            table = DeltaTable(settings.url, storage_options=options)
        except TableNotFoundError:
            table = DeltaTable.create(
                settings.url, table_with_day(context.table, ()).schema, mode="ignore",
                partition_by=[DAY], configuration=_CONFIGURATION, storage_options=options,
            )  # fmt: skip
        return DeltaResults(table, folder, settings, context)
    except _ERRORS as error:
        raise away(settings, error) from error


def _storage_options(settings: DeltaSettings) -> dict[str, str]:
    """Return the options of the object store, none for a directory."""
    if not settings.is_remote:
        return {}
    options = {"connect_timeout": f"{CONNECT_S}s", "timeout": f"{3 * REQUEST_S}s",
               "max_retries": "2", "retry_timeout": f"{3 * REQUEST_S}s"}  # fmt: skip
    if keys := access_keys(settings):
        options["AWS_ACCESS_KEY_ID"], options["AWS_SECRET_ACCESS_KEY"] = keys
    if settings.endpoint:
        options |= {"AWS_ENDPOINT_URL": settings.endpoint, "AWS_ALLOW_HTTP": "true"}
    return options | ({"AWS_REGION": settings.region} if settings.region else {})


class DeltaResults:
    """An open table."""

    def __init__(
        self, table: DeltaTable, folder: SinkFolder, settings: DeltaSettings, context: SinkContext
    ) -> None:
        self._table, self._folder, self._context = table, folder, context
        self._settings = settings
        arrow: Any = table.schema()
        self._schema = pa.schema(arrow)
        self._version = table.transaction_version(context.uid)
        state = folder.read(self._name(self._version)) if self._version else {}
        self._last: str = state["position"] if state.get("epoch") == context.epoch else ""
        self._days = DayFiles(_days(table))
        self._commits = 0

    def position(self) -> FeedPlace | None:
        """Return the committed position of this epoch."""
        return FeedPlace.read(self._last) if self._last else None

    def write(self, rows: Sequence[tuple[Any, ...]], before: FeedPlace, after: FeedPlace) -> None:
        """Commit rows and version, then join files of a day."""
        content = fitted(table_with_day(self._context.table, rows), self._schema)
        version, last = max(time.time_ns(), (self._version or 0) + 1), self._version
        state = {"epoch": self._context.epoch, "position": str(after)}
        try:
            self._folder.replace(self._name(version), state)
            write_deltalake(
                self._table, content, mode="append",
                commit_properties=CommitProperties(
                    {"weir": str(after)}, app_transactions=[Transaction(self._context.uid, version)]
                ),
            )  # fmt: skip
            self._version, self._last = version, str(after)
            if last:
                self._folder.delete(self._folder.own(self._name(last)))
            self._days.add(content[DAY].to_pylist() if DAY in self._schema.names else ())
            self._compact(after)
        except _ERRORS as error:
            raise away(self._settings, error) from error

    def close(self) -> None:
        """Do nothing: no connection is kept."""

    def _name(self, version: int | None) -> str:
        return f"{self._context.uid}-{version}.json"

    def _compact(self, position: FeedPlace) -> None:
        """Join the files of a day that has many, or several and is over; delete unused ones."""
        self._commits += 1
        if day := self._days.due(position):
            self._table.optimize.compact(
                [(DAY, "=", day)], target_size=SMALL, max_concurrent_tasks=1, max_spill_size=MOST
            )
        if self._commits % CLEAN_EVERY == 0:
            self._table.vacuum(dry_run=False)
            self._table.cleanup_metadata()


def _days(table: DeltaTable) -> list[Any]:
    """Return the day of each file, if the table is partitioned by day alone."""
    if table.metadata().partition_columns != [DAY]:
        return []
    days: list[Any] = pa.table(table.get_add_actions(flatten=True))[f"partition.{DAY}"].to_pylist()
    return days
