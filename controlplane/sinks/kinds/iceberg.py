"""An Iceberg table of a REST catalog or a catalog in a database, partitioned by day.

A batch is one snapshot. The position is a property of the table that the commit of the snapshot
sets, so that it outlives the snapshot. The catalog refuses a commit to a table that has changed
since it was loaded; the sink then loads it again.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import date, timedelta
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc
from django.utils import timezone
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan, _dataframe_to_data_files, schema_to_pyarrow
from pyiceberg.table import FileScanTask, Table, Transaction
from pyiceberg.transforms import DayTransform
from sqlalchemy.engine import make_url

from controlplane.errors import Invalid
from controlplane.results.feed import FeedPlace
from controlplane.sinks.columns import START
from controlplane.sinks.destination import DestinationAway, SinkContext
from controlplane.sinks.kinds.arrow import DAY, arrow_table, fitted
from controlplane.sinks.kinds.compaction import CLEAN_EVERY, DayFiles, small_files
from controlplane.sinks.kinds.folder import access_keys, away, check_endpoint
from controlplane.sinks.kinds.settings import IcebergSettings
from controlplane.wire.network.destinations import (
    NotAllowed,
    addresses,
    check_folder,
    check_whole,
    place_of,
)
from controlplane.wire.network.object_stores import CONNECT_S, REQUEST_S
from controlplane.wire.network.secrets import SecretOf, named_secret

# Replaced snapshots stay readable for so long; 20 files of metadata are kept.
_KEPT: Final = timedelta(days=1)
_PROPERTIES: Final = {
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "write.parquet.compression-codec": "zstd",
}
# Another attempt of pyiceberg would add the rows after a commit of another process.
_NO_RETRIES: Final = {"commit.retry.num-retries": "0"}


def check_destination(settings: IcebergSettings) -> None:
    """Raise `Invalid` unless the list of the site has the catalog and the warehouse."""
    try:
        _check(settings)
    except (NotAllowed, OSError) as refusal:
        raise Invalid({"settings.uri": [str(refusal)]}) from None
    check_endpoint(settings)


def open_destination(settings: IcebergSettings, context: SinkContext) -> "IcebergResults":
    """Open the table, and create it if it does not exist."""
    try:
        _check(settings)
        catalog = _catalog(settings)
        if not catalog.table_exists(settings.table):
            _create(catalog, settings.table, context)
        table = catalog.load_table(settings.table)
        for place in (table.location(), table.properties.get("write.data.path", "")):
            if place:
                check_folder(place)
    except (NotAllowed, OSError) as error:
        raise away(settings, error) from error
    return IcebergResults(table, context)


def _check(settings: IcebergSettings) -> None:
    parts = urlsplit(settings.uri)
    if parts.scheme == "sqlite":
        check_folder(f"file://{PurePosixPath(parts.path[1:]).parent}")
    elif settings.type == "sql":
        addresses("postgresql", parts.hostname or "", parts.port or 5432)
    else:
        # It decides where the files are: a public address is not enough.
        check_whole(place_of(settings.uri))
    if "://" in settings.warehouse:
        check_folder(settings.warehouse)


def _catalog(settings: IcebergSettings) -> Catalog:
    properties = {"type": settings.type, "uri": settings.uri, "warehouse": settings.warehouse}
    if settings.catalog_secret and settings.type == "sql":
        password = named_secret(SecretOf.SINKS, settings.catalog_secret)
        url = make_url(settings.uri).set(password=password)
        properties["uri"] = url.render_as_string(hide_password=False)
    elif settings.catalog_secret:
        properties["credential"] = named_secret(SecretOf.SINKS, settings.catalog_secret)
        properties["oauth2-server-uri"] = f"{settings.uri.rstrip('/')}/v1/oauth/tokens"
    return load_catalog("weir", **properties, **_store_properties(settings))


def _store_properties(settings: IcebergSettings) -> dict[str, str]:
    properties = {"s3.connect-timeout": str(CONNECT_S), "s3.request-timeout": str(REQUEST_S)}
    if keys := access_keys(settings):
        properties["s3.access-key-id"], properties["s3.secret-access-key"] = keys
    given = {"s3.endpoint": settings.endpoint, "s3.region": settings.region}
    return properties | {name: value for name, value in given.items() if value}


def _create(catalog: Catalog, name: str, context: SinkContext) -> None:
    catalog.create_namespace_if_not_exists(name.rpartition(".")[0])
    schema = arrow_table(context.table, ()).schema
    with (
        suppress(TableAlreadyExistsError),
        catalog.create_table_transaction(name, schema, properties=_PROPERTIES) as creation,
        creation.update_spec() as spec,
    ):
        spec.add_field(START.name, DayTransform(), DAY)


class IcebergResults:
    """An open table."""

    def __init__(self, table: Table, context: SinkContext) -> None:
        self._table, self._context = table, context
        self._property = f"weir.{context.uid}"
        self._days, self._commits = DayFiles(_day(task) for task in _files(table)), 0

    def position(self) -> FeedPlace | None:
        """Return the committed position of this epoch."""
        state = json.loads(self._table.properties.get(self._property, "{}"))
        is_present = state.get("epoch") == self._context.epoch
        return FeedPlace.read(state["position"]) if is_present else None

    def write(self, rows: Sequence[tuple[Any, ...]], before: FeedPlace, after: FeedPlace) -> None:
        """Commit rows and position as one snapshot; now and then join small files."""
        schema = schema_to_pyarrow(self._table.schema())
        content = fitted(arrow_table(self._context.table, rows), schema)
        state = json.dumps({"epoch": self._context.epoch, "position": str(after)})
        try:
            with self._transaction() as transaction:
                transaction.append(content, {self._property: state})
                transaction.set_properties({self._property: state})
            self._commits += 1
            self._days.add(pc.cast(content[START.name], pa.date32()).to_pylist())
            self._compact(after)
        except CommitFailedException as error:
            raise DestinationAway(str(error)) from error

    def close(self) -> None:
        """Do nothing: connections are those of the catalog."""

    def _transaction(self) -> Transaction:
        metadata = self._table.metadata
        properties = {**metadata.properties, **_NO_RETRIES}
        self._table.metadata = metadata.model_copy(update={"properties": properties})
        return self._table.transaction()

    def _compact(self, position: FeedPlace) -> None:
        """Join small files of a day; now and then forget old snapshots."""
        if day := self._days.due(position):
            tasks = {item.file.file_path: item for item in _files(self._table) if _day(item) == day}
            sizes = ((path, item.file.file_size_in_bytes) for path, item in tasks.items())
            if some := small_files(sizes):
                self._join([tasks[path] for path in some])
        if self._commits % CLEAN_EVERY == 0:
            before = timezone.now() - _KEPT
            self._table.maintenance.expire_snapshots().older_than(before).commit()

    def _join(self, tasks: Sequence[FileScanTask]) -> None:
        table = self._table
        rows = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue()).to_table(tasks)
        with (
            self._transaction() as transaction,
            transaction.update_snapshot().overwrite() as overwrite,
        ):
            for task in tasks:
                overwrite.delete_data_file(task.file)
            for file in _dataframe_to_data_files(
                transaction.table_metadata, rows, table.io, overwrite.commit_uuid
            ):
                overwrite.append_data_file(file)


def _files(table: Table) -> Iterable[FileScanTask]:
    """Return the files, if the table is partitioned by day alone."""
    is_by_day = [field.name for field in table.spec().fields] == [DAY]
    return table.scan().plan_files() if is_by_day else ()


def _day(task: FileScanTask) -> str:
    return str(date(1970, 1, 1) + timedelta(days=task.file.partition[0]))
