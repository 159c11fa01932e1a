"""Rows of files that are looked at: those of the index, before it exists the newest files."""

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from controlplane.wire.results.database import FAILURES
from controlplane.wire.schema import StreamSchema
from controlplane.wire.sources.files import FileFormat, FileSource
from controlplane.wire.topics.cut import PartitionPosition
from workers.pipeline.sources.browse import BrowsedChunk, BrowsePlace, RecordsReader, StreamKey
from workers.pipeline.sources.files.index import FileIndex, IndexedFile
from workers.pipeline.sources.files.read import RangeReader
from workers.pipeline.sources.files.scan import BadFile, scan
from workers.pipeline.sources.files.store import FileStore, ListedFile, StoreUnavailable
from workers.pipeline.sources.plan import PartitionRange

# Files that are read without an index, and bytes of each at most.
_NEWEST: Final = 20
_MOST_BYTES: Final = 16 << 20
# So long a database of results that is away is waited for: a person waits.
_PATIENCE_S: Final = 2.0
# Bytes and rows of a sample.
_SAMPLE: Final = 1 << 20
_ROWS: Final = 1_000
Files = Mapping[int, Sequence[IndexedFile]]


def reader_of(
    source: FileSource, schema: StreamSchema, place: BrowsePlace, key: StreamKey
) -> RecordsReader:
    """Return what reads rows of files, which raises `StoreUnavailable`."""
    return partial(_chunks, source, schema, place, key)


def _chunks(
    source: FileSource, schema: StreamSchema, place: BrowsePlace, key: StreamKey
) -> Iterator[BrowsedChunk]:
    store = FileStore(source)
    store.check()
    try:
        files = _indexed(source, place, key) or {0: _newest(store, source)}
    except FAILURES as error:
        raise StoreUnavailable(f"the index of files cannot be read: {error}") from error
    ends = {n: (own[0].start, own[-1].stop) for n, own in files.items() if own}
    ranges = place.ranges(ends, lambda time_ms: _starts_at(files, time_ms))
    reader = RangeReader(source, schema, store, time.time_ns() // 1_000_000, [])
    for number, (start, stop) in ranges.items():
        for file in files[number]:
            begin, end = max(start, file.start), min(stop, file.stop)
            for chunk in reader.of_file(file, begin, end) if begin < end else ():
                keys = [f"{file.name}, row {offset - file.start}" for offset in chunk.offsets]
                texts = [chunk.letter(row).decode("utf-8", "replace") for row in range(len(keys))]
                yield BrowsedChunk(number, chunk, keys, texts)


def _indexed(source: FileSource, place: BrowsePlace, key: StreamKey) -> Files:
    """Return the files of the index by partition, {} before the pipeline has filled it."""
    index = FileIndex(source, key.cluster, key.stream, key.results_url, _PATIENCE_S)
    with closing(index):
        ends = {part: (0, end) for part, end in index.ends().items()}
        if place.since_ms is not None:
            files = index.files("AND modified_ns >= ?", (place.since_ms * 1_000_000,))
            return {n: [file for file in files if file.part == n] for n in ends}
        ranges = place.ranges(ends, lambda _: {})
        return index.overlapping(_range(n, *pair) for n, pair in ranges.items())


def _starts_at(files: Files, time_ms: int) -> dict[int, int]:
    newer = {n: [file for file in own if file.modified_ns >= time_ms * 1_000_000]
             for n, own in files.items()}  # fmt: skip
    return {n: own[0].start if own else files[n][-1].stop for n, own in newer.items() if files[n]}


def _range(number: int, start: int, stop: int) -> PartitionRange:
    return PartitionRange(number, start, stop, PartitionPosition(start))


def _newest(store: FileStore, source: FileSource) -> list[IndexedFile]:
    """Return the newest files as an index would have them."""
    result, start = list[IndexedFile](), 0
    for file in newest_files(store, _MOST_BYTES):
        try:
            rows, places, names = scan(store, file, source)
        except BadFile as error:
            result.append(IndexedFile(0, start, 1, *file, [], [], str(error)))
        else:
            result.append(IndexedFile(0, start, rows, *file, places, names))
        start = result[-1].stop
    return result


def newest_files(store: FileStore, most_bytes: float = math.inf) -> list[ListedFile]:
    """Return the newest files that are not larger, the newest last."""
    files = [file for file in store.listed() if file.size <= most_bytes]
    return sorted(files, key=lambda file: (file.modified_ns, file.name))[-_NEWEST:]


def sample(source: FileSource) -> bytes:
    """Return the beginning of the newest file with rows, of lines as they are, or as Parquet.

    Raises `StoreUnavailable`, also without a file.
    """
    store = FileStore(source)
    store.check()
    for file in reversed(newest_files(store)):
        try:
            with store.open(file.name) as stream:
                if file.size and (head := _head(source, stream)):
                    return head
        except (OSError, pa.ArrowException) as error:
            raise StoreUnavailable(f"{file.name}: {error}") from error
    raise StoreUnavailable(f"{source.place}: no file has a row")


def _head(source: FileSource, stream: Any) -> bytes:
    if source.format == FileFormat.PARQUET:
        return _rows_of(pq.ParquetFile(stream).iter_batches(_ROWS))
    data: bytes = stream.read(_SAMPLE)
    head, newline, rest = data.rpartition(b"\n")
    whole = head + newline if len(data) == _SAMPLE else head + newline + rest
    is_named = source.format == FileFormat.CSV and source.definition
    return source.definition.encode() + b"\n" + whole if is_named else whole


def _rows_of(batches: Iterable[Any]) -> bytes:
    batch = next(iter(batches), None)
    if batch is None:
        return b""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_batches([batch]), sink)
    return bytes(sink.getvalue().to_pybytes())
