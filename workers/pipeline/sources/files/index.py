"""The index of files: which files a source has had, in the order in which they were found.

It is in the database of results, only grows at its end, and gives each row of a file an offset in
a partition. So a position is a number, and a batch that is repeated reads the same rows of the
same files. An entry with a `fault` has one offset, whose dead letter names it.
"""

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

from controlplane.wire.results.database import PATIENCE_S, ConnectedDatabase
from controlplane.wire.sources.files import FileSource
from workers.pipeline.sources.files.store import ListedFile
from workers.pipeline.sources.plan import PartitionRange

_VARIABLE: Final = "WEIR_RESULTS_URL"
_COLUMNS: Final = "part, start, rows, name, size, modified_ns, places, names, fault"
_FROM: Final = " FROM results_file WHERE cluster = ? AND stream = ? AND identity = ? "
_ENDS: Final = "SELECT part, MAX(start + rows)"
_VALUES: Final = f"(cluster, stream, identity, number, {_COLUMNS}) VALUES ({', '.join('?' * 13)})"
_NEWEST: Final = (
    "(SELECT MAX(number) FROM results_file AS newest WHERE newest.cluster = results_file.cluster"
    " AND newest.stream = results_file.stream AND newest.identity = results_file.identity"
    " AND newest.part = results_file.part)"
)
_READ: Final = f"AND name = ? AND part = ? AND start + rows <= ? AND number < {_NEWEST}"


class IndexedFile(NamedTuple):
    """A file whose rows have the offsets from `start` in a partition; see `Scan`."""

    part: int
    start: int
    rows: int
    name: str
    size: int
    modified_ns: int
    places: Sequence[int]
    names: Sequence[str]
    fault: str = ""

    @property
    def stop(self) -> int:
        """Return the offset behind the last row."""
        return self.start + self.rows

    @property
    def file(self) -> ListedFile:
        """Return the file as it was found."""
        return ListedFile(self.name, self.size, self.modified_ns)


class FileIndex:
    """The index of one source of a stream.

    `url`: the database, by default the pipeline's; `patience_s`: so long one that is away is waited
    for.
    """

    def __init__(
        self,
        source: FileSource,
        cluster: str,
        stream: int,
        url: str = "",
        patience_s: float = PATIENCE_S,
    ) -> None:
        identity = sha256(source.identity.encode()).hexdigest()[:32]
        self._key = (cluster, stream, identity)
        self._partitions = source.partitions
        self._database = ConnectedDatabase(url or os.environ[_VARIABLE], patience_s)

    def forget_others(self) -> None:
        """Forget the files of an earlier declaration of the stream."""
        self._run(
            "DELETE FROM results_file WHERE cluster = ? AND stream = ? AND identity <> ?", self._key
        )

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    def files(self, where: str = "", values: Sequence[Any] = ()) -> list[IndexedFile]:
        """Return the files in their order; `where`: a further condition."""
        return self._database.run(lambda cursor: self._files(cursor, where, values))

    def _files(self, cursor: Any, where: str, values: Sequence[Any]) -> list[IndexedFile]:
        statement = f"SELECT {_COLUMNS}{_FROM}{where} ORDER BY number"
        self._execute(cursor)(statement, (*self._key, *values))
        return [
            IndexedFile._make([*place, json.loads(places), json.loads(names), fault])
            for *place, places, names, fault in cursor.fetchall()
        ]

    def ends(self) -> dict[int, int]:
        """Return by partition the offset behind its last file."""
        return dict(self._run(f"{_ENDS}{_FROM}GROUP BY part", self._key))

    def overlapping(self, ranges: Iterable[PartitionRange]) -> dict[int, list[IndexedFile]]:
        """Return by partition the files with the offsets of ranges."""
        where = "AND part = ? AND start < ? AND start + rows > ?"
        return self._database.run(lambda cursor: {
            item.partition: self._files(cursor, where, (item.partition, item.stop, item.start))
            for item in ranges
        })  # fmt: skip

    def append(self, files: Sequence[IndexedFile]) -> None:
        """Add files at the end, except those whose names another process has added since.

        Their partitions and starts follow from the index.
        """

        def add(cursor: Any) -> None:
            execute = self._execute(cursor)
            execute(f"SELECT COALESCE(MAX(number), -1){_FROM}", self._key)
            number = cursor.fetchone()[0] + 1
            execute(f"{_ENDS}{_FROM}GROUP BY part", self._key)
            ends = dict(cursor.fetchall())
            for file in files:
                names = (*self._key, file.name, file.fault)
                execute(f"SELECT 1{_FROM}AND name = ? AND fault = ?", names)
                if cursor.fetchone() is not None:
                    continue
                part = number % self._partitions
                row = file._replace(part=part, start=ends.get(part, 0))
                lists = (json.dumps(row.places), json.dumps(row.names))
                values = (*self._key, number, *row[:6], *lists, row.fault)
                execute(f"INSERT INTO results_file {_VALUES}", values)
                ends[part], number = row.stop, number + 1

        self._database.run(add)

    def forget(self, names: Collection[str], offsets: Mapping[int, int]) -> None:
        """Delete files by name whose rows are before these offsets, not the last of a partition."""

        def delete(cursor: Any) -> None:
            execute = self._execute(cursor)
            for name in names:
                for part, offset in offsets.items():
                    execute(f"DELETE{_FROM}{_READ}", (*self._key, name, part, offset))

        self._database.run(delete)

    def _run(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        def work(cursor: Any) -> list[Any]:
            self._execute(cursor)(statement, values)
            return list(cursor.fetchall()) if cursor.description else []

        return self._database.run(work)

    def _execute(self, cursor: Any) -> Callable[[str, Sequence[Any]], Any]:
        sign = "%s" if self._database.is_postgres else "?"
        return lambda statement, values: cursor.execute(statement.replace("?", sign), values)
