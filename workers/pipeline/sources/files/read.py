"""Ranges of rows, read from the files that the index names."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from io import BufferedReader
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from controlplane.wire.records.casts import CastRules
from controlplane.wire.records.values import convert_array, convert_values
from controlplane.wire.schema import StreamSchema
from controlplane.wire.sources.files import FileFormat, FileMetadata, FileSource
from controlplane.wire.topics.source import TopicSource
from workers.pipeline.sources.entries import Chunk, Decoded, LostRecords, RangeRecords
from workers.pipeline.sources.files.index import FileIndex, IndexedFile
from workers.pipeline.sources.files.scan import STEP
from workers.pipeline.sources.files.store import FileStore, StoreUnavailable, modified_ms
from workers.pipeline.sources.plan import PartitionRange, SourceRanges
from workers.pipeline.sources.topic.decode import CHUNK, add_missing, columns_of
from workers.pipeline.sources.topic.messages import Fetched, record_rows, row_text

_RULES: Final = CastRules()
# Decoders of lines need a topic's format only.
_NOWHERE: Final = ("none:1", "files")
_BUFFER: Final = 1 << 20


class Rows(NamedTuple):
    """Consecutive rows of a file: `numbers` in it, and lines, or a table of Arrow."""

    numbers: Sequence[int]
    lines: Sequence[bytes]
    table: Any = None


def details_of(
    source: FileSource, cluster: str, stream: int, ranges: Sequence[PartitionRange]
) -> dict[int, list[IndexedFile]]:
    """Return by partition the files with the rows of ranges."""
    index = FileIndex(source, cluster, stream)
    try:
        return index.overlapping(ranges)
    finally:
        index.close()


def read_ranges(
    part: SourceRanges, source: FileSource, schema: StreamSchema, clock_ms: int
) -> Iterator[RangeRecords]:
    """Yield the rows of each range of a part, in order."""
    store = FileStore(source)
    for item in part.ranges:
        losses: list[LostRecords] = []
        reader = RangeReader(source, schema, store, clock_ms, losses, is_patient=not part.is_stuck)
        chunks = reader.chunks(item, part.details[item.partition])
        yield RangeRecords(item, chunks, item.stop - item.start, losses=losses)


@dataclass
class RangeReader:
    """Reads the rows of a range; adds those that are gone to `losses`.

    `is_patient`: whether the batch is repeated if the disk does not give the bytes of a file.
    """

    source: FileSource
    schema: StreamSchema
    store: FileStore
    clock_ms: int
    losses: list[LostRecords]
    is_patient: bool = True

    def chunks(self, item: PartitionRange, files: Sequence[IndexedFile]) -> Iterator[Chunk]:
        """Yield the chunks of a range."""
        offset = item.start
        for file in files:
            start, stop = max(item.start, file.start), min(item.stop, file.stop)
            if start > offset:
                self._lose(offset, start, "the index of files does not have these rows any more")
            yield from self.of_file(file, start, stop)
            offset = stop
        if offset < item.stop:
            self._lose(offset, item.stop, "the index of files does not have these rows any more")

    def _lose(self, start: int, stop: int, why: str) -> None:
        self.losses.append(LostRecords(start, stop - start, why))

    def of_file(self, file: IndexedFile, start: int, stop: int) -> Iterator[Chunk]:
        """Yield the chunks of a file with the offsets [start, stop)."""
        if file.fault:
            empty = pa.RecordBatch.from_pylist([], schema=self.schema.arrow)
            none = np.zeros(0, np.int64)
            decoded = Decoded(empty, none, {0: f"{file.name} {file.fault}"[:400]})
            yield Chunk([start], [self._time_ms(file)], 0, decoded, lambda _: file.name.encode())
            return
        offset = start
        try:
            if (present := self.store.find(file.name)) != file.file:
                raise OSError("does not exist any more" if present is None else "has changed")
            for rows in self._rows(file, start - file.start, stop - file.start):
                if chunk := self._chunk(file, rows):
                    yield chunk
                offset = file.start + rows.numbers[-1] + 1
        except (OSError, pa.ArrowException, StoreUnavailable) as error:
            # The store has the file, so only its bytes are missing.
            is_away = isinstance(error, StoreUnavailable)
            if is_away and self.store.find(file.name) == file.file and self.is_patient:
                raise
            why = f"{file.name}, from row {offset - file.start}: {error}"[:400]
            self._lose(offset, stop, why)

    def _rows(self, file: IndexedFile, start: int, stop: int) -> Iterator[Rows]:
        if self.source.format == FileFormat.PARQUET:
            columns = tuple(n for n in self.schema.arrow.names if n not in self.source.metadata)
            yield from _of_parquet(file, self.source, columns, start, stop)
        else:
            yield from _of_lines(self.store, file, start, stop)

    def _time_ms(self, file: IndexedFile) -> int:
        return min(modified_ms(file.modified_ns), self.clock_ms)

    def _chunk(self, file: IndexedFile, rows: Rows) -> Chunk | None:
        """Return rows as a chunk, None if all lines are blank."""
        if rows.table is None:
            kept = [place for place, line in enumerate(rows.lines) if line.strip()]
            numbers, lines = [rows.numbers[n] for n in kept], [rows.lines[n] for n in kept]
            rows = Rows(numbers, lines)
        if not rows.numbers:
            return None
        decoded = _decoded(file, rows, self.source, self.schema)
        offsets = [file.start + number for number in rows.numbers]
        size = sum(map(len, rows.lines)) if rows.table is None else rows.table.nbytes
        times = [self._time_ms(file)] * len(offsets)
        return Chunk(offsets, times, size, decoded, partial(_letter, self.source, file, rows))


def _decoded(file: IndexedFile, rows: Rows, source: FileSource, schema: StreamSchema) -> Decoded:
    """Return rows as records; reasons name the file and the row, from 0."""
    faults: dict[int, str] = {}
    fields = [field for field in schema.arrow if field.name not in source.metadata]
    if rows.table is None:
        columns, _ = columns_of(_fetched(rows), _lines_of(source, file), fields, faults)
    else:
        columns = _converted(rows.table, fields, faults)
    for name, kind in source.metadata.items():
        target = schema.arrow.field(name).type
        columns[name] = _metadata(FileMetadata(kind), file, rows, target)
    add_missing(columns, schema, faults)
    places = np.array([n for n in range(len(rows.numbers)) if n not in faults], np.int64)
    arrays = [columns[field.name].take(pa.array(places)) for field in schema.arrow]
    named = {n: f"{file.name}, row {rows.numbers[n]}: {why}"[:400] for n, why in faults.items()}
    return Decoded(pa.RecordBatch.from_arrays(arrays, schema=schema.arrow), places, named)


def _fetched(rows: Rows) -> Fetched:
    count = len(rows.numbers)
    return Fetched(0, rows.numbers, rows.lines, [None] * count, [0] * count)


def _lines_of(source: FileSource, file: IndexedFile) -> TopicSource:
    """Return the format of lines as that of messages."""
    names = source.definition or ",".join(file.names)
    return TopicSource(*_NOWHERE, source.format, definition=names)


def _converted(table: Any, fields: Sequence[Any], faults: dict[int, str]) -> dict[str, Any]:
    columns = {}
    for field in fields:
        if field.name not in table.column_names:
            columns[field.name] = pa.nulls(table.num_rows, field.type)
            continue
        array = table.column(field.name).combine_chunks()
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        try:
            converted = convert_array(array, field.type, _RULES)
        except (TypeError, pa.ArrowException):
            converted = convert_values(array.to_pylist(), field.type, _RULES)
        columns[field.name] = converted.array
        for place, why in converted.faults.items():
            faults.setdefault(place, f"{field.name}: {why[0].lower()}{why[1:]}")
    return columns


def _metadata(kind: FileMetadata, file: IndexedFile, rows: Rows, target: Any) -> Any:
    values: Mapping[FileMetadata, Any] = {
        FileMetadata.FILE: [file.name] * len(rows.numbers),
        FileMetadata.ROW: rows.numbers,
        FileMetadata.MODIFIED: [modified_ms(file.modified_ns)] * len(rows.numbers),
    }
    if kind is FileMetadata.MODIFIED:
        return pa.array(values[kind], pa.int64()).cast(target)
    return pa.array(values[kind], target)


def _letter(source: FileSource, file: IndexedFile, rows: Rows, index: int) -> bytes:
    """Return what a dead letter keeps of a row: its record as JSON, else its line.

    It can be appended again when the schema has changed.
    """
    if rows.table is not None:
        row = rows.table.slice(index, 1).to_pylist()[0]
    else:
        line, faults = rows.lines[index], dict[int, str]()
        if source.format == FileFormat.JSON and not source.metadata:
            return line
        (row,), _ = record_rows(_fetched(rows).only(index), _lines_of(source, file), [], faults)
        if faults:
            return line
    values: Mapping[FileMetadata, Any] = {
        FileMetadata.FILE: file.name, FileMetadata.ROW: rows.numbers[index],
        FileMetadata.MODIFIED: modified_ms(file.modified_ns),
    }  # fmt: skip
    metadata = {name: values[FileMetadata(kind)] for name, kind in source.metadata.items()}
    return row_text({**row, **metadata}).encode()


def _of_lines(store: FileStore, file: IndexedFile, start: int, stop: int) -> Iterator[Rows]:
    """Yield the rows [start, stop) of a file of lines, from the nearest place before."""
    place = start // STEP
    with BufferedReader(store.open(file.name), _BUFFER) as stream:
        stream.seek(file.places[place])
        lines = islice(stream, start - place * STEP, stop - place * STEP)
        for begin in range(start, stop, CHUNK):
            numbers = range(begin, min(begin + CHUNK, stop))
            own = [line.removesuffix(b"\n").removesuffix(b"\r") for line in islice(lines, CHUNK)]
            if len(own) < len(numbers) or stream.tell() > file.size:
                raise OSError("has changed")
            yield Rows(numbers, own)


def _of_parquet(
    file: IndexedFile, source: FileSource, columns: Sequence[str], start: int, stop: int
) -> Iterator[Rows]:
    for group, first in enumerate(file.places):
        last = file.places[group + 1] if group + 1 < len(file.places) else file.rows
        if first >= stop or last <= start:
            continue
        table = _row_group(source, file.name, file.modified_ns, group, columns)
        for begin in range(max(start, first), min(stop, last), CHUNK):
            end = min(begin + CHUNK, stop, last)
            yield Rows(range(begin, end), (), table.slice(begin - first, end - begin))


@lru_cache(maxsize=2)
def _row_group(
    source: FileSource, name: str, modified_ns: int, group: int, columns: Sequence[str]
) -> Any:
    """Return columns of a row group; kept, as consecutive batches read parts of it."""
    del modified_ns
    with FileStore(source).open(name) as stream:
        return pq.ParquetFile(stream).read_row_group(group, columns=list(columns))
