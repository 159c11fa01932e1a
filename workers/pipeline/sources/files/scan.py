"""How many rows a file has, and where some of them begin."""

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from controlplane.wire.sources.files import FileFormat, FileSource
from workers.pipeline.sources.files.store import FileStore, ListedFile

_MOST_BYTES: Final = 2 << 30
_MOST_GROUP_BYTES: Final = 256 << 20
_LONGEST_LINE: Final = 1 << 20
_BLOCK: Final = 4 << 20
# Rows after which the place of a line is kept, so that a range is read from near its start.
STEP: Final = 10_000
_NEWLINE: Final = 10


class BadFile(Exception):
    """The file cannot be read; str() is the reason."""


class Scan(NamedTuple):
    """The rows of a file.

    `places`: of lines the byte where each `STEP`-th begins, of Parquet the first row of each row
    group; `names`: of CSV the names of the cells in its first line, which is not a row.
    """

    rows: int
    places: list[int]
    names: list[str]


def scan(store: FileStore, file: ListedFile, source: FileSource) -> Scan:
    """Return the rows of a file. Raises `BadFile`, `StoreUnavailable` if it may be read later."""
    if file.size > _MOST_BYTES:
        raise BadFile(f"has {file.size:,} bytes, more than {_MOST_BYTES:,}")
    try:
        with store.open(file.name) as stream:
            if source.format == FileFormat.PARQUET:
                return _row_groups(stream)
            return _lines(stream, file.size, source)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise BadFile(f"cannot be read: {error}"[:300]) from error


def _row_groups(stream: Any) -> Scan:
    metadata = pq.ParquetFile(stream).metadata
    groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
    if any(group.total_byte_size > _MOST_GROUP_BYTES for group in groups):
        raise BadFile(f"has a row group of more than {_MOST_GROUP_BYTES:,} bytes")
    places = np.cumsum([0, *(group.num_rows for group in groups)])[:-1].tolist()
    return Scan(metadata.num_rows, places, [])


def _lines(stream: Any, size: int, source: FileSource) -> Scan:
    names, start = list[str](), 0
    if source.format == FileFormat.CSV and not source.definition:
        head = stream.read(_LONGEST_LINE)
        line, newline, _ = head.partition(b"\n")
        if not newline and len(head) < size:
            raise BadFile("has a first line that is too long")
        names = [name.strip('"') for name in line.decode("utf-8-sig").rstrip("\r").split(",")]
        start = len(line) + len(newline)
        stream.seek(start)
    rows, places, begin, offset = 0, [start], start, start
    while block := stream.read(min(_BLOCK, size - offset)):
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == _NEWLINE) + offset + 1
        begins = np.concatenate([[begin], ends])
        offset += len(block)
        if np.diff(begins, append=offset).max() > _LONGEST_LINE:
            raise BadFile(f"has a line of more than {_LONGEST_LINE:,} bytes")
        first = (len(places) * STEP) - rows
        places += begins[first : len(ends) + 1 : STEP].tolist() if first <= len(ends) else []
        rows, begin = rows + len(ends), int(begins[-1])
    return Scan(rows + (begin < offset), places, names)
