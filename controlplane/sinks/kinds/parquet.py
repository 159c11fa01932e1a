"""Parquet files in a directory or an object store, in a folder for each day of window starts.

A batch is one file per day. `_weir/<sink>.json` names the files that count and has the position
after them; it is replaced atomically after the files are in place. Before, the file `.next` names
the new files, and those that they replace: an interrupted batch or compaction is taken back, or
completed, when the sink starts again.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from controlplane.results.feed import FeedPlace
from controlplane.sinks.destination import DestinationAway, SinkContext
from controlplane.sinks.kinds.arrow import arrow_table, by_day
from controlplane.sinks.kinds.compaction import is_over, small_files
from controlplane.sinks.kinds.folder import SinkFolder, check_destination
from controlplane.sinks.kinds.settings import ParquetSettings

__all__ = ["check_destination", "open_destination"]
logger = logging.getLogger(__name__)
_ERRORS: Final = (OSError, pa.ArrowException)


def open_destination(settings: ParquetSettings, context: SinkContext) -> "ParquetFiles":
    """Open the directory, and delete the files of a batch that was interrupted."""
    folder = SinkFolder(settings)
    try:
        return ParquetFiles(folder, context)
    except _ERRORS as error:
        raise DestinationAway(str(error)) from error


class ParquetFiles:
    """An open directory."""

    def __init__(self, folder: SinkFolder, context: SinkContext) -> None:
        self._folder, self._context = folder, context
        state = folder.read(f"{context.uid}.json")
        self._number: int = state.get("number", 0)
        self._last: str = state["position"] if state.get("epoch") == context.epoch else ""
        self._days: dict[str, list[str]] = state.get("days", {})
        # Days of which there is nothing to join until another file is written.
        self._kept: set[str] = set()
        if last := folder.read(f"{context.uid}.next"):
            is_done = last["number"] <= self._number
            self._delete(last.get("replaced", ()) if is_done else last["files"])

    def position(self) -> FeedPlace | None:
        """Return the committed position of this epoch."""
        return FeedPlace.read(self._last) if self._last else None

    def write(self, rows: Sequence[tuple[Any, ...]], before: FeedPlace, after: FeedPlace) -> None:
        """Write a file for each day of the rows, then the position; join files of another day."""
        days = dict(by_day(arrow_table(self._context.table, rows))) if rows else {}
        try:
            self._commit({day: [table] for day, table in days.items()}, {}, str(after))
            self._compact(after)
        except _ERRORS as error:
            raise DestinationAway(str(error)) from error

    def close(self) -> None:
        """Do nothing: no file is open."""

    def _commit(
        self, days: Mapping[str, Sequence[pa.Table]], replaced: Mapping[str, Sequence[str]],
        position: str,
    ) -> None:  # fmt: skip
        """Write a file of tables for each day; `replaced`: the files that do not count any more."""
        uid, number = self._context.uid, self._number + 1
        names = {day: f"day={day}/{uid[:8]}-{number:012}.parquet" for day in days}
        old_names = [name for some in replaced.values() for name in some]
        if names:
            intent = {"number": number, "files": [*names.values()], "replaced": old_names}
            self._folder.replace(f"{uid}.next", intent)
        for day, tables in days.items():
            self._write(tables, names[day])
        known = {
            day: [name for name in self._days.get(day, ()) if name not in old_names]
            + ([names[day]] if day in names else [])
            for day in sorted({*self._days, *names})
        }
        state = {"epoch": self._context.epoch, "number": number, "position": position,
                 "days": known}  # fmt: skip
        self._folder.replace(f"{uid}.json", state)
        self._number, self._last, self._days = number, position, known
        self._kept -= names.keys()
        self._delete(old_names)

    def _write(self, tables: Sequence[pa.Table], name: str) -> None:
        temporary = self._folder.own(f"{self._context.uid}.parquet")
        with (
            self._folder.files.open_output_stream(temporary) as stream,
            pq.ParquetWriter(stream, tables[0].schema, compression="zstd") as writer,
        ):
            for table in tables:
                writer.write_table(table)
        self._folder.move_in(temporary, f"{self._folder.path}/{name}")

    def _compact(self, position: FeedPlace) -> None:
        """Join small files of the first day that has any and is over."""
        for day, names in self._days.items():
            if day in self._kept or len(names) < 2 or not is_over(day, position):  # noqa: PLR2004 - several
                continue
            self._kept.add(day)
            infos = self._folder.files.get_file_info([*map(self._path, names)])
            sizes = zip(names, (info.size for info in infos), strict=True)
            if (some := small_files(sizes)) and (tables := self._tables(some)):
                self._commit({day: tables}, {day: some}, self._last)
                return

    def _tables(self, names: Sequence[str]) -> list[pa.Table]:
        """Return the contents of files, none if they do not fit together or one was deleted."""
        tables = []
        try:
            for name in names:
                with self._folder.files.open_input_file(self._path(name)) as stream:
                    tables.append(pq.ParquetFile(stream).read())
        except _ERRORS:
            logger.warning("files of sink %s are not joined", self._context.name, exc_info=True)
            return []
        return tables if all(table.schema == tables[0].schema for table in tables) else []

    def _path(self, name: str) -> str:
        return f"{self._folder.path}/{name}"

    def _delete(self, names: Sequence[str]) -> None:
        for name in names:
            self._folder.delete(self._path(name))
