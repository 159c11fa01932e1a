"""Parquet files in a directory or an object store, in a folder for each day of window starts.

A batch is one file per day. `_weir/<sink>.json` has the number of the newest batch and the
position after it, and is replaced atomically after its files are in place. Before, the file
`.next` names them, so that those of a batch that was interrupted are deleted.
"""

import json
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from controlplane.errors import Invalid
from controlplane.results.feed import FeedPlace
from controlplane.sinks.destination import DestinationAway, SinkContext, named_secret
from controlplane.sinks.kinds.arrow import arrow_table, by_day
from controlplane.sinks.kinds.settings import ParquetSettings
from controlplane.wire.network.destinations import NotAllowed, check_folder

_OWN: Final = "_weir"


def check_destination(settings: ParquetSettings) -> None:
    """Raise `Invalid` unless the list of the site has the directory, or one around it."""
    try:
        check_folder(settings.url)
    except NotAllowed as refusal:
        raise Invalid({"settings.url": [str(refusal)]}) from None


def open_destination(settings: ParquetSettings, context: SinkContext) -> "ParquetFiles":
    """Open the directory, and delete the files of a batch that was interrupted."""
    try:
        check_folder(settings.url)
        return ParquetFiles(_file_system(settings), _path(settings.url), context)
    except (NotAllowed, OSError, pa.ArrowException) as error:
        raise DestinationAway(str(error)) from error


def _path(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.netloc}{unquote(parts.path)}".rstrip("/")


def _file_system(settings: ParquetSettings) -> fs.FileSystem:
    if settings.url.startswith("file:"):
        return fs.LocalFileSystem()
    if not settings.secret:
        return fs.S3FileSystem()
    access, _, secret = named_secret(settings.secret).partition(":")
    return fs.S3FileSystem(access_key=access, secret_key=secret)


class ParquetFiles:
    """An open directory."""

    def __init__(self, files: fs.FileSystem, path: str, context: SinkContext) -> None:
        self._files, self._path, self._context = files, path, context
        self._own = f"{path}/{_OWN}/{context.uid}"
        self._number, self._last = 0, ""
        files.create_dir(f"{path}/{_OWN}", recursive=True)
        if state := self._read(f"{self._own}.json"):
            self._number = state["number"]
            self._last = state["position"] if state["epoch"] == context.epoch else ""
        if (unfinished := self._read(f"{self._own}.next")) and unfinished["number"] > self._number:
            for name in unfinished["files"]:
                self._delete(f"{path}/{name}")

    def position(self) -> FeedPlace | None:
        """Return the committed position of this epoch."""
        return FeedPlace.read(self._last) if self._last else None

    def write(self, rows: Sequence[tuple[Any, ...]], before: FeedPlace, after: FeedPlace) -> None:
        """Write a file for each day of the rows, then the position."""
        number = self._number + 1
        days = dict(by_day(arrow_table(self._context.table, rows))) if rows else {}
        name = f"{self._context.uid[:8]}-{number:012}.parquet"
        names = {day: f"day={day}/{name}" for day in days}
        state = {"epoch": self._context.epoch, "number": number, "position": str(after),
                 "files": list(names.values())}  # fmt: skip
        try:
            if names:
                self._replace(f"{self._own}.next", json.dumps(state).encode())
            for day, table in days.items():
                self._write(table, f"{self._path}/{names[day]}")
            self._replace(f"{self._own}.json", json.dumps(state).encode())
        except (OSError, pa.ArrowException) as error:
            raise DestinationAway(str(error)) from error
        self._number = number

    def close(self) -> None:
        """Do nothing: no file is open."""

    def _write(self, table: pa.Table, path: str) -> None:
        self._files.create_dir(str(PurePosixPath(path).parent), recursive=True)
        # Readers take no notice of names that begin with a dot or an underscore.
        temporary = f"{self._own}.parquet"
        with self._files.open_output_stream(temporary) as stream:
            pq.write_table(table, stream, compression="zstd")
        self._files.move(temporary, path)

    def _replace(self, path: str, content: bytes) -> None:
        with self._files.open_output_stream(f"{path}.new") as stream:
            stream.write(content)
        self._files.move(f"{path}.new", path)

    def _read(self, path: str) -> dict[str, Any]:
        if self._files.get_file_info(path).type is fs.FileType.NotFound:
            return {}
        with self._files.open_input_stream(path) as stream:
            state: dict[str, Any] = json.loads(stream.read())
        return state

    def _delete(self, path: str) -> None:
        if self._files.get_file_info(path).type is not fs.FileType.NotFound:
            self._files.delete_file(path)
